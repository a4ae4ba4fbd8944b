/* SPDX-License-Identifier: MIT */
/*
 * The rings of a stream: the receiver offers a larger or a smaller one, and the sender uses it from some byte on.
 */
#ifndef SHUNT_CORE_STREAM_RINGS_H
#define SHUNT_CORE_STREAM_RINGS_H

#include <stdbool.h>

struct shunt_engine;
struct shunt_link;
struct shunt_place;
struct shunt_stream;

/* A blocked sender of the peer asks for a larger ring. Service thread. */
void shunt_rings_grow(struct shunt_engine *engine, struct shunt_stream *stream);
/* rx.lock held, all read, no ring offered: the sender is to use a small one. */
void shunt_rings_offer_small(struct shunt_engine *engine, struct shunt_stream *stream)
	SHUNT_REQUIRES(stream->rx.lock);
/* The reader wants that of us. Service thread. */
void shunt_rings_shrink(struct shunt_link *link, struct shunt_stream *stream, const struct shunt_place *place);
/* tx.lock held: uses the ring that was offered. False: not now, try again. */
bool shunt_rings_change(struct shunt_stream *stream) SHUNT_REQUIRES(stream->tx.lock);
/* The reader stands where the sender has begun with the ring that was offered. */
void shunt_rings_swap(struct shunt_engine *engine, struct shunt_stream *stream)
	SHUNT_REQUIRES(stream->rx.lock);

#endif
