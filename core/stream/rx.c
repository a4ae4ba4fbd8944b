/* SPDX-License-Identifier: MIT */
#include "core/stream/rest.h"
#include "core/stream/rx.h"
#include "core/lane/fault_device.h"
#include <errno.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include "core/base/iov.h"
#include "core/engine.h"
#include "core/fd/thread.h"
#include "core/stream/handover.h"
#include "core/stream/eof.h"
#include "core/stream/offer.h"
#include "core/stream/peek.h"
#include "core/stream/proof.h"
#include "core/stream/repeat.h"
#include "core/stream/rings.h"
#include "core/stream/stream_option.h"
#include "core/stream/tapped.h"
#include "core/stream/traced.h"
#include "core/stream/track.h"
#include "core/stream/unclaimed.h"
#include "core/stream/wait.h"

#define LARGE_RING (1 << 20)
#define SHUNT_HOT inline __attribute__((always_inline))	/* shunt_rx_receive() is not to cost the others a call */
#define SMALL 2048	/* a sender waits with such a message until all of it has room: tx.c */

/* A credit from another host comes late, and half a large ring is what a long path has under way meanwhile. */
static uint64_t credit_step(const struct shunt_stream *stream)
{
	uint32_t ring = stream->seat->in.ring.bytes;

	return ring >= LARGE_RING && stream->seat->lane->retains ? ring / 8 : ring / 2;
}

/* The sender has used the room that it knows of, or nearly so. */
static bool is_full(const struct shunt_seat_in *in)
{
	uint64_t from = in->ring.credited > in->ring.from ? in->ring.credited : in->ring.from;

	return atomic_load_explicit(&in->tail, memory_order_relaxed) + SMALL > from + in->ring.bytes;
}

/*
 * Room comes back to the sender by halves of the ring (XR-18), or less (credit_step). It also comes back when the
 * sender waits and the ring has been read (CP-02). If that has just been missed here, a step is still to come.
 */
static SHUNT_HOT void give_credit(struct shunt_stream *stream, uint64_t head)
{
	struct shunt_seat_in *in = &stream->seat->in;
	uint32_t work = SHUNT_WORK_CREDIT;
	bool all = false, waits = false;

	shunt_assert_held(&stream->rx.lock);
	if (__builtin_expect(atomic_load_explicit(&in->ring.sender_waits, memory_order_relaxed),
			     0)) {
		waits = true;
		all = atomic_load(&in->tail) == head;
		atomic_store(&in->ring.sender_waits, !all);
	}
	if (head - in->ring.credited < in->ring.bytes / 8 && !all)
		return;
	if (head - in->ring.credited < credit_step(stream) && !all)
		return;
	if (waits || is_full(in))
		work |= shunt_rings_offer_large(stream);
	in->ring.credited = head;
	shunt_lane_request(stream->seat->lane, stream->seat, work);
}

static SHUNT_HOT ssize_t receive_link(struct shunt_engine *engine, struct shunt_stream *stream,
			    struct shunt_iov *to, int flags)
{
	struct shunt_rx *rx = &stream->rx;
	struct shunt_seat_in *in = &stream->seat->in;
	uint64_t head = atomic_load_explicit(&rx->head, memory_order_relaxed);
	size_t bytes = shunt_peek_ring(in, to, flags & MSG_TRUNC, head, &engine->config.copy);

