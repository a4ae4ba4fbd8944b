/* SPDX-License-Identifier: MIT */
/* The messages of a peer: what comes on a link's channel, and which part of the engine each is for. Service thread. */
#ifndef SHUNT_CORE_PEER_HEAR_H
#define SHUNT_CORE_PEER_HEAR_H

#include <stdbool.h>

struct shunt_link;
struct shunt_link_hooks;
struct shunt_message;
struct shunt_source;

/* The hooks of links (links.h). */
extern const struct shunt_link_hooks shunt_hear_hooks;

/* A message has come. fds stay the caller's. */
void shunt_hear_message(struct shunt_link *link, const struct shunt_message *message, const int *fds, int count);

#endif
