/* SPDX-License-Identifier: MIT */
#include <limits.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include "core/engine.h"
#include "core/stream/handover.h"
#include "core/stream/kernel_tcp.h"
#include "core/stream/offer.h"
#include "core/stream/peek.h"
#include "core/stream/proof.h"
#include "core/stream/repeat.h"
#include "core/stream/track.h"

/* Up to `limit` bytes of the kernel's queue from the one at `skip` on, which stay there. */
static void peek_kernel(struct shunt_engine *engine, int fd, struct shunt_iov *to, uint64_t skip, uint64_t limit, int flags)
{
	struct iovec iov[SHUNT_IOV_BATCH + 1] = { { .iov_len = skip } };
	struct msghdr message = { .msg_iov = iov };
	ssize_t got = -1;
	int unread = 0;

	/* Where there is nothing it would take the socket's error, which is not to be told yet. The peer says `skip`. */
	if (engine->sys->ioctl(fd, FIONREAD, &unread) || (uint64_t)unread <= skip)
		return;
	if (skip)
		iov[0].iov_base = malloc(skip);
	message.msg_iovlen = 1 + shunt_iov_cut(to, limit, iov + 1);
	if (!skip || iov[0].iov_base)
		got = engine->sys->recvmsg(fd, &message, (flags & ~(MSG_WAITALL | MSG_TRUNC)) | MSG_DONTWAIT);
	free(iov[0].iov_base);
	if (got > (ssize_t)skip)
		shunt_iov_advance(to, got - skip);
}

/*
 * MSG_PEEK goes on behind the end of the present ring and of the present track, as far as has been announced.
 * Nothing moves. `at`: what has been seen so far ends there.
 */
size_t shunt_peek_on(struct shunt_engine *engine, int fd, struct shunt_stream *stream, struct shunt_iov *to, uint64_t at,
		     int flags)
{
	struct shunt_rx *rx = &stream->rx;
	struct shunt_seat_in *in = &stream->seat->in;
	struct shunt_seat_in next = { .ring = { .at = in->ring.at, .bytes = in->ring.bytes } };
	uint64_t boundary = atomic_load(&in->boundary), second = atomic_load(&in->second),
		 tail = atomic_load(&in->tail);
	bool link = shunt_intake_on_link(&in->intake), turns = atomic_load(&in->next_from) == at;
	uint64_t skip = link ? 0 : boundary - atomic_load(&rx->head), ends = link ? boundary : second;
	size_t before = to->left;

	if ((!link && boundary != at))
		return 0;
	for (int i = 0; i < 2 && to->left; i++) {	/* the rest of this ring, then the next one */
		if (turns) {
			next.ring.at = in->ring.next;
			next.ring.bytes = atomic_load(&in->ring.next_bytes);
		}
		atomic_store(&next.tail, ends < tail ? ends : tail);
		atomic_store(&next.next_from, turns ? SHUNT_NEVER : atomic_load(&in->next_from));
		if (atomic_load(&next.tail) > at)
			at += shunt_peek_ring(&next, to, flags & MSG_TRUNC, at,
					      &engine->config.copy);
		if (turns || atomic_load(&in->next_from) != at)
			break;
		turns = true;
	}
	if (at == ends && to->left)
		peek_kernel(engine, fd, to, skip + shunt_repeat_bytes(stream),
			    link ? second - at : SHUNT_NEVER, flags);
	return before - to->left;
}

/* Of so many bytes in the kernel's queue those that are the program's, if what is expected there is the nonce. */
static uint64_t without_nonce(struct shunt_stream *stream, uint64_t tcp)
{
	uint64_t before = atomic_load(&stream->seat->in.proof.at) - atomic_load(&stream->rx.head);

	if (tcp <= before)	/* also where none is expected: SHUNT_NEVER */
		return tcp;
	return tcp - before > SHUNT_NONCE_BYTES ? tcp - SHUNT_NONCE_BYTES : before;
}