	shunt_assert_held(&stream->rx.lock);
	if (!bytes)
		return __builtin_expect(to->bad, 0) ? -EFAULT : -EAGAIN;
	if (flags & MSG_PEEK)
		return bytes;
	if (shunt_tapping_listens(&engine->tapping))
		shunt_tapped_ring(stream, bytes);
	shunt_bytes_add(&rx->bytes, head, bytes, true);
	head += bytes;
	atomic_store_explicit(&rx->head, head, memory_order_release);
	if (__builtin_expect(!atomic_load_explicit(&in->withheld, memory_order_relaxed), 1))
		__atomic_store_n(&stream->seat->control->word[SHUNT_CONTROL_READ], head,
				 __ATOMIC_RELEASE); /* it may be taken for credit */
	if (__builtin_expect(atomic_load_explicit(&in->next_from, memory_order_relaxed) == head ||
				     atomic_load_explicit(&in->boundary, memory_order_relaxed) ==
					     head,
			     0))
		shunt_track_settle(stream);
	if (__builtin_expect(atomic_load_explicit(&in->followed, memory_order_relaxed) - 1 < head,
			     0))
		shunt_traced_read(engine, stream, head);
	give_credit(stream, head);
	return bytes;
}

/* The kernel's queue has no byte that the program lacks: is there an end, or an error? */
static ssize_t peek_end(struct shunt_engine *engine, int fd)
{
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t got = engine->sys->recvmsg(fd, &message, MSG_PEEK | MSG_DONTWAIT);

	if (got > 0)
		errno = EAGAIN;
	return got > 0 ? -1 : got;
}

static ssize_t receive_tcp(struct shunt_engine *engine, int fd, struct shunt_stream *stream,
			   struct shunt_iov *to, int flags)
{
	struct shunt_rx *rx = &stream->rx;
	struct shunt_seat_in *in = &stream->seat->in;
	struct iovec iov[SHUNT_IOV_BATCH];
	struct msghdr message = { .msg_iov = (struct iovec *)to->iov, .msg_iovlen = to->iovcnt };
	ssize_t got;
	size_t batch = 0;
	uint64_t head = atomic_load_explicit(&rx->head, memory_order_relaxed),
		 end = shunt_proof_end_of_track(in), before;

	shunt_assert_held(&stream->rx.lock);
	if (to->skip || end != SHUNT_NEVER) {
		message.msg_iov = iov;
		message.msg_iovlen = shunt_iov_cut(to, end - head, iov);
		for (size_t i = 0; message.msg_iovlen == SHUNT_IOV_BATCH && i < SHUNT_IOV_BATCH; i++)
			batch += iov[i].iov_len;
	}
	if (shunt_intake_repeats(&in->intake) && !shunt_repeat_catch_up(stream, fd))
		got = peek_end(engine, fd);
	else
		got = engine->sys->recvmsg(fd, &message, (flags & ~MSG_WAITALL) | MSG_DONTWAIT);
	if (got < 0 && errno == ECONNRESET) {	/* the link tells the same one as well */
		if (shunt_end_learn(&stream->end, SHUNT_LEARN_KERNEL_RESET, 0) & SHUNT_END_TOLD)
			return 0;
		errno = ECONNRESET;
	}
	if (got < 0)
		return shunt_stream_told_error(stream, errno);
	if (got == 0 && shunt_stream_is_doubted(stream))
		return 0;	/* another holder has shut down its reading, perhaps: the kernel is asked again */
	if (got == 0) {
		before = shunt_end_learn(&stream->end, SHUNT_LEARN_EOF, 0);
		if (before & SHUNT_END_OWES_RESET)
			shunt_streams_reset_tcp(engine->sys, fd);	/* bytes were before it: shunt_loss_end() */
		return before & SHUNT_END_SUSPECT || stream->end.owed > head ?
			       shunt_eof_in_doubt(stream, fd) :
			       0;
	}
	shunt_iov_advance(to, got);
	to->cut = (size_t)got == batch;
	if (flags & MSG_PEEK)
		return got;
	if (__builtin_expect(!head, 0))
		shunt_unclaimed_begin(stream);
	if (__builtin_expect(atomic_load_explicit(&stream->lasting, memory_order_relaxed) ==
				     SHUNT_LASTING_WAITS,
			     0))
		shunt_unclaimed_goes_on(stream);
	if (shunt_tapping_listens(&engine->tapping))
		shunt_tapped_read(stream, head, (size_t)got, flags & MSG_TRUNC ? NULL : to);
	shunt_bytes_add(&rx->bytes, head, got, false);
	atomic_store_explicit(&rx->head, head + got, memory_order_release);
	shunt_track_settle(stream);
	return got;
}

