/* SPDX-License-Identifier: MIT */
/*
 * A stream tells a tap (core/trace/tap.h) of each byte that a call of the program has moved, and by which track. It
 * tells how the connection ends, too. A byte counts as sent when the stream has accepted it. Bytes that are only
 * looked at (MSG_PEEK) are not told of; neither is what TCP carries again, or the nonce.
 */
#ifndef SHUNT_CORE_STREAM_TAPPED_H
#define SHUNT_CORE_STREAM_TAPPED_H

#include "core/stream/stream.h"
#include "core/trace/tap.h"

struct shunt_iov;

/*
 * Bytes from `offset` on have been sent, or read from TCP. `behind`: where they end in the buffers of the call. NULL:
 * the caller does not have them. The direction's lock held.
 */
void shunt_tapped_sent(struct shunt_stream *stream, uint64_t offset, uint64_t bytes,
		       const struct shunt_iov *behind, bool link);
void shunt_tapped_read(struct shunt_stream *stream, uint64_t offset, uint64_t bytes,
		       const struct shunt_iov *behind);
/* The next bytes of the present ring are read; they are still there. rx.lock held. */
void shunt_tapped_ring(struct shunt_stream *stream, uint64_t bytes);
/* A receive of the program had nothing: 0 or -errno. rx.lock held. */
void shunt_tapped_over(struct shunt_stream *stream, ssize_t result);
/* Of a stream that is not the kernel's alone; nothing where nobody listens. Both locks held. */
void shunt_tapped_event(struct shunt_stream *stream, enum shunt_tap_kind kind);

#endif
