/* SPDX-License-Identifier: MIT */
/*
 * We accept at an address that another process owns (listener_owner.h is the owner's side). Service thread.
 */
#ifndef SHUNT_CORE_PEER_LISTENER_WORKER_H
#define SHUNT_CORE_PEER_LISTENER_WORKER_H

#include "core/loop/loop.h"

struct shunt_crowd;
struct shunt_rendezvous;
struct shunt_service;
struct shunt_stream;

/* The program has used a connection that it has accepted there. */
void shunt_listener_worker_tell(struct shunt_service *service, struct shunt_stream *stream);
/* Joins the owner of the address. False: nobody owns it. rendezvous_lock held. */
bool shunt_listener_worker_join(struct shunt_service *service, struct shunt_rendezvous *r,
				struct shunt_crowd *crowd);
/* The owner has said something: see loop.h. */
void shunt_listener_worker_hear(struct shunt_source *source, uint32_t events);
/* Reads what owners have said and the loop has not noticed yet. */
void shunt_listener_worker_hear_all(struct shunt_service *service);
/* Looks for owners, or becomes one. */
void shunt_listener_worker_run(struct shunt_task *task);

#endif
