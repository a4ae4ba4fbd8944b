/* SPDX-License-Identifier: MIT */
#include "core/stream/ready.h"
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include "core/stream/kernel_tcp.h"
#include "core/lane/lane.h"
#include "core/poll/group.h"
#include "core/base/sys.h"
#include "core/lane/send_queue.h"
#include "core/stream/births.h"
#include "core/stream/eof.h"
#include "core/stream/low_water.h"
#include "core/stream/overflow.h"
#include "core/stream/proof.h"
#include "core/stream/repeat.h"
#include "core/stream/user_timeout.h"

#define SMALL 2048	/* a send of so much is taken whole or not at all: tx.c */

static bool link_readable(const struct shunt_stream *stream, uint64_t least)
{
	uint64_t head = atomic_load_explicit(&stream->rx.head, memory_order_relaxed);

	if (atomic_load_explicit(&stream->seat->in.tail, memory_order_acquire) < head + least)
		return false;
	/* SO_RCVLOWAT, and only the two tracks together have so much: the kernel would not say so. */
	if (__builtin_expect(least > 1, 0) &&
	    atomic_load(&stream->seat->in.boundary) != SHUNT_NEVER)
		return true;
	return shunt_intake_on_link(&stream->seat->in.intake) ||
	       atomic_load(&stream->seat->in.boundary) == head;
}

/* The link has brought the last byte, and the program has it. The link tells of a reset behind that while it lives. */
static bool has_read_all(const struct shunt_stream *stream)
{
	const struct shunt_rx *rx = &stream->rx;
	const struct shunt_seat_in *in = &stream->seat->in;
	uint64_t fin = shunt_end_at(&stream->end);

	return __builtin_expect(fin != SHUNT_NEVER, 0) && fin == atomic_load(&rx->head) &&
	       fin == atomic_load(&in->tail) && !shunt_intake_final(&in->intake);
}

/*
 * The receiver reads TCP until it has passed an announced upgrade, or nothing can come any more. Where it stands
 * at a switch, the next call passes it.
 */
static bool reads_tcp(const struct shunt_stream *stream)
{
	const struct shunt_rx *rx = &stream->rx;
	const struct shunt_seat_in *in = &stream->seat->in;
	bool turns = atomic_load(&in->boundary) == atomic_load(&rx->head);

	if (shunt_end_seems(&stream->end, SHUNT_END_RESET) &&
	    shunt_end_has(&stream->end, SHUNT_END_TCP_OVER))
		return false;
	if (shunt_proof_is_next(stream) && atomic_load(&rx->nonce.fd) >= 0)
		return false;	/* the service thread waits for that */
	if (has_read_all(stream))
		return false;
	return shunt_intake_on_link(&in->intake) == turns;
}

/* FIN comes on the link, perhaps ahead of bytes on TCP: the end is here once everything before it is. */
static bool ended(const struct shunt_stream *stream)
{
	const struct shunt_rx *rx = &stream->rx;
	uint64_t fin = shunt_end_at(&stream->end);
	uint64_t head = atomic_load_explicit(&rx->head, memory_order_relaxed);

	if (__builtin_expect(fin == SHUNT_NEVER, 1))
		return false;
	return fin == head || (atomic_load(&stream->seat->in.tail) == fin && !reads_tcp(stream));
}

/* So may a reset; while TCP is read, the kernel's own says when, if it knows already (shunt_loss_end). */
static bool was_reset(const struct shunt_stream *stream)
{
	return shunt_end_seems(&stream->end, SHUNT_END_RESET) &&
	       (!reads_tcp(stream) || shunt_end_has(&stream->end, SHUNT_END_OWES_RESET));
}

/* A wait for an epoll set does not look for relatives' changes before, because it does not go through the set's streams. */
static size_t low_water(struct shunt_stream *stream)
{
	if (shunt_stream_is_shared(stream))
		shunt_low_water_look(stream);
	return atomic_load_explicit(&stream->options.low_water, memory_order_relaxed);
}

static uint32_t receive_ready(struct shunt_stream *stream)
{
	uint32_t ready = 0;

	if (link_readable(stream, low_water(stream)))
		ready |= EPOLLIN | EPOLLRDNORM;
	if (__builtin_expect(ended(stream) || was_reset(stream) ||
				     shunt_end_seems(&stream->end, SHUNT_END_SHUT_READ),
			     0))
		ready |= EPOLLIN | EPOLLRDNORM | EPOLLRDHUP;
	if (was_reset(stream))
		ready |= EPOLLHUP | (shunt_end_error(&stream->end) ? EPOLLERR : 0);
	return ready;
}

/*
 * The stage has room. Bytes that the device has been given do not count: the reader may have read them, though the
 * posting thread has not said so yet.
 */
