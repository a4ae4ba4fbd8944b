/* SPDX-License-Identifier: MIT */
/*
 * From a pipe into a stream, as splice() moves bytes (splice.h). There is room for them before they are taken from the
 * pipe: on a link in the stage, where the pipe writes them itself. The peer's ring has as much, or the stage stands in
 * for it (overflow.h). Both locks that this needs are under tx.lock, so the room stays.
 *
 * The kernel's socket promises no number of bytes. One that can be written to takes a small piece, though, except without
 * memory, or with a tiny SO_SNDBUF. There the call waits until it has taken the rest, whatever O_NONBLOCK says.
 */
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include "core/base/config.h"
#include "core/base/iov.h"
#include "core/base/sys.h"
#include "core/fd/thread.h"
#include "core/lane/lane.h"
#include "core/lane/send_queue.h"
#include "core/poll/cancel.h"
#include "core/poll/group.h"
#include "core/stream/credit.h"
#include "core/stream/handover.h"
#include "core/stream/kernel_tcp.h"
#include "core/stream/offer.h"
#include "core/stream/overflow.h"
#include "core/stream/rx.h"
#include "core/stream/splice.h"
#include "core/stream/stream.h"
#include "core/stream/stream_end.h"
#include "core/stream/stream_error.h"
#include "core/stream/stream_option.h"
#include "core/stream/tapped.h"
#include "core/stream/tx.h"
#include "core/stream/user_timeout.h"
#include "core/stream/wait.h"
#include "core/trace/histogram.h"

#define TCP_PIECE 4096

struct pull {
	struct shunt_engine *engine;
	struct shunt_stream *stream;
	shunt_take *take;
	int fd, pipe;
	int flags;	/* MSG_MORE or 0 */
	size_t done;	/* bytes so far */
};

/* --- over TCP --- */

/* The rest of a piece that is in no pipe any more: it waits for as long as there is somebody to send it to. */
static int send_rest(struct pull *pull, struct shunt_iov *from)
{
	struct shunt_stream *stream = pull->stream;
	int state = shunt_cancel_off();
	ssize_t sent = 0;

	shunt_assert_held(&stream->tx.lock);
	while (from->left) {
		sent = shunt_tx_transmit(pull->engine, pull->fd, stream, from,
					 pull->flags | MSG_DONTWAIT);
		if (sent < 0 && sent != -EAGAIN)
			break;
		if (sent >= 0)
			continue;
		shunt_thread_endure();
		shunt_wait_call(stream, &stream->tx.lock, EPOLLOUT, SHUNT_NEVER, true);
		sent = -EBADF;
		if (!shunt_streams_still(pull->engine, &pull->fd, stream))
			break;
	}
	shunt_cancel_restore(state);
	return from->left ? (int)sent : 0;
}