/* An announced end of the present track or ring has been reached. */
static SHUNT_HOT bool switch_due(const struct shunt_stream *stream)
{
	uint64_t head = atomic_load_explicit(&stream->rx.head, memory_order_relaxed);

	return atomic_load_explicit(&stream->seat->in.boundary, memory_order_relaxed) == head ||
	       atomic_load_explicit(&stream->seat->in.next_from, memory_order_relaxed) == head;
}

/* One attempt, without waiting. Bytes, 0 at the end, -EAGAIN or -errno. */
static SHUNT_HOT ssize_t attempt(struct shunt_engine *engine, int fd, struct shunt_stream *stream,
		       struct shunt_iov *to, int flags)
{
	struct shunt_rx *rx = &stream->rx;
	ssize_t got;

	shunt_assert_held(&stream->rx.lock);
	if (__builtin_expect(atomic_load_explicit(&stream->seat->leaving.retiring,
						  memory_order_relaxed) != SHUNT_STAYING,
			     0) &&
	    shunt_rest_holds(stream))
		return -EAGAIN;	/* where the next byte will come from is being settled */
	for (;;) {
		if (__builtin_expect(switch_due(stream), 0) || shunt_proof_is_next(stream))
			shunt_track_settle(stream);
		if (shunt_proof_is_next(stream))
			return shunt_eof_reached(stream);
		if (shunt_intake_on_link(&stream->seat->in.intake)) {
			got = receive_link(engine, stream, to, flags);
			return got == -EAGAIN ? shunt_eof_reached(stream) : got;
		}
		if (shunt_end_at(&stream->end) ==
		    atomic_load_explicit(&rx->head, memory_order_relaxed))
			return 0;
		if (shunt_end_has(&stream->end, SHUNT_END_RESET) &&
		    shunt_end_has(&stream->end, SHUNT_END_TCP_OVER))
			return shunt_eof_reached(stream);
		got = receive_tcp(engine, fd, stream, to, flags);
		if (got != 0 || shunt_stream_is_doubted(stream))
			return got;
		shunt_group_poll_fully(&engine->group);
		if (!switch_due(stream)) {
			got = shunt_eof_reached(stream);
			if (got != -EAGAIN || !shunt_eof_counts(stream))
				return got;
			if (!shunt_fault_device_hurries(&engine->group))
				return shunt_eof_of_tcp(stream, fd);
		}
	}
}

static SHUNT_HOT bool ends_ahead(const struct shunt_seat_in *in)
{
	return shunt_proof_end_of_track(in) != SHUNT_NEVER ||
	       atomic_load_explicit(&in->next_from, memory_order_relaxed) != SHUNT_NEVER;
}

static uint64_t timeout_of(struct shunt_engine *engine, int fd, _Atomic uint64_t *cache, int name)
{
	uint64_t ns = atomic_load_explicit(cache, memory_order_relaxed);
	struct timeval value = { 0, 0 };
	socklen_t length = sizeof(value);

	if (ns == UINT64_MAX) {
		engine->sys->getsockopt(fd, SOL_SOCKET, name, &value, &length);
		ns = (uint64_t)value.tv_sec * 1000000000 + (uint64_t)value.tv_usec * 1000;
		atomic_store_explicit(cache, ns, memory_order_relaxed);
	}
	return ns ? shunt_now(engine) + ns : SHUNT_NEVER;
}

uint64_t shunt_stream_deadline(struct shunt_engine *engine, int fd, struct shunt_stream *stream,
			       bool receive)
{
	return receive ? timeout_of(engine, fd, &stream->options.receive_timeout_ns, SO_RCVTIMEO) :
			 timeout_of(engine, fd, &stream->options.send_timeout_ns, SO_SNDTIMEO);
}

