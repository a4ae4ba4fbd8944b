/* SPDX-License-Identifier: MIT */
/*
 * The making of a link: our half around a channel, and the introduction (HELLO). By HELLO both ends
 * learn of each other's memory and queue pairs. docs/dev/PROTOCOL.md has the exchange. Service thread.
 */
#ifndef SHUNT_CORE_PEER_LINK_MAKE_H
#define SHUNT_CORE_PEER_LINK_MAKE_H

#include "core/base/reason.h"
#include "core/link/link.h"

/*
 * Builds the local half around a connected channel, which it takes; the first message is sent.
 * NULL: none, and the channel is closed; `reason` says why, unless it is NULL.
 */
struct shunt_link *shunt_link_create(struct shunt_engine *engine, struct shunt_channel *channel,
				     bool initiator, enum shunt_cause *cause);
/* The peer has knocked. */
void shunt_link_meet(struct shunt_link *link);
/* A connection has been proven on the link's channel, the first one: what strangers do not get may follow. */
void shunt_link_proven(struct shunt_link *link);
/* See `joined` of struct shunt_link_hooks. */
void shunt_link_joined(struct shunt_link *link);
/* The peer has introduced itself. fds stay the caller's. */
void shunt_link_hello(struct shunt_link *link, const struct shunt_message *message, const int *fds,
		      int count);

#endif
