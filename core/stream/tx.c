/* SPDX-License-Identifier: MIT */
#include "core/stream/rest.h"
#include "core/stream/credit.h"
#include "core/stream/sleep.h"
#include "core/stream/tx.h"
#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>
#include "core/base/cycles.h"
#include "core/base/iov.h"
#include "core/engine.h"
#include "core/fd/thread.h"
#include "core/stream/handover.h"
#include "core/lane/send_queue.h"
#include "core/loop/request.h"
#include "core/stream/eof.h"
#include "core/stream/offer.h"
#include "core/stream/overflow.h"
#include "core/stream/pinned.h"
#include "core/stream/proof.h"
#include "core/stream/reset_unread.h"
#include "core/stream/rx.h"
#include "core/stream/slow_stream.h"
#include "core/stream/backlog.h"
#include "core/stream/stream_option.h"
#include "core/stream/tapped.h"
#include "core/stream/traced.h"
#include "core/stream/track.h"
#include "core/stream/unclaimed.h"
#include "core/stream/user_timeout.h"
#include "core/stream/wait.h"

#define QUESTION_PATIENCE 10000000	/* ns that a call which is not to wait does, until the peer knows where our nonce stands */
#define IMPATIENCE 1000000000	/* ns that none does after it was in vain */
#define DEAF_TICKS 20000	/* cycles of sending only, between two looks at what has come: some microseconds */
#define SHUNT_HOT inline __attribute__((always_inline))	/* shunt_tx_prepare() is not to cost the others a call */
#define SMALL 2048	/* at most half of the smallest ring, so that credit always makes room for it */

static int dead_error(struct shunt_stream *stream)
{
	int error = shunt_stream_pop_error(stream);

	if (!error && !shunt_end_has(&stream->end, SHUNT_END_TOLD))
		error = shunt_stream_kernel_error(stream);
	return error ? -error : -EPIPE;
}

/* A short message is taken whole or not at all, so that two writers' do not mix. */
static bool has_room(struct shunt_stream *stream, size_t bytes)
{
	uint64_t room = shunt_seat_room(&stream->seat->out, stream->tx.offset);

	return shunt_seat_turns(&stream->seat->out) || room >= bytes || (bytes > SMALL && room);
}

/* `more`: the program has said that more is to come (MSG_MORE, TCP_CORK). */
static size_t place(struct shunt_stream *stream, struct shunt_iov *from, size_t bytes, bool more)
{
	size_t taken;

	shunt_assert_held(&stream->tx.lock);
	if (__builtin_expect(!has_room(stream, bytes), 0))
		return 0;
	if (__builtin_expect(more, 0) && !shunt_seat_turns(&stream->seat->out))
		taken = shunt_lane_gather(stream->seat->lane, stream->seat, from, bytes);
	else
		taken = shunt_lane_send(stream->seat->lane, stream->seat, from, bytes);
	stream->tx.offset += taken;
	return taken;
}

/* The kernel could not deliver what comes before the link's bytes. */
int shunt_tx_reset_before(struct shunt_stream *stream)
{
	int error;

	shunt_end_learn(&stream->end, SHUNT_LEARN_OWN_RESET, 0);
	error = shunt_stream_kernel_error(stream);
	return error ? -error : -EPIPE;
}

/* The reader may have room for us that is less than half its ring: once for all that it has given. */
void shunt_tx_say_blocked(struct shunt_stream *stream)
{
	uint64_t consumed = atomic_load(&stream->seat->out.ring.consumed);

	shunt_user_timeout_begin(stream);
	if (stream->seat->out.ring.blocked_at == consumed)
		return;
	stream->seat->out.ring.blocked_at = consumed;
	shunt_lane_no_room(stream->seat->lane, atomic_load(&stream->fd));
	shunt_lane_request(stream->seat->lane, stream->seat, SHUNT_WORK_BLOCKED);
}

static ssize_t send_link(struct shunt_engine *engine, struct shunt_stream *stream,
			 struct shunt_iov *from, size_t bytes, size_t done, int flags)
{
	struct shunt_tx *tx = &stream->tx;
	struct shunt_seat_out *out = &stream->seat->out;
	uint64_t before = tx->offset;
	bool gather = flags & MSG_MORE || atomic_load_explicit(&tx->corked, memory_order_relaxed);
	size_t taken;
	int error = -EAGAIN;
	bool looked = false, open = false;

