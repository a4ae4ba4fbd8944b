/* SPDX-License-Identifier: MIT */
/*
 * Bytes of a stream's send queue become TCP's: what is not posted, and what was posted and the peer has not read or
 * not got. They are copied behind what TCP is still to take (backlog.h), and `posted` moves behind them.
 *
 * The peer asks for that, and says from where. After RETIRE its reader has not taken them; after a queue pair's death
 * (RESUME) they have not arrived. Or this end does it itself, with a HANDBACK or a REPEAT. The ring has no room
 * for them, and the direction leaves the link. Or the direction ends (repeat.h).
 */
#ifndef SHUNT_CORE_STREAM_HAND_BACK_H
#define SHUNT_CORE_STREAM_HAND_BACK_H

#include "core/stream/stream.h"

struct shunt_engine;

extern const char shunt_hand_back_wrong[];	/* why a link is distrusted after -EPROTO */

/*
 * Everything from stream offset `from` on becomes TCP's. tx.lock and lane.lock held. 0, or -errno:
 * -EPROTO where no honest peer asks for that, another where it cannot be had.
 *
 * With `answer` only if that is sent (shunt_link_send_now): a peer that has ended the link meanwhile reads its ring. Then
 * -EAGAIN, or -EPIPE.
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
/* The process ends: the same of all streams. Calls of other threads are awaited until `until`, a point in time. */
void shunt_hand_back_all(struct shunt_engine *engine, uint64_t until);

#endif