uint64_t shunt_peek_unread(struct shunt_stream *stream, uint64_t tcp)
{
	/* `head` first: the borders that are read behind it are not before it. */
	uint64_t head = atomic_load(&stream->rx.head), at = head,
		 tail = atomic_load(&stream->seat->in.tail);
	uint64_t ends[] = { atomic_load(&stream->seat->in.boundary),
			    atomic_load(&stream->seat->in.second), SHUNT_NEVER };
	bool link = shunt_intake_on_link(&stream->seat->in.intake);

	tcp = without_nonce(stream, tcp);
	for (int i = 0; i < 3; i++, link = !link) {
		uint64_t there;

		if (ends[i] < at)	/* without rx.lock: the reader has passed a switch meanwhile */
			break;
		there = link ? (tail > at ? tail - at : 0) : tcp;
		if (there > ends[i] - at)
			there = ends[i] - at;
		at += there;
		if (!link)
			tcp -= there;
		if (at != ends[i])
			break;
	}
	return at - head;
}

int shunt_stream_inq(struct shunt_engine *engine, int fd, struct shunt_stream *stream)
{
	struct shunt_seat_in *in = &stream->seat->in;
	uint64_t bytes;
	int tcp = 0;

	if (stream->sharing.slot && atomic_load(&stream->usage) == SHUNT_USE_NONE)
		shunt_offer_used(engine, stream);
	if (atomic_load(&stream->state) == SHUNT_FOREIGN)
		shunt_handover_ask(engine, fd, stream);
	shunt_group_poll(&engine->group);
	shunt_lock_take(&stream->rx.lock);
	shunt_track_settle(stream);
	if (!shunt_intake_on_link(&in->intake) || atomic_load(&in->boundary) != SHUNT_NEVER)
		engine->sys->ioctl(fd, FIONREAD, &tcp);
	bytes = shunt_peek_unread(stream,
				  shunt_repeat_without(stream, tcp > 0 ? (uint64_t)tcp : 0));
	shunt_lock_leave(&stream->rx.lock);
	return bytes > INT_MAX ? INT_MAX : (int)bytes;
}

/* The kernel counts the FIN as a byte behind the last one, and as long as it is the next to be read. */
static bool end_has_come(struct shunt_stream *stream, uint64_t unread)
{
	struct shunt_rx *rx = &stream->rx;
	struct shunt_seat_in *in = &stream->seat->in;
	uint64_t fin = shunt_end_at(&stream->end), at;
	bool tcp;

	shunt_lock_take(&rx->lock);
	at = atomic_load(&rx->head) + unread;
	tcp = !shunt_intake_on_link(&in->intake) && atomic_load(&in->boundary) == SHUNT_NEVER;
	shunt_lock_leave(&rx->lock);
	return fin != SHUNT_NEVER ? fin <= at : tcp && shunt_stream_tcp_ended(stream);
}

int shunt_stream_unread(struct shunt_engine *engine, int fd, struct shunt_stream *stream)
{
	int bytes = shunt_stream_inq(engine, fd, stream);

	return bytes + (bytes < INT_MAX && end_has_come(stream, (uint64_t)bytes));
}

int shunt_stream_at_mark(struct shunt_engine *engine, int fd, struct shunt_stream *stream)
{
	struct shunt_seat_in *in = &stream->seat->in;
	int mark = 0, result = 0;

	if (stream->sharing.slot && atomic_load(&stream->usage) == SHUNT_USE_NONE)
		shunt_offer_used(engine, stream);
	if (atomic_load(&stream->state) == SHUNT_FOREIGN)
		shunt_handover_ask(engine, fd, stream);
	shunt_group_poll(&engine->group);
	shunt_lock_take(&stream->rx.lock);
	shunt_track_settle(stream);
	if (!shunt_intake_on_link(&in->intake))	/* else bytes of the link come first */
		result = engine->sys->ioctl(fd, SIOCATMARK, &mark) ? -errno : mark;
	shunt_lock_leave(&stream->rx.lock);
	return result;
}
