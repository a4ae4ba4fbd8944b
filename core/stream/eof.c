/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include "core/stream/bypass.h"
#include "core/stream/kernel_tcp.h"
#include "core/stream/stream.h"
#include "core/poll/group.h"
#include "core/base/config.h"
#include "core/base/sys.h"
#include "core/stream/eof.h"

/* The link has told of the end, and TCP was to bring bytes before it, which are not there. */
static bool is_cut(struct shunt_stream *stream)
{
	const struct shunt_rx *rx = &stream->rx;
	const struct shunt_seat_in *in = &stream->seat->in;
	uint64_t head = atomic_load(&rx->head), fin = shunt_end_at(&stream->end);
	uint64_t from = shunt_intake_on_link(&in->intake) ? head : atomic_load(&in->boundary),
		 tail = atomic_load(&in->tail);
	uint64_t ring = tail > from ? tail - from : 0;	/* NEVER: none that count */
	int there = 0;

	return fin != SHUNT_NEVER && !stream->group->sys->ioctl(stream->fd, FIONREAD, &there) &&
	       head + there + ring < fin;
}

/* Reported once, on whichever way: the kernel has seen a reset of its own. */
int shunt_stream_pop_error(struct shunt_stream *stream)
{
	uint64_t before = shunt_end_learn(&stream->end, SHUNT_LEARN_ERROR_TOLD, 0);
	int error = shunt_end_error_of(before), kernel = 0;
	socklen_t length = sizeof(kernel);

	if (error && stream->fd >= 0)
		stream->group->sys->getsockopt(stream->fd, SOL_SOCKET, SO_ERROR, &kernel, &length);
	if (!error || before & SHUNT_END_TOLD)
		return 0;
	shunt_bypass_compare(stream);
	if (kernel == ECONNABORTED)
		return kernel;	/* the socket has been destroyed here, and the peer's reset answers that */
	return error == EPIPE && kernel && is_cut(stream) ? kernel : error;
}

void shunt_stream_was_reset(struct shunt_stream *stream, int error)
{
	if (error != EPIPE)
		shunt_end_learn(&stream->end, SHUNT_LEARN_RESET, error);
}

/* The program is told that it is over: what the link may still bring is nothing any more. */
static void hear_no_more(struct shunt_stream *stream)
{
	struct shunt_group *group = stream->group;
	struct shunt_rx *rx = &stream->rx;
	struct shunt_seat_in *in = &stream->seat->in;

	if (atomic_load(&stream->state) != SHUNT_LINKED || shunt_intake_copied(&in->intake))
		return;
	shunt_lock_take(&group->lock);
	if (shunt_intake_on_link(&in->intake) ? atomic_load(&in->tail) == atomic_load(&rx->head) :
						atomic_load(&in->boundary) == SHUNT_NEVER)
		shunt_intake_turn(&in->intake, SHUNT_INTAKE_IS_OVER);
	shunt_lock_leave(&group->lock);
}

/* Nothing to read: is that the end? On the link FIN says so, and comes behind all data. */
ssize_t shunt_eof_reached(struct shunt_stream *stream)
{
	uint64_t head = atomic_load_explicit(&stream->rx.head, memory_order_relaxed);
	enum shunt_end_due due = shunt_end_due(&stream->end, head,
					       shunt_intake_on_link(&stream->seat->in.intake));
	socklen_t length = sizeof(int);
	int error;

	if (due == SHUNT_END_EOF && __builtin_expect(shunt_bypass_before_end(stream), 0))
		return -shunt_stream_pop_error(stream);
	if (due != SHUNT_END_ERROR)
		return due == SHUNT_END_EOF ? 0 : -EAGAIN;
	if (shunt_end_has(&stream->end, SHUNT_END_OWES_RESET) &&
	    stream->fd >= 0) { /* what was unread before it has been read */
		shunt_streams_reset_tcp(stream->group->sys, stream->fd);
		stream->group->sys->getsockopt(stream->fd, SOL_SOCKET, SO_ERROR, &error,
						&length); /* ours is told */
		shunt_end_learn(&stream->end, SHUNT_LEARN_RESET_PAID, 0);
	}
	hear_no_more(stream);
	return -shunt_stream_pop_error(stream);
}

/* Once, as a reset is told. */
ssize_t shunt_eof_in_doubt(struct shunt_stream *stream, int fd)
{
	if (shunt_end_learn(&stream->end, SHUNT_LEARN_SUSPICION_TOLD, 0) &
	    (SHUNT_END_SHUT_READ | SHUNT_END_RESET | SHUNT_END_TOLD))
		return 0;
	shunt_streams_reset_tcp(stream->group->sys, fd);
	return -ECONNRESET;
}

/*
 * The kernel's end of stream may have overtaken a switch that was announced before it. A peer that carries a stream
 * on the link also ends it there, so before FIN the kernel's end does not count. One exception is a reset, when bytes
 * are still to come before FIN or a switch. Another is an end that the program has been told of. A device's work for
 * a peer is here before the peer's kernel sends anything later. So a peer whose end comes before CONFIRM has not
 * switched. The modelled device's work may come later, and what a dead queue pair owes LEAVE tells.
 */
bool shunt_eof_counts(struct shunt_stream *stream)
{
	if ((shunt_end_at(&stream->end) != SHUNT_NEVER ||
	     atomic_load(&stream->seat->in.boundary) != SHUNT_NEVER ||
	     shunt_end_has(&stream->end, SHUNT_END_TOLD)) &&
	    shunt_stream_tcp_closed(stream))
		return true;
	if (atomic_load(&stream->seat->in.proof.state) != SHUNT_PROVEN)
		return true;	/* an end that comes before the proof is the kernel's to tell */
	if (!shunt_heading_halted(&stream->seat->out.heading) &&
	    (shunt_intake_final(&stream->seat->in.intake) ||
	     (!shunt_stream_is_agreed(stream) && !stream->group->config->soft_model[0])))
		return true;
	return atomic_load(&stream->state) != SHUNT_LINKED || shunt_stream_is_released(stream) ||
	       shunt_intake_copied(&stream->seat->in.intake);
}

/* The program reads the end at `head`: the next call must not wait for FIN, which may still be on its way. */
static void end_here(struct shunt_stream *stream, uint64_t head)
{
	struct shunt_group *group = stream->group;

	shunt_lock_take(&group->lock);
	atomic_store(&stream->end.fin, head);
	shunt_end_learn(&stream->end, SHUNT_LEARN_PROOF, 0); /* whatever FIN is on its way */
	shunt_lock_leave(&group->lock);
}

/* TCP has ended. Before FIN, or before a switch, only a reset does that; behind its own FIN the kernel does not say so. */
ssize_t shunt_eof_of_tcp(struct shunt_stream *stream, int fd)
{
	const struct shunt_rx *rx = &stream->rx;
	uint64_t head = atomic_load(&rx->head), fin = shunt_end_at(&stream->end),
		 boundary = atomic_load(&stream->seat->in.boundary);
	bool missing = (fin != SHUNT_NEVER && fin > head) || (boundary != SHUNT_NEVER && boundary > head);

	if (missing)
		return shunt_eof_in_doubt(stream, fd);
	if (shunt_end_has(&stream->end, SHUNT_END_TOLD))
		hear_no_more(stream);
	else
		end_here(stream, head);
	return 0;
}