	shunt_assert_held(&stream->tx.lock);
	from->bad = false;
	taken = place(stream, from, bytes, gather);
	while (__builtin_expect(taken < bytes, 0)) {
		size_t more;

		if (from->bad) {
			error = -EFAULT;
			break;
		}
		if (atomic_load_explicit(&out->gather_since, memory_order_relaxed))
			shunt_lane_push(stream->seat->lane, stream->seat);

		if (shunt_heading_unpassed(&out->heading) && shunt_stream_tcp_closed(stream)) {
			/* Bytes before the error are reported first; the kernel keeps the error for the next call. */
			error = taken || done ? -EPIPE : shunt_tx_reset_before(stream);
			break;
		}
		/* The program may have been told of that room. */
		open = open || shunt_overflow_was_promised(out) || shunt_overflow_is_open(out);
		/* Said before the last look at the credit, so that the next one is told of. */
		atomic_fetch_add(&tx->refusals, 1);
		atomic_store(&out->starved, true);
		shunt_group_poll(&engine->group);
		more = place(stream, from, bytes - taken, gather);
		taken += more;
		if (more)
			continue;
		if (looked) {
			atomic_store(&out->starved, true);
			if (!has_room(stream, bytes - taken) ||
			    !shunt_send_queue_roomy(stream->seat)) {
				if (open || shunt_overflow_is_open(out) || shunt_overflow_opens(stream))
					taken += shunt_overflow_take(stream, from, bytes - taken);
				break;
			}
			if (!shunt_send_queue_ready(stream->seat,
						     !shunt_lane_merges(stream->seat->lane))) { /* no memory: TCP has its own */
				atomic_store(&out->want_link, false);
				out->quick = false;
				break;
			}
		}
		/* A reader that is stopped may have read bytes for which it gave no credit. */
		if (out->ring.bytes < engine->config.ring_max && !atomic_load(&out->ring.offer))
			shunt_credit_look(stream);
		looked = true;
		if (atomic_load(&stream->seat->lane->failed))
			break;
	}
	if (__builtin_expect(taken < bytes, 0) && error == -EAGAIN) {
		shunt_overflow_note(stream);
		if (!has_room(stream, bytes - taken))
			shunt_tx_say_blocked(stream);
	}
	shunt_bytes_add(&tx->bytes, before, taken, true);
	if (shunt_tapping_listens(&engine->tapping))
		shunt_tapped_sent(stream, before, taken, from, true);
	return taken ? (ssize_t)taken : error;
}

int shunt_tx_ready_tcp(struct shunt_engine *engine, int fd, struct shunt_stream *stream)
{
	struct shunt_tx *tx = &stream->tx;
	struct shunt_seat_out *out = &stream->seat->out;
	int unsent;

	shunt_assert_held(&stream->tx.lock);
	if (__builtin_expect(stream->seat->pendings != NULL, 0))
		shunt_traced_abandon(engine, stream);
	if (__builtin_expect(shunt_end_error(&stream->end), 0))
		return dead_error(stream);
	if (__builtin_expect(atomic_load_explicit(&out->show, memory_order_relaxed) == SHUNT_PLACED,
			     0)) {
		if (shunt_proof_holds(stream))
			return -EAGAIN;
		shunt_proof_withdraw(stream);	/* what is sent now stands at its place */
	}
	if (__builtin_expect(tx->backlog.bytes != NULL, 0)) {
		unsent = shunt_backlog_write(engine, fd, stream);
		if (unsent)
			return unsent;
	}

	if (__builtin_expect(shunt_heading_unpassed(&out->heading), 0) &&
	    !shunt_lane_handed_over(stream->seat->lane, stream->seat))
		return -EAGAIN;
	return 0;
}