static __attribute__((noinline)) bool is_roomy(const struct shunt_seat *seat)
{
	const struct shunt_seat_out *out = &seat->out;
	int64_t window;

	if (shunt_send_queue_roomy(seat))
		return true;
	window = shunt_send_queue_limit(seat);
	return !seat->window &&
	       (int64_t)(atomic_load(&out->staged) - atomic_load(&out->exposed)) <= window / 2 &&
	       shunt_send_queue_used(seat) + SMALL <= window;
}

static bool has_room(struct shunt_stream *stream, const struct shunt_seat *seat)
{
	const struct shunt_seat_out *out = &seat->out;

	if (shunt_seat_turns(out))
		return true;
	if (shunt_seat_room(out, atomic_load(&out->staged)) >= out->ring.bytes / 2 &&
	    (__builtin_expect(!shunt_seat_rest(out) && !seat->window, 1) || is_roomy(seat)))
		return true;
	return shunt_overflow_has_room(stream);
}

/* Where the next send goes: a peer that has released the stream takes nothing from the link any more (tx.c). */
static bool sends_tcp(const struct shunt_stream *stream)
{
	return !shunt_heading_on_link(&stream->seat->out.heading) ||
	       shunt_stream_looks_released(stream);
}

/*
 * Writable from half a ring of room on, and from half a staging buffer on. Credit comes back by halves, so less room
 * than that always grows as the reader reads (PF-19). A sender found without room wants to be told of the next
 * credit.
 */
static bool link_writable(struct shunt_stream *stream, struct shunt_seat *seat)
{
	struct shunt_seat_out *out = &seat->out;

	if (__builtin_expect(shunt_seat_is_none(seat) || atomic_load_explicit(&seat->lane->failed,
									      memory_order_relaxed),
			     0))
		return false;	/* where it goes on is told soon */
	if (has_room(stream, seat))
		return true;
	atomic_store(&out->starved, true);
	if (has_room(stream, seat) || (shunt_overflow_opens(stream) && shunt_overflow_has_room(stream)))
		return true;
	shunt_overflow_note(stream);
	shunt_user_timeout_begin(stream);
	return false;
}

uint32_t shunt_ready_user(struct shunt_stream *stream)
{
	struct shunt_seat *seat = shunt_stream_seat(stream);
	uint32_t ready;

	if (atomic_load_explicit(&stream->state, memory_order_relaxed) != SHUNT_LINKED)
		return shunt_births_wait(stream) ? EPOLLIN | EPOLLRDNORM : 0;
	ready = receive_ready(stream);
	if (shunt_end_seems(&stream->end, SHUNT_END_SHUT_WRITE | SHUNT_END_BROKEN)) {
		ready |= EPOLLOUT | EPOLLWRNORM;
		if (ready & EPOLLRDHUP)
			ready |= EPOLLHUP;
	} else if (!sends_tcp(stream) && !shunt_heading_halted(&seat->out.heading) &&
		   link_writable(stream, seat)) {
		ready |= EPOLLOUT | EPOLLWRNORM;
	}
	return ready;
}

/*
 * TCP goes on behind the HANDBACK, which a closed window or missing tokens keep back: the kernel's room is not the
 * program's yet. In chain.c posted_handback() sees the mark, and the service thread tells.
 */
static bool awaits_handback(struct shunt_seat_out *out)
{
	return __builtin_expect(shunt_heading_is(&out->heading, SHUNT_HEADING_UNPOSTED), 0) &&
	       shunt_heading_turn(&out->heading, SHUNT_HEADING_IS_AWAITED) & SHUNT_HEADING_UNPOSTED;
}

uint32_t shunt_ready_kernel(struct shunt_stream *stream, uint32_t wanted)
{
	uint32_t ask = wanted & EPOLLPRI;	/* urgent data is never on the link */
	struct shunt_seat *seat = shunt_stream_seat(stream);

	if (atomic_load_explicit(&stream->state, memory_order_relaxed) != SHUNT_LINKED)
		return ~0u;
	if (shunt_ready_awaits_end(stream))
		return 0;
	if (reads_tcp(stream))
		ask |= EPOLLIN | EPOLLRDNORM | EPOLLRDHUP;
	/*
	 * The end is known and behind unread bytes of both tracks: the kernel knows whether it has its part of them. Or
	 * the rest comes over TCP, and perhaps the end with it. Behind a repeat FIN tells of the end.
	 */
	else if ((shunt_end_at(&stream->end) != SHUNT_NEVER && !ended(stream)) ||
		 (shunt_intake_on_link(&seat->in.intake) && !shunt_intake_repeats(&seat->in.intake) &&
		  atomic_load(&seat->in.boundary) != SHUNT_NEVER))
		ask |= EPOLLRDHUP;
	if (sends_tcp(stream) && !atomic_load(&stream->tx.backlog.bytes) &&
	    !shunt_heading_halted(&seat->out.heading) && !shunt_proof_holds(stream)) {
		if (awaits_handback(&seat->out))
			ask |= EPOLLERR;
		else if (
			!was_reset(
				stream)) /* else the link has said all; the kernel would say it again */
			ask |= EPOLLOUT | EPOLLWRNORM;
	}
	/* Bytes before an upgrade may still be in the kernel's hands: if they are refused, all is over. */
	else if (shunt_heading_unpassed(&seat->out.heading) || shunt_heading_halted(&seat->out.heading))
		ask |= EPOLLERR;
	return ask;
}

