/* SPDX-License-Identifier: MIT */
/*
 * The have channel: who accepts at an address that another process owns the rendezvous of tells the owner which
 * connections it has. Both ends in one place: listener_owner.c is the owner's, listener_worker.c the other's. Service thread.
 */
#ifndef SHUNT_CORE_PEER_LISTENER_OWNER_H
#define SHUNT_CORE_PEER_LISTENER_OWNER_H

#include "core/service.h"

/* One message. 1; 0: nothing has come; -errno: it is over. */
int shunt_listener_owner_receive(struct shunt_engine *engine, int from, struct shunt_have *have);
/* Never waits: who does not listen is not told. 0 or -errno. */
int shunt_listener_owner_send(struct shunt_engine *engine, int to, struct shunt_have *have);

/* --- the owner's side --- */

/* A process has come where co-listeners come in: see loop.h. */
void shunt_listener_owner_welcome(struct shunt_source *source, uint32_t events);
/* Who has said that he has the claimed connection; 0: nobody, and whoever says it now will be heard. */
pid_t shunt_listener_owner_find(struct shunt_service *service, const struct shunt_tuple *claimed);
/* Does a process that may not tell us accept at the claimed connection's address? */
bool shunt_listener_owner_strangers(struct shunt_service *service, const struct shunt_tuple *claimed);
/* What is over: those who came to a name that has gone, and the want of messages. */
void shunt_listener_owner_run(struct shunt_task *task);
/* In a fork's child. */
void shunt_listener_owner_abandon(struct shunt_service *service);

#endif
