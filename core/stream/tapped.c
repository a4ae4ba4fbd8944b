/* SPDX-License-Identifier: MIT */
#include "core/stream/tapped.h"
#include <errno.h>
#include "core/base/config.h"
#include "core/base/iov.h"
#include "core/base/sys.h"
#include "core/poll/group.h"
#include "core/stream/tuple.h"

/*
 * The service thread may be writing a candidate's addresses, so the kernel is asked. A socket that both ends have shut
 * has none any more.
 */
static void name(const struct shunt_stream *stream, struct shunt_tuple *tuple)
{
	int saved = errno;

	if (atomic_load(&((struct shunt_stream *)stream)->state) == SHUNT_LINKED)
		*tuple = stream->tuple;
	else if (shunt_tuple_of(stream->group->sys, stream->fd, tuple))
		*tuple = (struct shunt_tuple){ 0 };
	errno = saved;
}

/* Kept apart, so that a call without a listener has no part of it. */
static __attribute__((noinline)) void tell(struct shunt_stream *stream,
					   struct shunt_tap_record *what, uint64_t bytes,
					   const struct shunt_iov *behind)
{
	struct shunt_group *group = stream->group;
	struct shunt_tap *tap = shunt_tapping_enter(group->tapping);

	if (!tap)
		return;
	name(stream, &what->tuple);
	what->time = group->sys->now();
	what->born = stream->born;
	if (stream->born >= atomic_load_explicit(&tap->since, memory_order_relaxed))
		what->flags |= SHUNT_TAP_WHOLE;
	if (stream->role == SHUNT_CONNECTOR)
		what->flags |= SHUNT_TAP_CONNECTED;
	shunt_tap_put(tap, what, bytes, behind, &group->config->copy);
	shunt_tapping_leave(group->tapping);
}

void shunt_tapped_sent(struct shunt_stream *stream, uint64_t offset, uint64_t bytes,
		       const struct shunt_iov *behind, bool link)
{
	struct shunt_tap_record what = { .kind = SHUNT_TAP_DATA,
					 .offset = offset,
					 .flags = SHUNT_TAP_OUT | (link ? SHUNT_TAP_LINK : 0) };

	shunt_assert_held(&stream->tx.lock);
	if (bytes)
		tell(stream, &what, bytes, behind);
}

void shunt_tapped_read(struct shunt_stream *stream, uint64_t offset, uint64_t bytes,
		       const struct shunt_iov *behind)
{
	struct shunt_tap_record what = { .kind = SHUNT_TAP_DATA, .offset = offset };

	shunt_assert_held(&stream->rx.lock);
	tell(stream, &what, bytes, behind);
}

void shunt_tapped_ring(struct shunt_stream *stream, uint64_t bytes)
{
	const struct shunt_seat_in *in = &stream->seat->in;
	uint64_t head = atomic_load(&stream->rx.head), at = head & (in->ring.bytes - 1),
		 first = bytes < in->ring.bytes - at ? bytes : in->ring.bytes - at;
	struct iovec pieces[] = { { in->ring.at + at, first }, { in->ring.at, bytes - first } };
	struct shunt_tap_record what = { .kind = SHUNT_TAP_DATA,
					 .offset = head,
					 .flags = SHUNT_TAP_LINK };
	struct shunt_iov of;

	shunt_assert_held(&stream->rx.lock);
	shunt_iov_begin(&of, pieces, 2);
	shunt_iov_advance(&of, bytes);
	tell(stream, &what, bytes, &of);
}

void shunt_tapped_over(struct shunt_stream *stream, ssize_t result)
{
	struct shunt_tap_record what = { .kind = result ? SHUNT_TAP_RESET : SHUNT_TAP_END,
					 .offset = atomic_load(&stream->rx.head) };

	shunt_assert_held(&stream->rx.lock);
	if (!result || result == -ECONNRESET)
		tell(stream, &what, 0, NULL);
}

static bool is_carried(const struct shunt_stream *stream)
{
	uint8_t state = atomic_load(&((struct shunt_stream *)stream)->state);

	return state == SHUNT_LINKED || state == SHUNT_CANDIDATE;
}

void shunt_tapped_event(struct shunt_stream *stream, enum shunt_tap_kind kind)
{
	struct shunt_tap_record what = { .kind = (uint8_t)kind,
					 .offset = stream->tx.offset,
					 .flags = SHUNT_TAP_OUT };

	shunt_assert_held(&stream->rx.lock);
	shunt_assert_held(&stream->tx.lock);
	if (shunt_tapping_listens(stream->group->tapping) && is_carried(stream))
		tell(stream, &what, 0, NULL);
}
