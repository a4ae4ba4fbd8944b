/* SPDX-License-Identifier: MIT */
/*
 * Bytes for which the peer's ring has no room. The kernel fills its send buffer though the peer reads nothing: two
 * ends may both send before they read, and a peer may be stopped. Here the ring is the receive buffer, and the stage
 * becomes the send buffer. It is widened, and takes as much as SO_SNDBUF says. Where the program has not set that,
 * tcp_wmem bounds it, and the ring's growth.
 *
 * Such bytes are copied once more. So the stage is open only for a reader that does not read. Such a reader has not
 * answered GROW, or has given no credit for some milliseconds. The next credit closes it. Staged bytes are posted as
 * room comes, by any thread that polls, at last the service thread. Memory goes back when the stage is empty
 * (reclaim.c).
 *
 * A direction that leaves the link, or ends, takes such bytes to TCP. Behind a HANDBACK the kernel has them, also
 * when the process has ended.
 */
#ifndef SHUNT_CORE_STREAM_OVERFLOW_H
#define SHUNT_CORE_STREAM_OVERFLOW_H

#include "core/base/iov.h"
#include "core/stream/stream.h"

struct shunt_task;

/*
 * A sender has found no room: without credit the stage opens after a while. Any lock may be held.
 */
void shunt_overflow_note(struct shunt_stream *stream);
/* The reader does not read: the stage opens. */
void shunt_overflow_open(struct shunt_seat_out *out);
/* The direction begins on the link. */
static inline void shunt_overflow_begin(struct shunt_seat_out *out)
{
	atomic_store_explicit(&out->overflow.open_at, SHUNT_NEVER, memory_order_release);
	atomic_store_explicit(&out->overflow.promised, false, memory_order_release);
	atomic_store_explicit(&out->overflow.waits_since, 0, memory_order_release);
	atomic_store_explicit(&out->overflow.most, 0, memory_order_release);
}

/* The stage has bytes for which the ring has no room. */
static inline bool shunt_overflow_is_pending(const struct shunt_seat_out *out)
{
	return atomic_load(&out->staged) > shunt_seat_limit(out);
}

/* A send in time for what a program has been told of: once. The reader may have given credit since, too little for it. */
static inline bool shunt_overflow_was_promised(struct shunt_seat_out *out)
{
	return atomic_load_explicit(&out->overflow.promised, memory_order_relaxed) &&
	       atomic_exchange(&out->overflow.promised, false);
}

/* The reader has given no credit since it was opened. */
static inline bool shunt_overflow_is_open(const struct shunt_seat_out *out)
{
	return atomic_load(&out->overflow.open_at) == atomic_load(&out->ring.consumed);
}

/*
 * Open, but the device still needs bytes of the stage, so that cannot be widened yet. Any thread.
 */
bool shunt_overflow_is_kept(const struct shunt_stream *stream);
/* There is room worth telling a sender of. Any thread. */
bool shunt_overflow_has_room(struct shunt_stream *stream);
/* Takes up to `bytes` of `from`, as far as there is room. Returns how many. */
size_t shunt_overflow_take(struct shunt_stream *stream, struct shunt_iov *from, size_t bytes)
	SHUNT_REQUIRES(stream->tx.lock);
/* The program has set SO_SNDBUF or TCP_NOTSENT_LOWAT. */
void shunt_overflow_changed(struct shunt_stream *stream);
/*
 * Hands the direction back to TCP at the first byte that has no room, if there is one; `fd` is the
 * kernel's socket. False: nothing was done.
 */
bool shunt_overflow_to_tcp(struct shunt_stream *stream, int fd) SHUNT_REQUIRES(stream->tx.lock);
/*
 * There is such a byte, and the direction can be handed back when the peer is known to have heard
 * of its UPGRADE. tx.lock held.
 */
bool shunt_overflow_must_be_heard(struct shunt_stream *stream);
/*
 * The direction is about to end: TCP takes the bytes without room, and those that the reader has not read, too
 * (repeat.h). `exits`: nobody can be asked for the rest of what is repeated, so it waits for room. False: nothing was done.
 */
bool shunt_overflow_repeat(struct shunt_stream *stream, int fd, bool exits)
	SHUNT_REQUIRES(stream->tx.lock);
/* The process ends: shunt_overflow_repeat() of all streams. Calls of other threads are awaited until `until`, a point in time. */
void shunt_overflow_leave(struct shunt_engine *engine, uint64_t until);
/* Finds readers that do not read. */
void shunt_overflow_run(struct shunt_task *task);
/* Bytes that the kernel lets a send buffer grow to: tcp_wmem's third word. Reads a file, before the service thread starts. */
uint64_t shunt_overflow_bound(struct shunt_engine *engine);

#endif
