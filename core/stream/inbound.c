/* SPDX-License-Identifier: MIT */
#include "core/stream/kept.h"
#include "core/stream/inbound.h"
#include "core/stream/births.h"
#include "core/stream/spare.h"
#include <arpa/inet.h>
#include <errno.h>
#include <sys/epoll.h>
#include "core/engine.h"
#include "core/lane/nop.h"
#include "core/lane/roster.h"
#include "core/loop/request.h"
#include "core/stream/credit.h"
#include "core/stream/proof.h"
#include "core/stream/repeat.h"
#include "core/stream/reset_unread.h"
#include "core/stream/settle.h"
#include "core/stream/sleep.h"
#include "core/stream/traced.h"
#include "core/stream/tuple.h"
#include "core/stream/wait.h"
#include "core/trace/slow_step.h"

#define LINE 64	/* bytes of a cache line */

/*
 * Where the link's bytes may end without overrunning the ring that the sender is using. Of a spare that is given up nobody
 * reads them: a birth may have been on its way.
 */
static uint64_t ring_end(const struct shunt_stream *stream)
{
	uint64_t head = atomic_load_explicit(&stream->rx.head, memory_order_acquire);

	if (head == SHUNT_NEVER)
		return SHUNT_NEVER;
	return (head > stream->seat->in.link.from ? head : stream->seat->in.link.from) +
	       stream->seat->in.link.bytes;
}

/* The program has shut down both directions: data is answered by a reset (TCPABORTONDATA). */
static void refuse(struct shunt_engine *engine, struct shunt_stream *stream)
{
	if (!shunt_end_has(&stream->end, SHUNT_END_SHUT_WRITE) ||
	    (atomic_load(&stream->state) != SHUNT_LINKED && !shunt_kept_waits(stream)) ||
	    shunt_end_learn(&stream->end, SHUNT_LEARN_REFUSAL, 0) & SHUNT_END_REFUSED)
		return;
	shunt_lane_enqueue(stream->seat->lane, stream->seat, SHUNT_WORK_RESET);
	shunt_roster_kick(&engine->group, stream->seat->lane);
}

/* The first lines of what has come, before the program reads it: the other core has them (`prefetch`). */
static inline void fetch_ahead(const struct shunt_engine *engine, const struct shunt_seat_in *in,
			       uint64_t from, uint64_t bytes)
{
	uint64_t most = shunt_config_live(&engine->config.prefetch);

	for (uint64_t at = 0; at < bytes && at < most; at += LINE)
		__builtin_prefetch(in->link.ring + ((from + at) & (in->link.bytes - 1)));
}

static const char *on_data(struct shunt_engine *engine, struct shunt_stream *stream, uint64_t bytes)
{
	struct shunt_seat_in *in = &stream->seat->in;
	uint64_t tail = atomic_load_explicit(&in->tail, memory_order_relaxed) + bytes;

	if (__builtin_expect(!shunt_intake_open(&in->intake), 0))
		return "data for a direction that is on TCP";
	if (__builtin_expect(shunt_end_has(&stream->end, SHUNT_END_SHUT_READ), 0))
		refuse(engine, stream);
	if (__builtin_expect(tail > in->link.end, 0))
		in->link.end = ring_end(stream);	/* the reader writes `head` with each receive: a look at it is dear */
	if (__builtin_expect(tail > in->link.end, 0))
		return "more data than the ring holds";
	fetch_ahead(engine, in, tail - bytes, bytes);
	if (__builtin_expect(stream->seat->lane->followed != NULL, 0) &&
	    shunt_traced_expects(stream->seat->lane->followed))
		shunt_traced_arrive(engine, stream->seat->lane, stream, tail);	/* before a reader has it */
	atomic_store_explicit(&in->tail, tail, memory_order_release);
	shunt_sleep_notify(stream, EPOLLIN | SHUNT_READY_ARRIVED);
	return NULL;
}

/*
 * The second part of a message around the ring's end: the part before the end has arrived, and the reader sees both
 * at once.
 */
static const char *on_round(struct shunt_engine *engine, struct shunt_stream *stream, uint64_t bytes)
{
	const struct shunt_seat_in *in = &stream->seat->in;
	uint64_t tail = atomic_load_explicit(&in->tail, memory_order_relaxed);

	return on_data(engine, stream,
		       shunt_intake_open(&in->intake) ?
			       in->link.bytes - (tail & (in->link.bytes - 1)) + bytes :
			       bytes);
}

