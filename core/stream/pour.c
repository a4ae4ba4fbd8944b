/* SPDX-License-Identifier: MIT */
/*
 * From a stream into a pipe, as splice() moves bytes (splice.h). The pipe takes them from the ring itself, and those
 * of TCP from a copy. They are read only as far as the pipe has taken them, under one hold of rx.lock. So none is lost
 * where another writer has filled the pipe.
 */
#include <errno.h>
#include "core/base/iov.h"
#include "core/fd/thread.h"
#include "core/poll/group.h"
#include "core/stream/handover.h"
#include "core/stream/offer.h"
#include "core/stream/rx.h"
#include "core/stream/splice.h"
#include "core/stream/stream.h"
#include "core/stream/stream_end.h"
#include "core/stream/stream_error.h"
#include "core/stream/stream_option.h"
#include "core/stream/tapped.h"

#define TCP_PIECE 4096	/* on its way to the link, a stream has few bytes on TCP */

struct pour {
	struct shunt_engine *engine;
	struct shunt_stream *stream;
	shunt_give *give;
	int fd, pipe;
	char copy[TCP_PIECE];
};

/* Unread bytes that lie contiguously in the present ring. */
static size_t view_ring(const struct shunt_stream *stream, const uint8_t **at)
{
	const struct shunt_seat_in *in = &stream->seat->in;
	uint64_t head = atomic_load_explicit(&stream->rx.head, memory_order_relaxed),
		 end = atomic_load_explicit(&in->tail, memory_order_acquire),
		 next = atomic_load_explicit(&in->next_from, memory_order_acquire);
	size_t from = head & (in->ring.bytes - 1), span = in->ring.bytes - from;

	if (next < end)
		end = next;
	*at = in->ring.at + from;
	return end - head < span ? end - head : span;
}

/* The next bytes, which stay where they are: how many, 0 at the end, or -errno. */
static ssize_t view(struct pour *pour, const void **at)
{
	struct iovec piece = { .iov_base = pour->copy, .iov_len = 1 };
	const uint8_t *ring;
	struct shunt_iov to;
	ssize_t got;

	shunt_assert_held(&pour->stream->rx.lock);
	*at = pour->copy;
	if (!shunt_intake_on_link(&pour->stream->seat->in.intake))
		piece.iov_len = sizeof(pour->copy);
	shunt_iov_begin(&to, &piece, 1);
	got = shunt_rx_receive(pour->engine, pour->fd, pour->stream, &to, MSG_PEEK | MSG_DONTWAIT);
	if (got <= 0 || !shunt_intake_on_link(&pour->stream->seat->in.intake))
		return got;
	got = (ssize_t)view_ring(pour->stream, &ring);
	*at = ring;
	return got;
}

/* They are read. A tap wants those of TCP, which are in the copy; else they are thrown away unseen. */
static void pass(struct pour *pour, const void *at, size_t bytes)
{
	bool copied = at == pour->copy && shunt_tapping_listens(pour->stream->group->tapping);
	struct iovec piece = { .iov_base = copied ? pour->copy : NULL, .iov_len = bytes };
	struct shunt_iov to;

	shunt_iov_begin(&to, &piece, 1);
	shunt_rx_receive(pour->engine, pour->fd, pour->stream, &to,
			 (copied ? 0 : MSG_TRUNC) | MSG_DONTWAIT);
}

static ssize_t pour_all(struct pour *pour, size_t bytes)
{
	size_t done = 0;
	ssize_t there = 0, given = 0;
	const void *at;

	while (done < bytes) {
		there = view(pour, &at);
		if (there <= 0)
			break;
		if ((size_t)there > bytes - done)
			there = (ssize_t)(bytes - done);
		given = pour->give(pour->pipe, at, (size_t)there);
		if (given <= 0)
			break;
		pass(pour, at, (size_t)given);
		done += (size_t)given;
		if (given < there)
			break;
	}
	if (done && there < 0 && there != -EAGAIN)	/* reported by the next call */
		shunt_end_learn(&pour->stream->end, SHUNT_LEARN_KEPT, (int)-there);
	return done ? (ssize_t)done : there > 0 ? given : there;
}

ssize_t shunt_stream_pour(struct shunt_engine *engine, int fd, struct shunt_stream *stream,
			  int pipe, shunt_give *give, size_t bytes)
{
	struct pour pour = { .engine = engine, .stream = stream, .give = give, .fd = fd, .pipe = pipe };
	ssize_t done = -ERESTART;

	if (shunt_stream_use_is_news(stream))
		shunt_offer_used(engine, stream);
	if (shunt_stream_is_shared(stream))
		shunt_stream_look_at_mode(engine, fd, stream);
	if (atomic_load(&stream->state) == SHUNT_FOREIGN &&
	    shunt_handover_ask(engine, fd, stream) == -ENOMEM)
		return -ENOMEM;
	shunt_thread_begin();
	shunt_lock_take(&stream->rx.lock);
	if (shunt_streams_still(engine, &pour.fd, stream) && !shunt_stream_is_kernels(stream))
		done = pour_all(&pour, bytes);
	shunt_lock_leave(&stream->rx.lock);
	if (__builtin_expect(stream->parting == SHUNT_ORPHANED, 0))
		shunt_streams_end_orphan(stream);
	return done;
}