/* A process without a service thread looks here (unclaimed.h). rx.lock held; given up for a moment. */
/* Not analysed: rx.lock is given up for a moment. */
SHUNT_NO_LOCK_ANALYSIS static void expire(struct shunt_engine *engine, struct shunt_stream *stream)
{
	if (engine->service || !shunt_unclaimed_is_over(stream))
		return;
	shunt_lock_leave(&stream->rx.lock);
	shunt_streams_plain(engine, stream, SHUNT_CAUSE_NO_SHUNT);
	shunt_lock_take(&stream->rx.lock);
}

/* Between two attempts: rx.lock is given up, and taken again. 0 or -errno. */
static SHUNT_HOT int wait_for_more(struct shunt_engine *engine, int *fd,
				   struct shunt_stream *stream, uint64_t *deadline, bool moved)
{
	int result;

	if (!*deadline)
		*deadline = shunt_stream_deadline(engine, *fd, stream, true);
	result = shunt_wait_call(stream, &stream->rx.lock, EPOLLIN, *deadline, moved);
	return shunt_streams_still(engine, fd, stream) ? result : -EBADF;
}

/* SO_RCVLOWAT: what a blocking receive waits for. */
static SHUNT_HOT size_t low_water(struct shunt_stream *stream, size_t room)
{
	size_t low = atomic_load_explicit(&stream->options.low_water, memory_order_relaxed);

	return low < room ? low : room;
}

static bool kernel_at_mark(struct shunt_engine *engine, int fd)
{
	int mark = 0;

	return !engine->sys->ioctl(fd, SIOCATMARK, &mark) && mark;
}

/* The place at which a receive began. */
struct place {
	const uint8_t *ring;
	uint64_t boundary;
	bool link;
};

/* Two switches may have been announced for the same byte: then the track is the one it was. So it is behind a nonce. */
static SHUNT_HOT bool has_switched(const struct shunt_stream *stream, const struct place *from)
{
	return from->link != shunt_intake_on_link(&stream->seat->in.intake) ||
	       from->boundary == atomic_load_explicit(&stream->rx.head, memory_order_relaxed);
}

/*
 * Fewer bytes than asked mean that there are no more now (epoll(7), Q9). So a receive goes on past a switch, but not
 * past urgent data, as in the kernel.
 */
static SHUNT_HOT bool goes_on(struct shunt_engine *engine, int fd, struct shunt_stream *stream,
		    const struct place *from, bool cut)
{
	return cut || from->ring != stream->seat->in.ring.at ||
	       (has_switched(stream, from) &&
		(shunt_intake_on_link(&stream->seat->in.intake) || !kernel_at_mark(engine, fd)));
}

/* The next thing that the kernel would tell is its error, and it must be there for the next call. */
static SHUNT_HOT bool is_kernels_error(struct shunt_engine *engine, int fd,
				       const struct shunt_stream *stream)
{
	int bytes = 0;

	return shunt_streams_kernel_fails(stream, fd) &&
	       !engine->sys->ioctl(fd, FIONREAD, &bytes) && !bytes;
}

static SHUNT_HOT ssize_t receive(struct shunt_engine *engine, int fd, struct shunt_stream *stream,
		       struct shunt_iov *to, int flags)
{
	bool wait = !(flags & MSG_DONTWAIT) && !shunt_stream_is_nonblocking(stream);
	size_t wanted = flags & MSG_WAITALL ? to->left : low_water(stream, to->left);
	uint64_t deadline = 0;
	size_t done = 0;
	ssize_t got;