/* The answer to a LEAVE may be waiting for this one. */
static void count_announced(struct shunt_engine *engine, struct shunt_stream *stream)
{
	atomic_fetch_add(&stream->seat->in.announced, 1);
	if (atomic_load(&stream->seat->leaving.asked) == SHUNT_ASKED)
		shunt_loop_wake(&engine->loop);
}

static const char *on_upgrade(struct shunt_engine *engine, struct shunt_stream *stream, uint64_t at)
{
	struct shunt_rx *rx = &stream->rx;
	struct shunt_seat_in *in = &stream->seat->in;
	uint64_t head;	/* SHUNT_NEVER: of a spare that has been given up */
	bool gone;	/* perhaps a spare that has just been given up, and reset: it may be open */

	if (__builtin_expect(stream->spare != NULL, 0) && atomic_load(&stream->spare->rests) &&
	    !atomic_load(&stream->spare->born) &&
	    shunt_intake_open(&in->intake)) /* behind its birth it may change tracks before it is accepted */
		return shunt_births_add(stream, at);
	gone = __builtin_expect(atomic_load(&stream->state) == SHUNT_CLOSED, 0) &&
	       shunt_end_has(&stream->end, SHUNT_END_BROKEN);
	if (atomic_load(&in->proof.state) != SHUNT_PROVEN)
		return gone ? NULL : "an upgrade before its proof";
	if (__builtin_expect(at < atomic_load(&rx->head), 0) && shunt_repeat_overtook(stream, at)) {
		count_announced(engine, stream);
		/* TCP's end counts now, and the kernel's edge may have been spent on a call that waited for FIN. */
		shunt_sleep_notify(stream,
				   EPOLLIN | EPOLLRDHUP | SHUNT_READY_ARRIVED | SHUNT_READY_TRACK);
		return NULL;
	}
	head = atomic_load(&rx->head);
	if (atomic_load(&in->boundary) != SHUNT_NEVER || (head != SHUNT_NEVER && at < head) ||
	    at < atomic_load(&in->tail) || !shunt_intake_try(&in->intake, SHUNT_INTAKE_OPENS))
		return gone ? NULL : "an upgrade out of turn";
	in->link.from = at;
	in->link.end = 0;
	atomic_store(&in->tail, at);
	atomic_store(&in->boundary, at);
	count_announced(engine, stream);
	shunt_settle_later(stream);
	shunt_sleep_notify(stream, EPOLLIN);
	return NULL;
}

static const char *on_handback(struct shunt_engine *engine, struct shunt_stream *stream, uint64_t at)
{
	struct shunt_seat_in *in = &stream->seat->in;

	if (atomic_load(&in->second) != SHUNT_NEVER || at != atomic_load(&in->tail) ||
	    !shunt_intake_try(&in->intake, SHUNT_INTAKE_CLOSES))
		return "a handback out of turn";
	if (atomic_load(&in->boundary) == SHUNT_NEVER)
		atomic_store(&in->boundary, at);
	else
		atomic_store(&in->second, at);	/* behind an upgrade that has not been passed */
	count_announced(engine, stream);
	shunt_settle_later(stream);
	shunt_sleep_notify(stream, EPOLLIN | SHUNT_READY_TRACK);	/* the end may come over TCP */
	return NULL;
}

/* TCP goes on at `from`, before the HANDBACK that this is, too. */
static const char *on_repeat(struct shunt_engine *engine, struct shunt_stream *stream,
			     uint64_t from)
{
	const char *wrong = shunt_repeat_heard(stream, from);

	return wrong ? wrong : on_handback(engine, stream, atomic_load(&stream->seat->in.tail));
}