/* The kernel hangs up, and the program has not ended its direction: it is not to find that it can send all the same. */
static void note_hangup(struct shunt_stream *stream)
{
	if (!shunt_end_has(&stream->end, SHUNT_END_SHUT_WRITE | SHUNT_END_BROKEN) &&
	    atomic_load(&stream->state) == SHUNT_LINKED && shunt_stream_tcp_closed(stream))
		shunt_end_learn(&stream->end, SHUNT_LEARN_OWN_RESET, 0);
}

/* TCP has ended, and nothing is unread; but its end does not count before FIN has come (eof.c), so recv would say EAGAIN. */
static bool awaits_fin(struct shunt_stream *stream)
{
	int unread = 0;

	return reads_tcp(stream) && !shunt_eof_counts(stream) &&
	       !stream->group->sys->ioctl(stream->fd, FIONREAD, &unread) && !unread;
}

/* The link's FIN is behind bytes that wait for room or for the device. Until it has come, there is no end. */
static uint32_t without_end(struct shunt_stream *stream, uint32_t reported)
{
	uint32_t end = EPOLLRDHUP | EPOLLHUP;

	if (!reads_tcp(stream) || awaits_fin(stream)) {
		end |= EPOLLIN | EPOLLRDNORM;
		atomic_store(&stream->rx.hung_up, true);
	}
	return reported & ~end;
}

bool shunt_ready_awaits_end(struct shunt_stream *stream)
{
	return __builtin_expect(atomic_load_explicit(&stream->rx.hung_up, memory_order_relaxed),
				0) &&
	       shunt_end_at(&stream->end) == SHUNT_NEVER &&
	       !shunt_eof_counts(stream);
}

uint32_t shunt_ready_reset(struct shunt_stream *stream, uint32_t reported)
{
	if (__builtin_expect(reported & EPOLLHUP, 0))
		note_hangup(stream);
	if (atomic_load(&stream->state) != SHUNT_LINKED)
		return reported;
	if (!(reported & (EPOLLERR | EPOLLHUP)) && reported & EPOLLIN &&
	    shunt_repeat_hides(stream) && !(reported & EPOLLRDHUP))
		return reported & ~(uint32_t)(EPOLLIN | EPOLLRDNORM);
	if (!(reported & (EPOLLERR | EPOLLHUP)) && reported & (EPOLLIN | EPOLLRDHUP) &&
	    awaits_fin(stream))
		return reported & ~(uint32_t)(EPOLLIN | EPOLLRDNORM | EPOLLRDHUP);
	if (!(reported & (EPOLLERR | EPOLLHUP)))
		return reported;
	if (!(reported & EPOLLERR) && shunt_end_at(&stream->end) == SHUNT_NEVER &&
	    !shunt_eof_counts(stream))
		return without_end(stream, reported);
	if (!(reported & EPOLLERR))	/* TCP has ended both ways, and never says that without the end of what is read */
		return reported | EPOLLIN | EPOLLRDNORM | EPOLLRDHUP;
	return reported | EPOLLIN | EPOLLRDNORM | EPOLLRDHUP | EPOLLOUT | EPOLLWRNORM;
}

bool shunt_ready_flushed(struct shunt_stream *stream)
{
	struct shunt_tx *tx = &stream->tx;
	struct shunt_seat_out *out = &stream->seat->out;

	return !(atomic_load(&stream->seat->work) & ~SHUNT_WORK_DONE) && !tx->backlog.bytes &&
	       (atomic_load(&out->posted) >= atomic_load(&out->staged) ||
		shunt_end_has(&stream->end, SHUNT_END_BROKEN) || shunt_stream_is_released(stream));
}

/*
 * Not while the lane owes bytes: a peer that gives no room may make that last. A queue pair that has died posts nothing
 * more, and the link's end says what becomes of it.
 */
bool shunt_ready_answered(struct shunt_stream *stream)
{
	uint8_t retiring = atomic_load(&stream->seat->leaving.retiring);

	if (atomic_load(&stream->state) != SHUNT_LINKED ||
	    shunt_intake_final(&stream->seat->in.intake) || retiring >= SHUNT_CANNOT_RETIRE)
		return true;
	return retiring == SHUNT_RETIRED && shunt_ready_flushed(stream);
}

bool shunt_ready_given(struct shunt_stream *stream)
{
	return shunt_ready_answered(stream) ||
	       atomic_load(&stream->seat->leaving.retiring) == SHUNT_RETIRED;
}
