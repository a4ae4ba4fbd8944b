/* SPDX-License-Identifier: MIT */
#include "core/stream/repeat.h"
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include "core/poll/group.h"
#include "core/base/sys.h"
#include "core/stream/kernel_tcp.h"

#define ARRIVING 10000000ull	/* ns without progress that bytes on their way over TCP may take */

static uint64_t *place(const struct shunt_stream *stream)
{
	return &stream->seat->control->word[SHUNT_IMM_REPEAT];
}

/* A child's copy of its parent's stream has no control line. */
static bool is_due(const struct shunt_stream *stream)
{
	return shunt_intake_repeats(&stream->seat->in.intake) &&
	       atomic_load(&stream->state) == SHUNT_LINKED;
}

const char *shunt_repeat_heard(struct shunt_stream *stream, uint64_t at)
{
	struct shunt_rx *rx = &stream->rx;
	struct shunt_seat_in *in = &stream->seat->in;
	uint64_t reads_to = shunt_intake_on_link(&in->intake) ? atomic_load(&rx->head) :
								atomic_load(&in->boundary);

	shunt_assert_held(&stream->group->lock);
	return at > reads_to || !shunt_intake_try(&in->intake, SHUNT_INTAKE_REPEATS) ?
		       "a repeat of what has not been sent" :
		       NULL;
}

bool shunt_repeat_overtook(struct shunt_stream *stream, uint64_t at)
{
	struct shunt_rx *rx = &stream->rx;
	struct shunt_seat_in *in = &stream->seat->in;

	shunt_assert_held(&stream->group->lock);
	if (at >= atomic_load(&rx->head) || atomic_load(&in->boundary) != SHUNT_NEVER ||
	    shunt_intake_on_link(&in->intake) ||
	    __atomic_load_n(place(stream), __ATOMIC_ACQUIRE) != at)
		return false;
	shunt_intake_turn(&in->intake, SHUNT_INTAKE_RETIRES);
	return true;
}

/* Where the reader passes, or has passed, to TCP behind the repeat. */
static uint64_t turns_at(const struct shunt_stream *stream)
{
	uint64_t boundary = atomic_load(&stream->seat->in.boundary),
		 second = atomic_load(&stream->seat->in.second);

	if (shunt_intake_on_link(&stream->seat->in.intake))
		return boundary == SHUNT_NEVER ? atomic_load(&stream->seat->in.tail) : boundary;
	return boundary == SHUNT_NEVER ? atomic_load(&stream->rx.head) : second;
}

/* The reader is still to pass the UPGRADE before which it reads TCP: there is nothing to drop yet. */
static bool is_ahead(const struct shunt_seat_in *in)
{
	return !shunt_intake_on_link(&in->intake) && atomic_load(&in->boundary) != SHUNT_NEVER;
}

uint64_t shunt_repeat_bytes(const struct shunt_stream *stream)
{
	uint64_t from, to;

	if (!is_due(stream))
		return 0;
	from = __atomic_load_n(place(stream), __ATOMIC_RELAXED);
	to = turns_at(stream);
	return to == SHUNT_NEVER || from >= to ? 0 : to - from;
}

/* A reader that is ahead of the UPGRADE has bytes before them to read. */
uint64_t shunt_repeat_without(const struct shunt_stream *stream, uint64_t tcp)
{
	const struct shunt_rx *rx = &stream->rx;
	uint64_t repeated = shunt_repeat_bytes(stream), head = atomic_load(&rx->head);
	uint64_t from, before = 0;

	if (repeated && is_ahead(&stream->seat->in)) {
		from = __atomic_load_n(place(stream), __ATOMIC_RELAXED);
		before = from > head ? from - head : 0;	/* without rx.lock: the reader may have come to it */
	}
	if (tcp <= before)
		return tcp;
	return tcp - before > repeated ? tcp - repeated : before;
}

/* As many as are there, which an error behind them does not hide. 0: none. */
static uint64_t drop_some(struct shunt_stream *stream, int fd, uint64_t most)
{
	struct iovec iov = { .iov_len = most };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
	int there = 0;
	ssize_t got;

	if (stream->group->sys->ioctl(fd, FIONREAD, &there) || there <= 0)
		return 0;
	if (most > (uint64_t)there)
		iov.iov_len = (size_t)there;
	got = stream->group->sys->recvmsg(fd, &message, MSG_TRUNC | MSG_DONTWAIT);
	return got > 0 ? (uint64_t)got : 0;
}

/* The kernel has the peer's end, so nothing more comes. poll() says POLLRDHUP after a shutdown of our own, too. */
static bool is_ended(struct shunt_stream *stream)
{
	return shunt_stream_tcp_ended(stream) || shunt_stream_tcp_closed(stream);
}

