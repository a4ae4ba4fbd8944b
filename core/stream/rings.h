/* SPDX-License-Identifier: MIT */
/*
 * The rings of a stream. The receiver offers a larger one, or a small one without pages. The sender uses it from some
 * byte on.
 */
#ifndef SHUNT_CORE_STREAM_RINGS_H
#define SHUNT_CORE_STREAM_RINGS_H

#include <stdbool.h>
#include "core/stream/stream.h"

struct shunt_engine;

/*
 * The reader gives room back, and the sender has filled the ring: a larger one is offered, if there is one. The work for
 * the lane, or 0.
 */
uint32_t shunt_rings_offer_large(struct shunt_stream *stream) SHUNT_REQUIRES(stream->rx.lock);
/*
 * A small ring without pages has less memory than our present one. That has grown, or bytes have come in it and its pages
 * can go back. The stream has a seat. Any thread.
 */
bool shunt_rings_may_shrink(const struct shunt_stream *stream);
/* All has been read, and no ring is offered: the sender is to use a small one, without pages. False: there is none. */
bool shunt_rings_offer_small(struct shunt_engine *engine, struct shunt_stream *stream)
	SHUNT_REQUIRES(stream->rx.lock);
/* Uses the ring that was offered. False: not now, try again. */
bool shunt_rings_change(struct shunt_stream *stream) SHUNT_REQUIRES(stream->tx.lock);
/* The reader stands where the sender has begun with the ring that was offered. */
void shunt_rings_swap(struct shunt_engine *engine, struct shunt_stream *stream)
	SHUNT_REQUIRES(stream->rx.lock);

#endif