static ssize_t send_tcp(struct shunt_engine *engine, int fd, struct shunt_stream *stream,
			struct shunt_iov *from, size_t bytes, int flags)
{
	struct shunt_tx *tx = &stream->tx;
	struct iovec part[SHUNT_IOV_BATCH];
	struct msghdr message = { .msg_iov = part };
	int unready = shunt_tx_ready_tcp(engine, fd, stream);
	ssize_t sent;

	shunt_assert_held(&stream->tx.lock);
	if (unready)
		return unready;
	/* The rest is sent by the next turn of the caller's loop. */
	message.msg_iovlen = shunt_iov_cut(from, bytes, part);
	sent = engine->sys->sendmsg(fd, &message, flags | MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent < 0)
		return shunt_stream_told_error(stream, errno);
	if (__builtin_expect(!tx->offset, 0))
		shunt_unclaimed_begin(stream);
	if (__builtin_expect(atomic_load_explicit(&stream->lasting, memory_order_relaxed) ==
				     SHUNT_LASTING_WAITS,
			     0))
		shunt_unclaimed_goes_on(stream);
	shunt_bytes_add(&tx->bytes, tx->offset, sent, false);
	shunt_iov_advance(from, sent);
	if (shunt_tapping_listens(&engine->tapping))
		shunt_tapped_sent(stream, tx->offset, (size_t)sent, from, false);
	tx->offset += sent;
	return sent;
}

void shunt_tx_leave_link(struct shunt_engine *engine, int fd, struct shunt_stream *stream)
{
	if (!shunt_heading_on_link(&stream->seat->out.heading))
		return;
	shunt_reset_unread_answer(engine, fd, stream);
	shunt_heading_turn(&stream->seat->out.heading, SHUNT_HEADING_LEAVES);
	stream->seat->out.quick = false;
	shunt_sleep_tell(stream, EPOLLOUT | SHUNT_READY_TRACK);
}

/* The peer's position is not known: TCP_USER_TIMEOUT runs, and the kernel's own keepalive. */
static int wait_for_peer(struct shunt_stream *stream)
{
	if (shunt_end_has(&stream->end, SHUNT_END_BROKEN))
		return dead_error(stream);
	if (shunt_stream_tcp_closed(stream))
		return shunt_tx_reset_before(stream);
	shunt_user_timeout_begin(stream);
	return -EAGAIN;
}

/*
 * A thread that only sends, and finds room, would not hear that the peer has closed: by the second send the kernel says
 * so. A thread that has polled between two sends has heard. Polls of other threads are not looked at: each writes
 * their count, and each send would wait for it.
 */
static SHUNT_HOT void listen_now_and_then(struct shunt_engine *engine, struct shunt_seat_out *out)
{
	uint64_t now;

	if (out->hearing.polls != shunt_thread.polls || out->hearing.thread != &shunt_thread) {
		bool polled = out->hearing.thread == &shunt_thread;

		out->hearing.polls = shunt_thread.polls;
		out->hearing.thread = &shunt_thread;
		if (polled)
			return;
	}
	now = shunt_cycles();
	if (now - out->hearing.at < DEAF_TICKS || engine->loop.manual)	/* a simulation is the same each time */
		return;
	out->hearing.at = now;
	shunt_group_poll(&engine->group);
}

/* May the next bytes go, and on which track? 0, -EAGAIN or -errno. A switch that is due makes *bytes fewer. */
static SHUNT_HOT int prepare(struct shunt_engine *engine, int fd, struct shunt_stream *stream,
			  size_t *bytes)
{
	struct shunt_tx *tx = &stream->tx;
	struct shunt_seat_out *out = &stream->seat->out;

	shunt_assert_held(&stream->tx.lock);
	if (__builtin_expect(!out->quick, 0)) {
		atomic_fetch_add(&tx->refusals, 1);	/* before it is known: what is said of room from now on counts */
		if (shunt_end_has(&stream->end, SHUNT_END_SHUT_WRITE))
			return -EPIPE;
		/* The peer may want what the link carried sent again first. */
		if (__builtin_expect(shunt_heading_halted(&out->heading), 0))
			return wait_for_peer(stream);
		if (shunt_rest_holds(stream))
			return -EAGAIN;
		shunt_track_choose(engine, stream);
		if (out->flip_at != SHUNT_NEVER && *bytes > out->flip_at - tx->offset &&
		    out->flip_at > tx->offset)
			*bytes = out->flip_at - tx->offset;
	}
	if (shunt_heading_on_link(&out->heading))
		listen_now_and_then(engine, out);
	if (__builtin_expect(shunt_end_has(&stream->end, SHUNT_END_BROKEN), 0))
		return dead_error(stream);
	if (shunt_stream_looks_released(stream))
		shunt_tx_leave_link(engine, fd, stream);
	return 0;
}

