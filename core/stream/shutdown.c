/* SPDX-License-Identifier: MIT */
#include "core/stream/rest.h"
#include "core/stream/shutdown.h"
#include <errno.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include "core/engine.h"
#include "core/stream/handover.h"
#include "core/stream/deferred_fin.h"
#include "core/stream/loss.h"
#include "core/stream/offer.h"
#include "core/stream/hand_back.h"
#include "core/stream/proof.h"
#include "core/stream/backlog.h"
#include "core/stream/sleep.h"
#include "core/stream/spare.h"
#include "core/stream/tapped.h"

/* True: FIN is due, and the caller kicks the lane. */
static bool note_end(struct shunt_stream *stream)
{
	struct shunt_tx *tx = &stream->tx;
	struct shunt_seat_out *out = &stream->seat->out;
	uint8_t show = atomic_load(&out->show);

	if (!shunt_end_has(&stream->end, SHUNT_END_SHUT_WRITE) ||
	    atomic_load(&stream->state) != SHUNT_LINKED || shunt_stream_is_released(stream) ||
	    (show != SHUNT_SHOWN && show != SHUNT_WRITTEN))
		return false;
	atomic_store(&out->fin, tx->offset);
	shunt_lane_enqueue(stream->seat->lane, stream->seat, SHUNT_WORK_FIN | shunt_seat_rest(out));
	return true;
}

void shunt_tx_say_end(struct shunt_stream *stream)
{
	if (note_end(stream))
		shunt_lane_kick(stream->seat->lane);
}

bool shunt_tx_finish_unkicked(struct shunt_stream *stream)
{
	if (shunt_end_has(&stream->end, SHUNT_END_SHUT_WRITE))
		return false;
	shunt_end_learn(&stream->end, SHUNT_LEARN_SHUT_WRITE, 0);
	shunt_seat_unquicken(&stream->seat->out);
	return !shunt_end_has(&stream->end, SHUNT_END_RESET) && /* it would overtake a reset of ours */
	       note_end(stream);
}

void shunt_tx_finish(struct shunt_stream *stream)
{
	if (shunt_tx_finish_unkicked(stream))
		shunt_lane_kick(stream->seat->lane);
}

/* The kernel's end must wait until what comes before it has been written, or has arrived. tx.lock held. */
static bool kernel_must_wait(struct shunt_stream *stream, int fd, bool closing)
{
	shunt_assert_held(&stream->tx.lock);
	if (!shunt_hand_back_unread(stream, fd, false))
		shunt_hand_back_overflow(stream, fd);
	if (atomic_load(&stream->state) == SHUNT_LINKED)
		shunt_loss_tell(stream);	/* before the kernel's end: it must not hide that something is missing */
	if (shunt_deferred_fin_keep(stream, fd, closing))
		return true;
	if (!stream->tx.backlog.bytes)
		return false;
	stream->tx.backlog.fin = true;
	shunt_backlog_await(stream);
	return true;
}

/*
 * Where the reader takes bytes from the link, the kernel's end comes before FIN. A peer that has seen that finds the
 * connection closed. A reader that may look at TCP has FIN first. The kernel's end does not count before it
 * (shunt_eof_counts), and a program that was told of it would get EAGAIN.
 */
static bool fin_is_first(const struct shunt_stream *stream)
{
	const struct shunt_heading *heading = &stream->seat->out.heading;

	return (!shunt_heading_on_link(heading) || shunt_heading_unpassed(heading)) &&
	       !shunt_heading_halted(heading);
}

void shunt_tx_end(struct shunt_stream *stream, int fd)
{
	struct shunt_engine *engine = shunt_stream_engine(stream);
	bool ended = shunt_end_has(&stream->end, SHUNT_END_SHUT_WRITE), waits;

	waits = kernel_must_wait(stream, fd, true);
	if (fin_is_first(stream)) /* or was handed back just now */
		shunt_tx_finish(stream);
	if (!waits && !ended)
		engine->sys->shutdown(fd, SHUT_WR);
	shunt_tx_finish(stream);
}

/*
 * Neither direction is wanted any more: later data is answered by a reset (TCPABORTONDATA), also when the program
 * calls nothing any more. A sender that is waiting for room has such data.
 */
