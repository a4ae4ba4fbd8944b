/* SPDX-License-Identifier: MIT */
/*
 * A stream comes to a link, or does not after all. Service thread, seats_lock held; each call takes the stream's locks.
 */
#ifndef SHUNT_CORE_PEER_ATTACH_H
#define SHUNT_CORE_PEER_ATTACH_H

#include <stdbool.h>

struct shunt_engine;
struct shunt_message;
struct shunt_place;
struct shunt_stream;

/* Both ends have agreed: the stream becomes LINKED. 0 or -errno. The peer hears `accept`, if there is one, before anything else of it. */
int shunt_attach(struct shunt_engine *engine, struct shunt_stream *stream, const struct shunt_place *peer,
		       struct shunt_message *accept);
/* Both ends are ready: upgrades may be announced. */
void shunt_attach_allow(struct shunt_engine *engine, struct shunt_stream *stream);
/* The peer refused after all: back to being the kernel's. False: it has used the link already. */
bool shunt_attach_revert(struct shunt_engine *engine, struct shunt_stream *stream);

#endif