int shunt_tx_prepare(struct shunt_engine *engine, int fd, struct shunt_stream *stream,
		     size_t *bytes)
{
	return prepare(engine, fd, stream, bytes);
}

/* One attempt, without waiting. Bytes taken, -EAGAIN or -errno. */
static ssize_t attempt(struct shunt_engine *engine, int fd, struct shunt_stream *stream,
		       struct shunt_iov *from, size_t done, int flags)
{
	size_t bytes = from->left;
	int error = prepare(engine, fd, stream, &bytes);

	if (__builtin_expect(error, 0))
		return error;
	if (shunt_heading_on_link(&stream->seat->out.heading))
		return send_link(engine, stream, from, bytes, done, flags);
	return send_tcp(engine, fd, stream, from, bytes, flags);
}

static int wait_for_room(struct shunt_engine *engine, int *fd, struct shunt_stream *stream,
			 uint64_t *deadline, bool moved)
{
	uint64_t begun;
	int result;

	if (!*deadline)
		*deadline = shunt_stream_deadline(engine, *fd, stream, false);
	begun = shunt_slow_begin(&engine->steps);
	result = shunt_wait_call(stream, &stream->tx.lock, EPOLLOUT, *deadline, moved);
	shunt_slow_stream(&shunt_stream_engine(stream)->steps, stream, SHUNT_STEP_ROOM, begun,
			  atomic_load(&stream->seat->out.staged) -
				  atomic_load(&stream->seat->out.posted));
	return shunt_streams_still(engine, fd, stream) ? result : -EBADF;
}

/*
 * The peer's service thread answers NONCE at once, and the kernel would take a small message at once, too. So even a
 * non-blocking call waits for a moment. Where an answer has not come in time, none waits for the next second. 0,
 * -EAGAIN or -EBADF. tx.lock held; given up meanwhile.
 */
static int await_question(struct shunt_engine *engine, int *fd, struct shunt_stream *stream)
{
	uint64_t now = shunt_now(engine);
	int result = 0;

	if (engine->loop.manual || !shunt_proof_holds(stream) ||
	    now < atomic_load(&engine->impatient))
		return -EAGAIN;
	while (!result && shunt_proof_holds(stream)) {
		result = shunt_wait_call(stream, &stream->tx.lock, EPOLLOUT,
					 now + QUESTION_PATIENCE, true);
		if (!shunt_streams_still(engine, fd, stream))
			return -EBADF;
	}
	if (!shunt_proof_holds(stream))
		return 0;
	if (result == -EAGAIN)
		atomic_store(&engine->impatient, now + IMPATIENCE);
	return -EAGAIN;
}

/* Bytes before an error are reported first, the error by the next call (sk_err): EPIPE by any send. */
static void keep_error(struct shunt_stream *stream, int error)
{
	if (error == EPIPE) {
		shunt_end_learn(&stream->end, SHUNT_LEARN_UNTOLD, 0);
	} else if (error != EAGAIN && error != EINTR && error != ERESTART && error != EFAULT) {
		shunt_end_learn(&stream->end, SHUNT_LEARN_UNTOLD, error);
		if (shunt_stream_tcp_closed(stream)) /* and has given its error to us */
			shunt_stream_was_reset(stream, error);
	}
}

int shunt_tx_wait(struct shunt_engine *engine, int *fd, struct shunt_stream *stream,
		  uint64_t *deadline, size_t done, bool wait)
{
	int result;

	shunt_assert_held(&stream->tx.lock);
	if (!wait)
		return done ? -EAGAIN : await_question(engine, fd, stream);
	result = wait_for_room(engine, fd, stream, deadline, done > 0);
	return !result && done && shunt_streams_kernel_fails(stream, *fd) ? -EAGAIN : result;
}

