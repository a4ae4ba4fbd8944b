/* SPDX-License-Identifier: MIT */
/* The messages of a peer: what comes on a link's channel, and which part of the engine each is for. Service thread. */
#ifndef SHUNT_CORE_PEER_HEAR_H
#define SHUNT_CORE_PEER_HEAR_H

#include <stdint.h>

struct shunt_link;
struct shunt_message;
struct shunt_source;

/* A link's channel has something, or room: see loop.h. seats_lock held. */
void shunt_hear_ready(struct shunt_source *source, uint32_t events);

/* A message has come. fds stay the caller's. */
void shunt_hear_message(struct shunt_link *link, const struct shunt_message *message, const int *fds, int count);

#endif
