/* SPDX-License-Identifier: MIT */
/*
 * Looks at a stream's readable bytes without reading them, over every switch and ring that was announced. rx.lock
 * held.
 */
#ifndef SHUNT_CORE_STREAM_PEEK_H
#define SHUNT_CORE_STREAM_PEEK_H

#include "core/base/iov.h"
#include "core/stream/stream.h"

/*
 * Copies up to to->left bytes from the present ring, of those from stream offset `head` on; or passes them over.
 * `copy`: that word of SHUNT_TUNE. How many. After a fault none, and to->bad. The kernel has what was sent together in one
 * buffer, too, and copies that whole or not at all.
 */
static inline __attribute__((always_inline)) size_t
shunt_peek_ring(struct shunt_seat_in *in, struct shunt_iov *to, bool discard, uint64_t head,
		const uint64_t *copy)
{
	uint64_t end = atomic_load_explicit(&in->tail, memory_order_acquire);
	uint64_t next = atomic_load_explicit(&in->next_from, memory_order_acquire);
	size_t at = head & (in->ring.bytes - 1);
	struct shunt_iov begun;
	size_t bytes, first;

	if (next < end)
		end = next;
	bytes = end - head < to->left ? end - head : to->left;
	first = bytes < in->ring.bytes - at ? bytes : in->ring.bytes - at;
	if (!bytes)
		return 0;
	if (discard) {
		shunt_iov_advance(to, bytes);
		return bytes;
	}
	/* Nearly always one piece and one buffer. */
	if (__builtin_expect(bytes == first && to->iov->iov_len - to->skip >= bytes, 1)) {
		to->bad = !shunt_copy((char *)to->iov->iov_base + to->skip, in->ring.at + at, bytes,
				      copy);
		if (__builtin_expect(to->bad, 0))
			return 0;
		shunt_iov_advance(to, bytes);
		return bytes;
	}
	begun = *to;
	if (__builtin_expect(shunt_iov_fill(to, in->ring.at + at, first, copy) &&
				     (bytes == first ||
				      shunt_iov_fill(to, in->ring.at, bytes - first, copy)),
			     1))
		return bytes;
	*to = begun;
	to->bad = true;
	return 0;
}

/* MSG_PEEK behind what has been seen, which ends at `at`. How many bytes more. */
size_t shunt_peek_on(struct shunt_engine *engine, int fd, struct shunt_stream *stream, struct shunt_iov *to, uint64_t at,
		     int flags);
/*
 * How much can be read, with `tcp` bytes in the kernel's queue. Exact with rx.lock held. Without it a reader may move
 * meanwhile, and the answer is of about now.
 */
uint64_t shunt_peek_unread(struct shunt_stream *stream, uint64_t tcp);

#endif
