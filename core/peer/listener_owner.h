/* SPDX-License-Identifier: MIT */
/* The have channel (listener_message.h), the owner's side. Service thread. */
#ifndef SHUNT_CORE_PEER_LISTENER_OWNER_H
#define SHUNT_CORE_PEER_LISTENER_OWNER_H

#include "core/peer/invite.h"
#include <stdbool.h>
#include <stdint.h>

struct shunt_service;
struct shunt_source;
struct shunt_task;
struct shunt_tuple;
struct shunt_worker;

/* A process has come where co-listeners come in: see loop.h. */
void shunt_listener_owner_welcome(struct shunt_source *source, uint32_t events);
/* The process that has said that it has the claimed connection. False: none, and one that says it now will be heard. */
bool shunt_listener_owner_find(struct shunt_service *service, const struct shunt_tuple *claimed,
			       struct shunt_worker *worker);
/* Does a process that may not tell us accept at the claimed connection's address? */
bool shunt_listener_owner_strangers(struct shunt_service *service, const struct shunt_tuple *claimed);
/* Ends what is over: processes that came to a name that has gone, and the want of messages. */
void shunt_listener_owner_run(struct shunt_task *task);
/* In a fork's child. */
void shunt_listener_owner_abandon(struct shunt_service *service);

#endif
