/* SPDX-License-Identifier: MIT */
/*
 * Bytes of a stream's send queue become TCP's: what is not posted, and what was posted and the peer has not read or
 * not got. They are copied behind what TCP is still to take (backlog.h), and `posted` moves behind them.
 *
 * The peer asks for that, and says from where. Its reader has not taken them, or after a queue pair's death they
 * have not arrived (LEAVE). Or this end does it itself, with a HANDBACK or a REPEAT. The ring has no room
 * for them, and the direction leaves the link. Or the direction ends (repeat.h).
 */
#ifndef SHUNT_CORE_STREAM_HAND_BACK_H
#define SHUNT_CORE_STREAM_HAND_BACK_H

#include "core/stream/stream.h"

struct shunt_engine;

extern const char shunt_hand_back_wrong[];	/* why a link is distrusted after -EPROTO */

/*
 * Our direction is the kernel's from here on; of the link's bytes the peer has those before `from`. A `from` before our
 * last upgrade: the peer's reader is still to come there. One behind our handback: it has been there, though we have not
 * heard of that. 0, or -errno: -EPROTO where no honest peer asks for that, another where the rest cannot be had.
 *
 * With `answer` only if that is sent (shunt_link_send_now), before TCP has a byte. A peer that has ended the link meanwhile
 * hears no answer, and reads its ring (core/peer/silent.h): nothing changes, and the result is -EAGAIN or -EPIPE.
 */
int shunt_hand_back_asked(struct shunt_engine *engine, struct shunt_stream *stream, uint64_t from,
			  const struct shunt_message *answer) SHUNT_REQUIRES(stream->tx.lock);
/*
 * Hands the direction back to TCP at the first byte that has no room, if there is one; `fd` is the
 * kernel's socket. False: nothing was done.
 */
bool shunt_hand_back_overflow(struct shunt_stream *stream, int fd) SHUNT_REQUIRES(stream->tx.lock);
/*
 * There is such a byte, and the direction can be handed back when the peer is known to have heard
 * of its UPGRADE. tx.lock held.
 */
bool shunt_hand_back_must_be_heard(struct shunt_stream *stream);
/*
 * The direction is about to end: TCP takes the bytes without room, and those that the reader has not read, too.
 * `exits`: nobody can be asked for the rest of what is repeated, so it waits for room. False: nothing was done.
 */
bool shunt_hand_back_unread(struct shunt_stream *stream, int fd, bool exits)
	SHUNT_REQUIRES(stream->tx.lock);
/* How many bytes the peer's program has not read, as far as this end can see. */
uint64_t shunt_hand_back_unread_bytes(struct shunt_stream *stream) SHUNT_REQUIRES(stream->tx.lock);
/* The kernel's queue takes all of them at once, so nothing waits for the reader. */
bool shunt_hand_back_fits(struct shunt_stream *stream, int fd) SHUNT_REQUIRES(stream->tx.lock);
/* Whether all of them are read. */
bool shunt_hand_back_is_all_read(struct shunt_stream *stream) SHUNT_REQUIRES(stream->tx.lock);
/* The process ends: the same of all streams. Calls of other threads are awaited until `until`, a point in time. */
void shunt_hand_back_all(struct shunt_engine *engine, uint64_t until);

#endif
