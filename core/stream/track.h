/* SPDX-License-Identifier: MIT */
/*
 * Moving a direction between its two tracks, at any byte.
 *
 * The sender decides. It says on the link from which offset the other track carries the stream. It sends no second
 * announcement before the receiver has passed the first. The receiver takes bytes from the present track until it
 * stands at the announced offset, then turns.
 */
#ifndef SHUNT_CORE_STREAM_TRACK_H
#define SHUNT_CORE_STREAM_TRACK_H

#include "core/stream/stream.h"

/* tx.lock held: changes tracks if it is wanted and possible now. */
void shunt_track_choose(struct shunt_engine *engine, struct shunt_stream *stream)
	SHUNT_REQUIRES(stream->tx.lock);
/* Bits of seat.out.held: each is for a party that wants the direction on TCP though the link could carry it (mock.h). */
enum { SHUNT_HELD_MOCK = 1, SHUNT_HELD_PEER = 2, SHUNT_HELD_SLOW = 4, SHUNT_HELD_PACED = 8 };
/* Sets or clears a bit of a linked stream; where that changes the track, it is announced at once. True: the bit has changed. */
bool shunt_track_hold(struct shunt_stream *stream, uint8_t bit, bool on)
	SHUNT_REQUIRES(stream->tx.lock);
/* As choose, where the program may be sending nothing, because something else has changed. */
void shunt_track_reconsider(struct shunt_engine *engine, struct shunt_stream *stream)
	SHUNT_REQUIRES(stream->tx.lock);
/* rx.lock held: passes announced switches and ring changes that are due. */
void shunt_track_settle(struct shunt_stream *stream)
	SHUNT_REQUIRES(stream->rx.lock);
/* tx.lock held: says that the direction is on `track` from here on. */
void shunt_track_announce(struct shunt_engine *engine, struct shunt_stream *stream,
			  enum shunt_track track) SHUNT_REQUIRES(stream->tx.lock);

#endif