ssize_t shunt_tx_result(struct shunt_stream *stream, size_t done, ssize_t result)
{
	shunt_assert_held(&stream->tx.lock);
	if (done && result < 0)
		keep_error(stream, (int)-result); /* an errno */
	return done ? (ssize_t)done : result;
}

/*
 * Behind `done` bytes of the same call. *fd is its number, or the one that the stream has by then; *deadline is the call's,
 * 0: it has not waited yet. Bytes of the call, or -errno.
 */
static ssize_t transmit(struct shunt_engine *engine, int *fd, struct shunt_stream *stream,
			struct shunt_iov *from, size_t done, int flags, uint64_t *deadline)
{
	bool wait = !(flags & MSG_DONTWAIT) && !shunt_stream_is_nonblocking(stream);
	ssize_t taken;

	for (;;) {
		taken = attempt(engine, *fd, stream, from, done, flags);
		if (taken >= 0) {
			done += taken;
			if (!from->left)
				return done;
			continue;
		}
		if (taken == -EAGAIN)
			taken = shunt_tx_wait(engine, fd, stream, deadline, done, wait);
		if (taken)
			break;
	}
	return shunt_tx_result(stream, done, taken);
}

ssize_t shunt_tx_transmit(struct shunt_engine *engine, int fd, struct shunt_stream *stream,
			  struct shunt_iov *from, int flags)
{
	uint64_t deadline = 0;

	return transmit(engine, &fd, stream, from, 0, flags, &deadline);
}

/* From the program's own buffer, which is registered meanwhile. */
static ssize_t transmit_pinned(struct shunt_engine *engine, int *fd, struct shunt_stream *stream,
			       struct shunt_iov *from, size_t done, int flags,
			       uint64_t *deadline)
{
	struct shunt_pin pin;
	ssize_t taken;

	if (!shunt_pinned_take(stream, &pin, from->iov))
		return transmit(engine, fd, stream, from, done, flags, deadline);
	pthread_cleanup_push(shunt_pinned_cancelled, stream);
	taken = transmit(engine, fd, stream, from, done, flags, deadline);
	pthread_cleanup_pop(0);
	shunt_pinned_drop(stream);
	return taken;
}

/* Buffers in front of the first that is large; 1: that is the first of all. */
static int together(const struct iovec *iov, int iovcnt, uint64_t large)
{
	int count = 1;

	if (iov->iov_len < large)
		while (count < iovcnt && iov[count].iov_len < large)
			count++;
	return count;
}

/* A large buffer goes from where it is, and those between are copied. One after the other, for a stream has one pin. */
static ssize_t transmit_parts(struct shunt_engine *engine, int fd, struct shunt_stream *stream,
			      const struct iovec *iov, int iovcnt, int flags)
{
	uint64_t large = atomic_load(&engine->lanes.pin_from);
	struct shunt_iov from = { .left = 0 };
	uint64_t deadline = 0;
	ssize_t taken = 0;
	size_t done = 0;

	while (iovcnt && !from.left && shunt_streams_still(engine, &fd, stream)) {
		int count = together(iov, iovcnt, large);

		shunt_iov_begin(&from, iov, count);
		if (iov->iov_len >= large && shunt_pinned_pays(stream, flags))
			taken = transmit_pinned(engine, &fd, stream, &from, done, flags,
						&deadline);
		else if (from.left)
			taken = transmit(engine, &fd, stream, &from, done, flags, &deadline);
		if (taken < 0)
			break;
		done = (size_t)taken;
		iov += count;
		iovcnt -= count;
	}
	return taken;
}

/* Where that may wait, the program's call begins anew, and is the kernel's then. */
static ssize_t kernel_send(struct shunt_engine *engine, int fd, const struct iovec *iov, int iovcnt,
			   int flags)
{
	struct msghdr message = { .msg_iov = (struct iovec *)iov, .msg_iovlen = iovcnt };
	ssize_t sent;

	if (__builtin_expect(shunt_files_closed(engine->fds.files, fd), 0))
		return -EBADF;	/* what is open there now may be one of ours */
	if (!(flags & MSG_DONTWAIT))
		return -ERESTART;
	sent = engine->sys->sendmsg(fd, &message, flags | MSG_NOSIGNAL);
	return sent < 0 ? -errno : sent;
}