static void refuse_more(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_rx *rx = &stream->rx;
	struct shunt_seat_in *in = &stream->seat->in;

	shunt_request_refuse(&engine->loop, &stream->refusing, true);
	if (shunt_intake_on_link(&in->intake) &&
	    atomic_load(&in->tail) - atomic_load(&rx->head) >= in->ring.bytes / 2) {
		shunt_end_learn(&stream->end, SHUNT_LEARN_OWN_RESET, 0);
		shunt_lane_request(stream->seat->lane, stream->seat, SHUNT_WORK_RESET);
	}
}

/*
 * The link has said both ends, or TCP the peer's, and the kernel may not know of ours yet (deferred_fin.h, spare.h). Ours has
 * come there once nothing before it waits for room.
 */
static bool both_have_ended(struct shunt_stream *stream, int fd)
{
	const struct shunt_seat_out *out = &stream->seat->out;
	uint8_t state = 0;
	socklen_t length = sizeof(state);

	if (!shunt_end_has(&stream->end, SHUNT_END_SHUT_WRITE) || stream->tx.backlog.bytes ||
	    atomic_load(&out->posted) != atomic_load(&out->staged))
		return false;
	if (shunt_end_at(&stream->end) != SHUNT_NEVER)
		return true;
	return shunt_seat_fin_is_due(out) &&
	       !stream->group->sys->getsockopt(fd, IPPROTO_TCP, TCP_INFO, &state, &length) &&
	       state == TCP_CLOSE_WAIT;
}

int shunt_stream_shutdown(struct shunt_engine *engine, int fd, struct shunt_stream *stream, int how)
{
	bool linked, send = how != SHUT_RD, receive = how != SHUT_WR;
	int result;

	if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
		return -EINVAL;
	if (shunt_stream_use_is_news(stream))
		shunt_offer_used(engine, stream);
	if (atomic_load(&stream->state) == SHUNT_FOREIGN &&
	    shunt_handover_ask(engine, fd, stream) == -ENOMEM)
		return -ENOMEM;
	shunt_lock_take(&stream->rx.lock);
	shunt_lock_take(&stream->tx.lock);
	while (atomic_load(&stream->state) == SHUNT_LINKED &&
	       atomic_load(&stream->seat->leaving.retiring) <= SHUNT_TAKEN &&
	       shunt_rest_holds(stream)) {	/* a fork's child has it */
		shunt_lock_leave(&stream->tx.lock);
		shunt_lock_leave(&stream->rx.lock);
		if (shunt_stream_retire(engine, fd, stream, SHUNT_CAUSE_FORK))
			return -ENOMEM;
		shunt_lock_take(&stream->rx.lock);
		shunt_lock_take(&stream->tx.lock);
	}
	linked = atomic_load(&stream->state) == SHUNT_LINKED;
	if (linked && both_have_ended(stream, fd)) {
		result = -ENOTCONN;
		goto leave;
	}
	if (shunt_end_has(
		    &stream->end,
		    SHUNT_END_OWES_RESET)) { /* reset already, once the unread bytes are read; the peer must see no end before that */
		result = -ENOTCONN;
		goto leave;
	}
	if (how == SHUT_WR && linked && shunt_stream_is(engine, fd, stream) &&
	    shunt_spare_shut(engine, stream, fd)) {
		shunt_tx_finish(stream);
		result = 0;
		goto leave;
	}
	if (send && kernel_must_wait(stream, fd, false))
		how = how == SHUT_RDWR ? SHUT_RD : -1;
	if (send && linked && fin_is_first(stream) && shunt_stream_is(engine, fd, stream))
		shunt_tx_finish(stream);
	if (receive && linked && shunt_proof_end_reading(stream))
		how = how == SHUT_RDWR ? SHUT_WR : -1;
	result = how >= 0 && engine->sys->shutdown(fd, how) ? -errno : 0;
	if (send && shunt_stream_is(engine, fd, stream))
		shunt_tx_finish(stream);
	if (receive && shunt_stream_is(engine, fd, stream) && !shunt_stream_is_plain(stream))
		shunt_end_learn(&stream->end, SHUNT_LEARN_SHUT_READ, 0);
	if (linked && shunt_end_has(&stream->end, SHUNT_END_SHUT_READ) &&
	    shunt_end_has(&stream->end, SHUNT_END_SHUT_WRITE) &&
	    !shunt_end_has(&stream->end, SHUNT_END_RESET))
		refuse_more(engine, stream);
leave:
	if (!result && send)
		shunt_tapped_event(stream, SHUNT_TAP_END);
	shunt_lock_leave(&stream->tx.lock);
	shunt_lock_leave(&stream->rx.lock);
	if (linked)
		shunt_sleep_tell(stream, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLHUP);
	return result;
}