static const char *on_fin(struct shunt_stream *stream, uint64_t at, bool closed)
{
	struct shunt_rx *rx = &stream->rx;
	struct shunt_seat_in *in = &stream->seat->in;
	uint64_t least = shunt_intake_open(&in->intake) ? atomic_load(&in->tail) :
							  atomic_load(&rx->head),
		 nonce_at = atomic_load(&in->proof.at);
	/* A fork may keep it from the link. Then its counts are not the peer's: they are compared when it attaches. */
	bool candidate = atomic_load(&stream->state) == SHUNT_CANDIDATE;
	bool early = candidate || atomic_load(&in->proof.state) != SHUNT_PROVEN;

	if (atomic_load(&in->proof.state) == SHUNT_UNPROVEN ||
	    (nonce_at != SHUNT_NEVER && at < nonce_at))
		return "an end before its proof";
	/* It has overtaken the answer to our LEAVE: what is missing, and the end again, come over TCP. */
	if (shunt_intake_open(&in->intake) && at > least &&
	    atomic_load(&stream->seat->leaving.retiring) == SHUNT_RETIRING)
		return NULL;
	if (at == atomic_load(&stream->end.fin) ||
	    (candidate && atomic_load(&stream->end.fin) != SHUNT_NEVER))
		return NULL; /* the program has read TCP's end (shunt_eof_of_tcp) */
	if (atomic_load(&stream->end.fin) != SHUNT_NEVER || at < least ||
	    (shunt_intake_open(&in->intake) && at != least))
		return "an end of stream out of turn";
	if (early)
		shunt_end_learn(&stream->end, SHUNT_LEARN_EARLY_FIN, 0);
	atomic_store(&stream->end.fin, at);
	if (early)
		return NULL;
	atomic_store(&in->closed, closed);
	/* The kernel may be asked for more now: ready.c. */
	shunt_sleep_notify(stream, EPOLLIN | EPOLLRDHUP | EPOLLHUP | SHUNT_READY_ARRIVED |
					   SHUNT_READY_TRACK);
	return NULL;
}

/* tcp_reset(): EPIPE for who has seen the other side's end, ECONNRESET for who has not. */
static void on_reset(struct shunt_stream *stream)
{
	if (shunt_stream_looks_released(stream)) {	/* of the next life, which begins in a moment */
		shunt_kept_ends(stream);
		return;
	}
	if (atomic_load(&stream->seat->in.proof.state) != SHUNT_PROVEN)
		return;	/* the kernel says it, too */
	shunt_end_learn(&stream->end, SHUNT_LEARN_RESET,
			atomic_load(&stream->end.fin) == SHUNT_NEVER ? ECONNRESET : EPIPE);
	shunt_credit_go_on(stream);
	shunt_sleep_notify(stream, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLHUP | EPOLLERR);
	shunt_kept_later(stream);
}

static const char *on_ring(struct shunt_engine *engine, struct shunt_stream *stream, uint64_t offer)
{
	struct shunt_seat_out *out = &stream->seat->out;
	bool larger = shunt_ring_bytes(offer) > out->ring.bytes;

	if (!shunt_link_ring_is_sound(stream->seat->link, shunt_ring_offset(offer),
				      shunt_ring_bytes(offer)))
		return "a ring outside the arena";
	if (atomic_load(&out->ring.offer) && !atomic_load(&out->ring.turning))
		return "a second ring before the first was used";
	atomic_store(&out->ring.offer, offer);
	if (!larger)
		shunt_request_memory(&engine->loop);	/* a sender that is idle uses it, too: reclaim.c */
	shunt_credit_go_on(stream);
	if (shunt_seat_unstarve(out) || larger)	/* a sender that is idle has had room: it hears of no edge */
		shunt_sleep_notify(stream, EPOLLOUT);
	return NULL;
}

static const char *on_ring_from(struct shunt_stream *stream, uint64_t at)
{
	struct shunt_seat_in *in = &stream->seat->in;
	uint32_t bytes = atomic_load(&in->ring.next_bytes);

	if (!shunt_intake_open(&in->intake) || !bytes ||
	    atomic_load(&in->next_from) != SHUNT_NEVER || at != atomic_load(&in->tail))
		return "a ring change out of turn";
	in->link.from = at;
	in->link.end = 0;
	in->link.ring = in->ring.next;	/* set before `next_bytes` */
	in->link.bytes = bytes;
	atomic_store(&in->next_from, at);
	shunt_settle_later(stream);
	return NULL;
}

/* The sender waits for room. If all has been read, nobody may read again before it has some. */
static void on_blocked(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_rx *rx = &stream->rx;
	struct shunt_seat_in *in = &stream->seat->in;

	atomic_store(&in->ring.sender_waits, true);
	if (atomic_load(&rx->head) != atomic_load(&in->tail))
		return;
	shunt_lane_enqueue(stream->seat->lane, stream->seat, SHUNT_WORK_CREDIT);
	shunt_roster_kick(&engine->group, stream->seat->lane);
}

/*
 * The reader passes switches in the order in which they were announced. With two of them, the word of the first may
 * be the second's already.
 */
static bool is_announced(struct shunt_seat_out *out, uint64_t at)
{
	uint64_t upgrade = atomic_load(&out->upgrade_at), handback = atomic_load(&out->handback_at);
	uint64_t last = upgrade > handback ? upgrade : handback;

	return at == last || (at == upgrade && shunt_heading_unpassed(&out->heading) == 2);
}