/* No bytes: only whether a send would fail. */
static ssize_t send_nothing(struct shunt_engine *engine, int fd, struct shunt_stream *stream, int flags)
{
	struct shunt_seat_out *out = &stream->seat->out;

	if (shunt_end_has(&stream->end, SHUNT_END_SHUT_WRITE))
		return -EPIPE;
	if (shunt_end_has(&stream->end, SHUNT_END_BROKEN))
		return dead_error(stream);
	if (shunt_heading_on_link(&out->heading) && !shunt_stream_is_released(stream))
		return 0;
	return kernel_send(engine, fd, NULL, 0, flags | MSG_DONTWAIT);
}

ssize_t shunt_stream_send(struct shunt_engine *engine, int fd, struct shunt_stream *stream,
			  const struct iovec *iov, int iovcnt, int flags)
{
	struct shunt_iov from;
	size_t bytes;
	enum shunt_traced follows = SHUNT_TRACED_NOT;
	uint64_t deadline = 0;
	uint8_t traces;
	ssize_t taken;

	shunt_iov_begin(&from, iov, iovcnt);
	bytes = from.left;
	if (shunt_stream_use_is_news(stream))
		shunt_offer_used(engine, stream);
	if (shunt_stream_is_shared(stream))
		shunt_stream_look_at_mode(engine, fd, stream);
	if (__builtin_expect(atomic_load_explicit(&stream->state, memory_order_relaxed) == SHUNT_FOREIGN, 0) &&
	    shunt_handover_ask(engine, fd, stream) == -ENOMEM)
		return -ENOMEM;
	shunt_thread_begin();
	shunt_lock_take(&stream->tx.lock);
	if (__builtin_expect(
		    !shunt_stream_is(engine, fd, stream) || shunt_stream_is_kernels(stream), 0)) {
		shunt_lock_leave(&stream->tx.lock);
		return kernel_send(engine, fd, iov, iovcnt, flags);
	}
	traces = atomic_load_explicit(&engine->traces, memory_order_relaxed);
	if (__builtin_expect(traces, 0))
		follows = shunt_traced_enter(engine, stream, traces, bytes);
	if (__builtin_expect(!bytes, 0))
		taken = send_nothing(engine, fd, stream, flags);
	else if (__builtin_expect(bytes >= atomic_load_explicit(&engine->lanes.pin_from,
								memory_order_relaxed),
				  0) &&
		 shunt_pinned_pays(stream, flags))
		taken = transmit_parts(engine, fd, stream, iov, iovcnt, flags);
	else
		taken = transmit(engine, &fd, stream, &from, 0, flags, &deadline);
	if (__builtin_expect(taken > 0, 1))
		shunt_histogram_add(stream->tx.sizes, SHUNT_SIZE_BUCKETS, (uint64_t)taken);
	if (__builtin_expect(follows != SHUNT_TRACED_NOT, 0))
		shunt_traced_leave_call(engine, stream, follows, taken);
	shunt_lock_leave(&stream->tx.lock);
	if (__builtin_expect(stream->parting == SHUNT_ORPHANED, 0))
		shunt_streams_end_orphan(stream);
	return taken;
}

void shunt_stream_corked(struct shunt_stream *stream, bool on)
{
	struct shunt_tx *tx = &stream->tx;

	shunt_lock_take(&tx->lock);
	atomic_store(&tx->corked, on);
	if (!on)
		shunt_stream_push(stream);
	shunt_lock_leave(&tx->lock);
}

void shunt_stream_push(struct shunt_stream *stream)
{
	shunt_assert_held(&stream->tx.lock);
	if (atomic_load(&stream->seat->out.gather_since) &&
	    shunt_heading_on_link(&stream->seat->out.heading) &&
	    atomic_load(&stream->state) == SHUNT_LINKED)
		shunt_lane_push(stream->seat->lane, stream->seat);
}

