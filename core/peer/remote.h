/* SPDX-License-Identifier: MIT */
/*
 * Peers on other hosts. The connection manager (core/device/cm) asks the listener of an address, which answers where
 * the gate for our link's channel is (remote_listener.h). In the background throughout: whatever does not answer
 * costs the program nothing, and a connection that is not carried stays on TCP. Service thread.
 */
#ifndef SHUNT_CORE_PEER_REMOTE_H
#define SHUNT_CORE_PEER_REMOTE_H

#include "core/link/channel.h"

struct shunt_service;
struct shunt_stream;
struct shunt_task;

/* Rendezvous have been added or withdrawn. */
void shunt_remote_listen(struct shunt_service *service);
/* A stream to another host: finds the link, or makes it, or gives the stream up. */
void shunt_remote_claim(struct shunt_service *service, struct shunt_stream *stream);
/* The connection manager or a gate has something: what their sources call. */
void shunt_remote_hear(struct shunt_service *service);
/* Tasks that are due by now. */
void shunt_remote_run(struct shunt_task *task);
/* The service thread ends: nobody listens, nothing is asked. */
void shunt_remote_end(struct shunt_service *service);
/* In a fork's child. */
void shunt_remote_forget(struct shunt_service *service);

struct shunt_have;
struct shunt_tuple;

/* Where peers of another host come in for an accepted connection: the port of our gate, network order. 0: nowhere. */
uint16_t shunt_remote_gate(struct shunt_service *service, const struct shunt_tuple *accepted);
/* The owner of our address has invited one of them (invite.h). */
void shunt_remote_invited(struct shunt_service *service, const struct shunt_have *have);

#endif
