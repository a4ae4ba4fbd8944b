/* SPDX-License-Identifier: MIT */
/*
 * The addresses that this process listens at; more of it in engine.h. Errors are -errno.
 */
#ifndef SHUNT_CORE_PEER_LISTEN_H
#define SHUNT_CORE_PEER_LISTEN_H

#include "core/peer/rendezvous.h"

/* Rendezvous have been added or withdrawn. */
void shunt_listen_run(struct shunt_task *task);
/* Names whose last listener was closed go a while after it. */
void shunt_listen_withdraw_run(struct shunt_task *task);
/* In a fork's child. */
void shunt_listen_abandon(struct shunt_engine *engine);

struct shunt_stream;

/* Offers a rendezvous for the address that `fd` listens on, or joins its owner; withdraws it. */
void shunt_listen_offer(struct shunt_engine *engine, int fd);
/*
 * The stream's process has an accepted connection and no listener: it joins the owner of its address, or offers a
 * rendezvous there. The tuple is known. Service thread.
 */
void shunt_listen_adopt(struct shunt_engine *engine, struct shunt_stream *stream);
/* We accept there. */
void shunt_listen_accepts(struct shunt_engine *engine, struct shunt_rendezvous *rendezvous);
void shunt_listen_withdraw(struct shunt_engine *engine, struct shunt_stream *stream);
/* The service thread has ended and may begin anew: so it does, if the program listens. */
void shunt_listen_again(struct shunt_engine *engine);
/* The process ends: its names that are files go. */
void shunt_listen_finish(struct shunt_engine *engine);
/* Before a fork: the children see when claims come for what the owner does not have, and need not ask for it. */
void shunt_listen_share(struct shunt_engine *engine);

#endif