bool shunt_repeat_drop(struct shunt_stream *stream, int fd, bool patient)
{
	const struct shunt_sys *sys = stream->group->sys;
	struct shunt_rx *rx = &stream->rx;
	uint64_t head = atomic_load(&rx->head), from, got, until = 0;
	bool ended;

	shunt_assert_held(&stream->rx.lock);
	if (is_ahead(&stream->seat->in))
		return true;
	while ((from = __atomic_load_n(place(stream), __ATOMIC_RELAXED)) < head) {
		ended = patient && until && is_ended(stream); /* before the look: the last bytes come with the end */
		got = drop_some(stream, fd, head - from);
		rx->nonce.aside += got;
		__atomic_store_n(place(stream), from + got, __ATOMIC_RELAXED);
		if (got || !until) {
			until = sys->now() + ARRIVING;
			continue;
		}
		if (!patient || ended || sys->now() >= until)
			return false;
		sched_yield();
	}
	return true;
}

void shunt_repeat_await(struct shunt_stream *stream, int fd)
{
	const struct shunt_sys *sys = stream->group->sys;
	struct timespec patience = { .tv_nsec = ARRIVING };
	uint64_t from, before = UINT64_MAX, until = 0;
	bool done = false, ended;

	while (!done && is_due(stream)) {
		struct pollfd pfd = { .fd = fd, .events = POLLIN };

		ended = is_ended(stream); /* before the look, as there */
		shunt_lock_take(&stream->rx.lock);
		done = !is_due(stream) || shunt_repeat_drop(stream, fd, false);
		from = done ? before : __atomic_load_n(place(stream), __ATOMIC_RELAXED);
		shunt_lock_leave(&stream->rx.lock);
		if (from != before)
			until = sys->now() + ARRIVING;
		else
			sys->yield(); /* it waits in vain: the program has shut down its reading */
		before = from;
		done = done || ended || sys->now() >= until ||
		       sys->ppoll(&pfd, 1, &patience, NULL) <= 0;
	}
}

bool shunt_repeat_catch_up(struct shunt_stream *stream, int fd)
{
	shunt_assert_held(&stream->rx.lock);
	if (is_ahead(&stream->seat->in))
		return true;
	if (!shunt_repeat_drop(stream, fd, false))
		return false;
	shunt_intake_turn(&stream->seat->in.intake, SHUNT_INTAKE_CATCHES_UP);
	return true;
}

/* The reader stands where it passes to TCP, so the kernel is asked already (reads_tcp() of ready.c). */
static bool is_about_to_turn(const struct shunt_stream *stream)
{
	return shunt_intake_on_link(&stream->seat->in.intake) &&
	       atomic_load(&stream->seat->in.boundary) == atomic_load(&stream->rx.head);
}

bool shunt_repeat_hides(struct shunt_stream *stream)
{
	struct shunt_rx *rx = &stream->rx;
	struct shunt_seat_in *in = &stream->seat->in;
	bool dropped = true;
	int there = 0;

	if (!is_due(stream) || is_ahead(in) ||
	    (shunt_intake_on_link(&in->intake) && !is_about_to_turn(stream)))
		return false;
	if (!shunt_lock_try(&rx->lock))
		return true;	/* a reader is at it */
	if (is_due(stream) && stream->fd >= 0)
		dropped = is_about_to_turn(stream) ? shunt_repeat_drop(stream, stream->fd, false) :
						     shunt_repeat_catch_up(stream, stream->fd);
	shunt_lock_leave(&rx->lock);
	return !dropped || (!stream->group->sys->ioctl(stream->fd, FIONREAD, &there) && !there);
}

/* The kernel's queue has `wanted` bytes; `trusts`: or more of them are under way. */
static bool comes(struct shunt_stream *stream, int fd, uint64_t wanted, bool trusts)
{
	const struct shunt_sys *sys = stream->group->sys;
	uint64_t until = sys->now() + ARRIVING;
	bool ended;
	int there;

	do {
		ended = is_ended(stream);
		there = 0;
		sys->ioctl(fd, FIONREAD, &there);
		if ((uint64_t)there >= wanted)
			return true;
		sched_yield();
	} while (!ended && sys->now() < until);
	return trusts && !ended;
}

bool shunt_repeat_covers(struct shunt_stream *stream, int fd, bool declined)
{
	struct shunt_rx *rx = &stream->rx;
	struct shunt_seat_in *in = &stream->seat->in;
	uint64_t end = shunt_end_at(&stream->end), head = atomic_load(&rx->head);

	shunt_assert_held(&stream->rx.lock);
	if (end == SHUNT_NEVER)
		end = atomic_load(&in->tail);
	return shunt_intake_repeats(&in->intake) && shunt_repeat_drop(stream, fd, true) &&
	       (end <= head || comes(stream, fd, end - head, !declined));
}