/* 0: the kernel takes a piece now, or -errno. */
static int ask_kernel(struct pull *pull)
{
	struct pollfd ask = { .fd = pull->fd, .events = POLLOUT };
	struct timespec none = { 0, 0 };
	struct msghdr nothing = { .msg_iovlen = 0 };

	shunt_assert_held(&pull->stream->tx.lock);
	if (pull->stream->group->sys->ppoll(&ask, 1, &none, NULL) <= 0)
		return -EAGAIN;
	if (ask.revents & (POLLERR | POLLHUP) &&
	    pull->stream->group->sys->sendmsg(pull->fd, &nothing, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return (int)shunt_stream_told_error(pull->stream, errno);
	return ask.revents & POLLOUT ? 0 : -EAGAIN;
}

static ssize_t by_tcp(struct pull *pull, size_t bytes)
{
	char piece[TCP_PIECE];
	struct iovec iov = { .iov_base = piece };
	struct shunt_iov from;
	ssize_t taken;
	int error = shunt_tx_ready_tcp(pull->engine, pull->fd, pull->stream);

	if (!error)
		error = ask_kernel(pull);
	if (error)
		return error;
	taken = pull->take(pull->pipe, piece, bytes < sizeof(piece) ? bytes : sizeof(piece));
	if (taken <= 0)
		return taken;
	iov.iov_len = (size_t)taken;
	shunt_iov_begin(&from, &iov, 1);
	return shunt_tx_result(pull->stream, (size_t)taken, send_rest(pull, &from));
}

/* --- over the link --- */

/* Bytes for which the ring and the stage have room. */
static size_t room_of(struct shunt_stream *stream, bool apart, void **at)
{
	struct shunt_seat *seat = stream->seat;
	size_t room, fits;

	shunt_assert_held(&stream->tx.lock);
	if (shunt_seat_turns(&seat->out))
		shunt_lane_change_ring(seat->lane, seat);
	room = shunt_seat_room(&seat->out, stream->tx.offset);
	if (!room)
		return 0;
	fits = shunt_lane_fill_room(seat, shunt_send_queue_limit(seat), apart, at);
	if (!fits && shunt_send_queue_full(seat))
		fits = shunt_lane_fill_room(seat, shunt_send_queue_limit(seat), apart, at);
	return fits < room ? fits : room;
}

/* Bytes that the stage may hold though the peer's ring has no room. */
static size_t room_beyond(struct shunt_stream *stream, bool open, bool apart, void **at)
{
	struct shunt_seat *seat = stream->seat;
	uint64_t most = 0;
	size_t room = 0;

	shunt_assert_held(&stream->tx.lock);
	if (open || shunt_overflow_is_open(&seat->out) || shunt_overflow_opens(stream))
		most = shunt_overflow_most(stream);
	if (most)
		room = shunt_lane_fill_room(seat, most, apart, at);
	if (room)
		shunt_user_timeout_begin(stream);
	return room;
}

/*
 * A sender without room asks to be woken before its last look at the credit, so that it misses no credit. See send_link()
 * in tx.c.
 */
static size_t find_room(struct pull *pull, bool apart, void **at)
{
	struct shunt_stream *stream = pull->stream;
	struct shunt_seat_out *out = &stream->seat->out;
	bool open = false;
	size_t room = 0;

	shunt_assert_held(&stream->tx.lock);
	for (int look = 0; !(room = room_of(stream, apart, at)) && look < 2; look++) {
		open = open || shunt_overflow_was_promised(out) || shunt_overflow_is_open(out);
		atomic_fetch_add(&stream->tx.refusals, 1);
		atomic_store(&out->starved, true);
		if (atomic_load_explicit(&out->gather_since, memory_order_relaxed))
			shunt_lane_push(stream->seat->lane, stream->seat);
		shunt_group_poll(stream->group);
		if (!look && out->ring.bytes < stream->group->config->ring_max &&
		    !atomic_load(&out->ring.offer))
			shunt_credit_look(stream);
	}
	if (!room)
		room = room_beyond(stream, open, apart, at);
	if (room)
		return room;
	shunt_overflow_note(stream);
	if (!shunt_seat_room(out, stream->tx.offset))
		shunt_tx_say_blocked(stream);
	return 0;
}

static void tell_tap(struct shunt_stream *stream, void *at, size_t bytes)
{
	struct iovec piece = { .iov_base = at, .iov_len = bytes };
	struct shunt_iov of;

	shunt_assert_held(&stream->tx.lock);
	shunt_iov_begin(&of, &piece, 1);
	shunt_iov_advance(&of, bytes);
	shunt_tapped_sent(stream, stream->tx.offset, bytes, &of, true);
}

static ssize_t by_link(struct pull *pull, size_t bytes)
{
	struct shunt_stream *stream = pull->stream;
	struct shunt_seat *seat = stream->seat;
	bool apart = !shunt_lane_merges(seat->lane);
	uint64_t before = stream->tx.offset;
	void *at = NULL;
	size_t room;
	ssize_t taken;

	if (atomic_load(&seat->lane->failed))
		return -EAGAIN;
	if (!shunt_send_queue_ready(seat, apart)) {	/* no memory: TCP has its own */
		atomic_store(&seat->out.want_link, false);
		seat->out.quick = false;
		return -EAGAIN;
	}
	room = find_room(pull, apart, &at);
	if (!room && shunt_heading_unpassed(&seat->out.heading) && shunt_stream_tcp_closed(stream))
		return pull->done ? -EPIPE : shunt_tx_reset_before(stream);
	if (!room)
		return -EAGAIN;
	taken = pull->take(pull->pipe, at, bytes < room ? bytes : room);
	if (taken <= 0)
		return taken;
	if (shunt_tapping_listens(stream->group->tapping))
		tell_tap(stream, at, (size_t)taken);
	stream->tx.offset += (size_t)taken;
	shunt_lane_fill(seat, (size_t)taken, apart);
	shunt_bytes_add(&stream->tx.bytes, before, (size_t)taken, true);
	return taken;
}

/* --- the call --- */

/* One attempt, without waiting. Bytes, 0: the pipe is empty, -EAGAIN: no room, or -errno. */
static ssize_t attempt(struct pull *pull, size_t bytes)
{
	int error;

	shunt_assert_held(&pull->stream->tx.lock);
	error = shunt_tx_prepare(pull->engine, pull->fd, pull->stream, &bytes);
	if (error)
		return error;
	return shunt_heading_on_link(&pull->stream->seat->out.heading) ? by_link(pull, bytes) :
									 by_tcp(pull, bytes);
}

static ssize_t pull_all(struct pull *pull, size_t bytes)
{
	bool wait = !shunt_stream_is_nonblocking(pull->stream);
	uint64_t deadline = 0;
	ssize_t taken = 0;

	while (pull->done < bytes) {
		taken = attempt(pull, bytes - pull->done);
		if (taken > 0) {
			pull->done += (size_t)taken;
			continue;
		}
		if (!taken)	/* the pipe is empty */
			break;
		if (taken == -EAGAIN)
			taken = shunt_tx_wait(pull->engine, &pull->fd, pull->stream, &deadline,
					      pull->done, wait);
		if (taken)
			break;
	}
	return shunt_tx_result(pull->stream, pull->done, taken);
}

ssize_t shunt_stream_pull(struct shunt_engine *engine, int fd, struct shunt_stream *stream,
			  int pipe, shunt_take *take, size_t bytes, bool more)
{
	struct pull pull = { .engine = engine, .stream = stream, .take = take, .fd = fd, .pipe = pipe,
			     .flags = more ? MSG_MORE : 0 };
	ssize_t done = -ERESTART;

	if (shunt_stream_use_is_news(stream))
		shunt_offer_used(engine, stream);
	if (shunt_stream_is_shared(stream))
		shunt_stream_look_at_mode(engine, fd, stream);
	if (atomic_load(&stream->state) == SHUNT_FOREIGN &&
	    shunt_handover_ask(engine, fd, stream) == -ENOMEM)
		return -ENOMEM;
	shunt_thread_begin();
	shunt_lock_take(&stream->tx.lock);
	if (shunt_streams_still(engine, &pull.fd, stream) && !shunt_stream_is_kernels(stream))
		done = pull_all(&pull, bytes);
	if (done > 0)
		shunt_histogram_add(stream->tx.sizes, SHUNT_SIZE_BUCKETS, (uint64_t)done);
	shunt_lock_leave(&stream->tx.lock);
	if (__builtin_expect(stream->parting == SHUNT_ORPHANED, 0))
		shunt_streams_end_orphan(stream);
	return done;
}