/* The second look is for a HANDBACK that was not posted, and has just been taken back. */
static const char *on_switched(struct shunt_stream *stream,
			       uint64_t at)
{
	struct shunt_seat_out *out = &stream->seat->out;

	if ((!is_announced(out, at) && !is_announced(out, at)) ||
	    !shunt_heading_try(&out->heading, SHUNT_HEADING_IS_PASSED))
		return "a switch confirmed that was not announced";
	shunt_sleep_notify(stream, EPOLLOUT | SHUNT_READY_TRACK);
	return NULL;
}

static bool is_offset(enum shunt_imm type)
{
	return type == SHUNT_IMM_CREDIT || type == SHUNT_IMM_UPGRADE ||
	       type == SHUNT_IMM_HANDBACK || type == SHUNT_IMM_SWITCHED || type == SHUNT_IMM_FIN ||
	       type == SHUNT_IMM_RING_FROM || type == SHUNT_IMM_REPEAT;
}

/*
 * An acceptor's spare may release a second time, that it has begun anew, and a third time, that it has been given up. One word
 * has the last value, so messages are told apart by their number.
 */
static const char *on_release(struct shunt_engine *engine, struct shunt_stream *stream,
			      uint64_t value)
{
	if (__builtin_expect(value == SHUNT_RELEASE_ANEW, 0)) {
		if (shunt_stream_looks_released(stream))
			return shunt_spare_heard(engine, stream);
		/* A reset comes before the release of what was given up. Before that of what is kept there is none. */
		value = shunt_end_has(&stream->end, SHUNT_END_RESET) ?
				0 :
				SHUNT_RELEASE_AND_KEEP | INT64_MAX; /* overtaken: all has been read */
	}
	if (shunt_stream_looks_released(stream))
		return "a second release";
	if (value & SHUNT_RELEASE_AND_KEEP)
		atomic_fetch_or(&stream->seat->release, SHUNT_RELEASE_KEEPS);
	value &= ~SHUNT_RELEASE_AND_KEEP;
	shunt_reset_unread_heard(engine, stream, value);	/* first: who sees the other leaves the link */
	atomic_fetch_or(&stream->seat->release, SHUNT_RELEASE_HEARD);
	shunt_spare_answer(engine, stream);
	if (!stream->seat->link->initiator &&
	    atomic_load(&stream->claim.state) == SHUNT_CLAIM_LEAVING)
		return "a release behind a refusal";	/* who refuses was never there */
	/* A kept connection, and an end that is due, may not have to wait any more. */
	if (__builtin_expect(shunt_seat_fin_is_due(&stream->seat->out) ||
				     atomic_load(&stream->seat->release) & SHUNT_RELEASE_KEPT,
			     0)) {
		shunt_lane_enqueue(stream->seat->lane, stream->seat, SHUNT_WORK_DONE);
		shunt_roster_kick(&engine->group, stream->seat->lane);
	}
	shunt_credit_go_on(stream);
	/* Behind a reset all has been told. */
	shunt_sleep_notify(
		stream,
		SHUNT_READY_RELEASED |
			(shunt_end_has(&stream->end, SHUNT_END_RESET) ? 0 : EPOLLOUT));
	shunt_streams_released(stream, SHUNT_RELEASED_BY_PEER);
	shunt_kept_later(stream);
	return NULL;
}

static const char *on_control(struct shunt_engine *engine, struct shunt_stream *stream,
			      enum shunt_imm type)
{
	uint64_t value = __atomic_load_n(&stream->seat->control->word[type], __ATOMIC_ACQUIRE);

	bool closed = type == SHUNT_IMM_FIN && value & SHUNT_FIN_AND_CLOSED;

	if (closed)
		value &= ~SHUNT_FIN_AND_CLOSED;
	if (value >> 62 && is_offset(type))
		return "an offset that no stream has";
	switch (type) {
	case SHUNT_IMM_CREDIT:
		return shunt_credit_heard(stream, value);
	case SHUNT_IMM_UPGRADE:
		return on_upgrade(engine, stream, value);
	case SHUNT_IMM_HANDBACK:
		return on_handback(engine, stream, value);
	case SHUNT_IMM_SWITCHED:
		return on_switched(stream, value);
	case SHUNT_IMM_REPEAT:
		return on_repeat(engine, stream, value);
	case SHUNT_IMM_BLOCKED:
		on_blocked(engine, stream);
		return NULL;
	case SHUNT_IMM_FIN:
		return on_fin(stream, value, closed);
	case SHUNT_IMM_RESET:
		on_reset(stream);
		return NULL;
	case SHUNT_IMM_RING:
		return on_ring(engine, stream, value);
	case SHUNT_IMM_RING_FROM:
		return on_ring_from(stream, value);
	case SHUNT_IMM_RELEASE:
		return on_release(engine, stream, value);
	default:
		return "an immediate of unknown type";
	}
}

