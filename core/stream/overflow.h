/* SPDX-License-Identifier: MIT */
/*
 * Bytes for which the peer's ring has no room. The kernel fills its send buffer though the peer reads nothing: two
 * ends may both send before they read, and a peer may be stopped. Here the ring is the receive buffer, and the stage
 * becomes the send buffer. It is widened, and takes as much as SO_SNDBUF says. Where the program has not set that,
 * tcp_wmem bounds it, and the ring's growth.
 *
 * Such bytes are copied once more. So the stage is open only while the ring is small, or for a reader that has given no
 * credit for some milliseconds. The next credit closes it. Staged bytes are posted as room comes, by any thread that
 * polls, at last the service thread. Memory goes back when the stage is empty (reclaim.c).
 *
 * A direction that leaves the link, or ends, takes such bytes to TCP (hand_back.h). The kernel has them then, also
 * when the process has ended.
 *
 * - A device that fetches from the stage, or a lane that retains, must be through with a stage before that is
 *   widened. Then the lane tells the sender (shunt_overflow_is_kept). Without memory for a wider stage the present
 *   one is the bound.
 * - Staged bytes are posted as credit, or another ring, comes. The stream waits in the lane's list of those held,
 *   with what may only follow its bytes: HANDBACK, FIN, RELEASE. Everything else about the stream goes past. If the
 *   peer closes, or either end resets, the bytes are dropped, as the kernel's are. HANDBACK then names the last
 *   byte that was posted, and FIN, too, where the peer has closed. Behind a reset RESET stands in for FIN.
 * - A direction that ends (shutdown, close, exit), or that leaves the link, hands back at the first byte without
 *   room. Staged bytes go to the kernel's socket at once, so the process may end. This needs a HANDBACK that arrives
 *   at once, behind an UPGRADE that has been passed. So it is not done on RDMA devices, with `retain`, or with a
 *   cost model. There the end waits behind the bytes, and exit for 5 seconds at most. It is decided once: after
 *   shutdown the kernel's socket takes no byte, so a later close leaves the bytes on the link.
 * - A process that is killed loses what is staged: its peer gets ECONNRESET, behind what was delivered (word 14).
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
/*
 * The sender has filled a ring that may become larger: the stage opens at once. It stands in for the ring that the
 * reader offers when it reads. Any thread.
 */
bool shunt_overflow_opens(struct shunt_stream *stream);
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
/* Bytes that the stage may hold now though the ring has no room for them; 0: it may not, or it has them. */
uint64_t shunt_overflow_most(struct shunt_stream *stream) SHUNT_REQUIRES(stream->tx.lock);
/* Takes up to `bytes` of `from`, as far as there is room. Returns how many. */
size_t shunt_overflow_take(struct shunt_stream *stream, struct shunt_iov *from, size_t bytes)
	SHUNT_REQUIRES(stream->tx.lock);
/* The program has set SO_SNDBUF or TCP_NOTSENT_LOWAT. */
void shunt_overflow_changed(struct shunt_stream *stream);
/* Finds readers that do not read. */
void shunt_overflow_run(struct shunt_task *task);
/* Bytes that the kernel lets a send buffer grow to: tcp_wmem's third word. Reads a file, before the service thread starts. */
uint64_t shunt_overflow_bound(struct shunt_engine *engine);

#endif