	if (!to->left)
		return 0;
	if (__builtin_expect(shunt_end_kept(&stream->end), 0)) {
		got = -shunt_end_kept_of(shunt_end_learn(&stream->end, SHUNT_LEARN_KEPT_TOLD, 0));
		if (got)
			return got;
	}
	for (;;) {
		struct place from = { .ring = stream->seat->in.ring.at,
				      .link = shunt_intake_on_link(&stream->seat->in.intake),
				      .boundary = shunt_proof_end_of_track(&stream->seat->in) };

		if (done && is_kernels_error(engine, fd, stream))
			return done;
		to->cut = false;
		got = attempt(engine, fd, stream, to, flags);
		if (got > 0)
			done += got;
		if (got > 0 && to->left && flags & MSG_PEEK && ends_ahead(&stream->seat->in))
			done += shunt_peek_on(engine, fd, stream, to, atomic_load(&stream->rx.head) + done, flags);
		if (got > 0 && to->left && !(flags & MSG_PEEK) &&
		    goes_on(engine, fd, stream, &from, to->cut))
			continue;
		if (got > 0 && (done >= wanted || flags & MSG_PEEK))
			return done;
		if (got > 0 && (wait || flags & MSG_WAITALL))
			continue;
		if (got > 0)
			return done;
		if (got != -EAGAIN || done >= wanted)
			break;
		if (shunt_group_poll(&engine->group) > 0)
			continue;
		if (atomic_load_explicit(&stream->state, memory_order_relaxed) == SHUNT_CANDIDATE)
			expire(engine, stream);
		if (!wait)
			break;
		got = wait_for_more(engine, &fd, stream, &deadline, done > 0);
		if (got)
			break;
	}
	/* Bytes before an error are reported first, the error by the next call (sk_err). */
	if (done && got < 0 && got != -EAGAIN && got != -EINTR && got != -ERESTART && got != -EFAULT)
		shunt_end_learn(&stream->end, SHUNT_LEARN_KEPT, (int)-got); /* an errno */
	if (!done && shunt_tapping_listens(&engine->tapping))
		shunt_tapped_over(stream, got);
	return done ? (ssize_t)done : got;
}

ssize_t shunt_rx_receive(struct shunt_engine *engine, int fd, struct shunt_stream *stream,
			 struct shunt_iov *to, int flags)
{
	return receive(engine, fd, stream, to, flags);
}

/*
 * The number was closed or means another socket by now: the kernel knows what to say. Where that may wait, the
 * program's call begins anew, and is the kernel's then.
 */
static ssize_t kernel_receive(struct shunt_engine *engine, int fd, const struct iovec *iov,
			      int iovcnt, int flags)
{
	struct msghdr message = { .msg_iov = (struct iovec *)iov, .msg_iovlen = iovcnt };
	ssize_t got;

	if (__builtin_expect(shunt_files_closed(engine->fds.files, fd), 0))
		return -EBADF;	/* what is open there now may be one of ours */
	if (!(flags & MSG_DONTWAIT))
		return -ERESTART;
	got = engine->sys->recvmsg(fd, &message, flags);
	return got < 0 ? -errno : got;
}

ssize_t shunt_stream_recv(struct shunt_engine *engine, int fd, struct shunt_stream *stream,
			  const struct iovec *iov, int iovcnt, int flags)
{
	struct shunt_iov to;
	ssize_t got;

	shunt_iov_begin(&to, iov, iovcnt);
	if (shunt_stream_use_is_news(stream))
		shunt_offer_used(engine, stream);
	if (shunt_stream_is_shared(stream))
		shunt_stream_look_at_mode(engine, fd, stream);
	if (__builtin_expect(atomic_load_explicit(&stream->state, memory_order_relaxed) == SHUNT_FOREIGN, 0) &&
	    shunt_handover_ask(engine, fd, stream) == -ENOMEM)
		return -ENOMEM;
	shunt_thread_begin();
	shunt_lock_take(&stream->rx.lock);
	if (__builtin_expect(
		    !shunt_stream_is(engine, fd, stream) || shunt_stream_is_kernels(stream), 0)) {
		shunt_lock_leave(&stream->rx.lock);
		return kernel_receive(engine, fd, iov, iovcnt, flags);
	}
	got = receive(engine, fd, stream, &to, flags);
	shunt_lock_leave(&stream->rx.lock);
	if (__builtin_expect(stream->parting == SHUNT_ORPHANED, 0))
		shunt_streams_end_orphan(stream);
	return got;
}