/* Sent before the peer knew that we read TCP only; it comes again there. */
static bool about_our_reading(enum shunt_imm type)
{
	return type == SHUNT_IMM_DATA || type == SHUNT_IMM_ROUND || type == SHUNT_IMM_UPGRADE ||
	       type == SHUNT_IMM_HANDBACK || type == SHUNT_IMM_RING_FROM || type == SHUNT_IMM_FIN ||
	       type == SHUNT_IMM_BLOCKED || type == SHUNT_IMM_REPEAT;
}

/* More of our messages have a receive waiting for them. */
static const char *on_lane(struct shunt_lane *lane)
{
	struct shunt_link *link = lane->link;
	struct shunt_control *controls = (struct shunt_control *)link->arena_base;
	uint64_t value = __atomic_load_n(&controls[0].word[lane->number], __ATOMIC_ACQUIRE);
	uint64_t allowed = atomic_load_explicit(&lane->allowed, memory_order_relaxed);

	if (value < allowed || value > allowed + link->peer_receives)
		return "credit for more receives than its queue has";
	atomic_store(&lane->allowed, value);
	shunt_assert_held(&lane->group->lock);
	if (__builtin_expect(value == allowed, 0))
		shunt_nop_answer(lane);
	if (atomic_load(&lane->waiting) || atomic_load(&lane->lane_due))
		shunt_roster_kick(&link->engine->group, lane);
	return NULL;
}

static __attribute__((noinline)) const char *count_arrival(struct shunt_lane *lane,
							   const struct ibv_wc *wc)
{
	struct shunt_arrivals *arrivals = lane->link->arrivals;
	enum shunt_imm type = ntohl(wc->imm_data) >> SHUNT_IMM_SHIFT;

	return type == SHUNT_IMM_DATA || type == SHUNT_IMM_ROUND ?
		       arrivals->count(arrivals, wc->byte_len) :
		       NULL;
}

/* Its end that has begun anew says so, and perhaps that it is given up. */
static bool is_of_spare(const struct shunt_seat *seat, enum shunt_imm type)
{
	uint8_t release = atomic_load(&seat->release);

	return (type == SHUNT_IMM_RELEASE && release & SHUNT_RELEASE_KEPT) ||
	       (type == SHUNT_IMM_RESET && release & SHUNT_RELEASE_RESTS);
}

static const char *on_message(struct shunt_engine *engine, struct shunt_lane *lane,
			      const struct ibv_wc *wc)
{
	uint32_t imm = ntohl(wc->imm_data);
	enum shunt_imm type = imm >> SHUNT_IMM_SHIFT;
	struct shunt_stream *stream;

	if (type == SHUNT_IMM_LANE)
		return on_lane(lane);
	stream = shunt_streams_at(lane->link, imm & SHUNT_IMM_STREAM_MASK);
	if (stream && atomic_load_explicit(&stream->state, memory_order_relaxed) == SHUNT_CANDIDATE &&
	    type != SHUNT_IMM_FIN && type != SHUNT_IMM_RESET && type != SHUNT_IMM_RELEASE)
		return "a message for a stream that was not agreed on";
	if (!stream || (shunt_stream_looks_released(stream) && !is_of_spare(stream->seat, type)))
		return "a message for no stream";
	if (__builtin_expect(stream->seat->lane != lane, 0))
		return "a message on a lane that is not its stream's";
	if (__builtin_expect(shunt_intake_copied(&stream->seat->in.intake), 0) &&
	    about_our_reading(type))
		return NULL;
	if (type == SHUNT_IMM_DATA)
		return on_data(engine, stream, wc->byte_len);
	if (type == SHUNT_IMM_ROUND)
		return on_round(engine, stream, wc->byte_len);
	return on_control(engine, stream, type);
}

static void kick_if_waiting(struct shunt_engine *engine, struct shunt_lane *lane)
{
	if (atomic_load(&lane->waiting) || atomic_load(&lane->holding) || atomic_load(&lane->lane_due))
		shunt_roster_kick(&engine->group, lane);
}

