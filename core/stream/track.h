/* SPDX-License-Identifier: MIT */
/*
 * Moving a direction between its two tracks, at any byte (DESIGN 5.5).
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
/* The same where the program may be sending nothing, because tx.held has changed. */
void shunt_track_reconsider(struct shunt_engine *engine, struct shunt_stream *stream)
	SHUNT_REQUIRES(stream->tx.lock);
/* rx.lock held: passes announced switches and ring changes that are due. */
void shunt_track_settle(struct shunt_engine *engine, struct shunt_stream *stream)
	SHUNT_REQUIRES(stream->rx.lock);
/* tx.lock held: says that the direction is on `track` from here on. */
void shunt_track_announce(struct shunt_engine *engine, struct shunt_stream *stream,
			  enum shunt_track track) SHUNT_REQUIRES(stream->tx.lock);

#endif