/* The WR was under way when the last poll began that could have seen it: time in the CQ since then does not count. */
static __attribute__((noinline)) void look_at_time(struct shunt_engine *engine,
						   struct shunt_lane *lane, uint64_t number)
{
	uint64_t posted = shunt_window_time(&lane->window, number);
	uint64_t seen = engine->group.gap.none_at;
	uint64_t least = shunt_config_live(&engine->config.slow_us) * 1000;
	const struct shunt_slow_about about = { .step = SHUNT_STEP_COMPLETION,
						.fd = -1,
						.extra = lane->link->peer_pid };

	if (posted && least && seen > posted && seen - posted >= least)
		shunt_slow_took(&engine->steps, shunt_now(engine), seen - posted, &about);
}

/* Work of a lane may have waited for this; with a window of the device, that of any lane. */
static void on_sent(struct shunt_engine *engine, struct shunt_lane *lane, uint64_t number)
{
	uint64_t since = shunt_window_time(&lane->window, number),
		 now = since ? shunt_now(engine) : 0;
	bool device = shunt_window_completed(&lane->window, number, now);

	if (since)
		shunt_histogram_add(lane->link_ns, SHUNT_TIME_BUCKETS, now - since);
	if (__builtin_expect(shunt_config_live(&engine->config.slow_us) != 0, 0))
		look_at_time(engine, lane, number);
	atomic_store_explicit(&lane->retired, number, memory_order_release);
	kick_if_waiting(engine, lane);
	for (lane = device ? engine->group.lanes : NULL; lane; lane = lane->next_in_group)
		kick_if_waiting(engine, lane);
}

/* Which queue it is of, only wr_id says (ibv_poll_cq(3)). */
static void on_error(struct shunt_engine *engine, const struct ibv_cq *cq, const struct ibv_wc *wc)
{
	struct shunt_lane *lane = shunt_roster_find(&engine->group, cq, wc->qp_num);

	if (!lane)
		return;
	if (wc->wr_id == (uintptr_t)lane)
		lane->flushed++;
	shunt_link_fail(lane->link, wc->status == IBV_WC_RETRY_EXC_ERR ? "the peer's device does not answer" :
				    "its queue pair failed");
}

void shunt_inbound_late(struct shunt_group *group, const struct ibv_wc *wc, uint64_t ns,
			int count)
{
	struct shunt_engine *engine = shunt_engine_of(group, group);
	struct shunt_lane *lane = (struct shunt_lane *)(uintptr_t)wc->wr_id;
	struct shunt_stream *stream = shunt_streams_at(lane->link,
						       ntohl(wc->imm_data) & SHUNT_IMM_STREAM_MASK);
	const struct shunt_slow_about about = {
		.step = SHUNT_STEP_POLL,
		.fd = stream ? atomic_load(&stream->fd) : -1,
		.tuple = stream && shunt_tuple_is_known(&stream->tuple) ? &stream->tuple : NULL,
		.extra = count,
	};

	shunt_slow_took(&engine->steps, shunt_now(engine), ns, &about);
}

void shunt_inbound_apply(struct shunt_group *group, const struct ibv_cq *cq,
			 const struct ibv_wc *wc)
{
	struct shunt_engine *engine = shunt_engine_of(group, group);
	struct shunt_lane *lane;
	const char *wrong;

	if (__builtin_expect(wc->status != IBV_WC_SUCCESS, 0)) {
		on_error(engine, cq, wc);
		return;
	}
	if (!(wc->opcode & IBV_WC_RECV)) {
		lane = shunt_roster_find(&engine->group, cq, wc->qp_num);
		if (lane)
			on_sent(engine, lane, wc->wr_id);
		return;
	}
	lane = (struct shunt_lane *)(uintptr_t)wc->wr_id;
	if (__builtin_expect(++lane->received >= lane->repost_at, 0))
		shunt_roster_repost(&engine->group, lane);
	/* The peer has been told that it has not come; or what was before it was not believed, so it is out of place. */
	if (__builtin_expect(atomic_load_explicit(&lane->link->state, memory_order_relaxed) >= SHUNT_LINK_BROKEN ||
			     atomic_load_explicit(&lane->link->distrusted, memory_order_relaxed), 0))
		return;
	wrong = on_message(engine, lane, wc);
	if (__builtin_expect(lane->metered, 0) && !wrong)
		wrong = count_arrival(lane, wc);
	if (__builtin_expect(wrong != NULL, 0))
		shunt_link_distrust(lane->link, wrong);
}
