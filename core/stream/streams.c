/* SPDX-License-Identifier: MIT */
#include "core/stream/kept.h"
#include "core/stream/rest.h"
#include "core/stream/sleep.h"
#include "core/stream/streams.h"
#include "core/stream/handover.h"
#include "core/stream/wait.h"
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include "core/base/lsan.h"
#include "core/engine.h"
#include "core/lane/lane_queue.h"
#include "core/lane/lane_serve.h"
#include "core/lane/send_queue.h"
#include "core/lane/seats.h"
#include "core/peer/attach.h"
#include "core/stream/backlog.h"
#include "core/stream/decision.h"
#include "core/stream/spare.h"
#include "core/stream/traced.h"
#include "core/stream/user_timeout.h"

static struct shunt_seat *no_seat(void)
{
	return (struct shunt_seat *)&shunt_seat_none;
}

static bool add_slab(struct shunt_engine *engine)
{
	struct shunt_stream **slabs, *slab;

	slabs = realloc(engine->slabs, (engine->slab_count + 1) * sizeof(*slabs));
	if (!slabs)
		return false;
	engine->slabs = slabs;
	slab = shunt_lsan_map(SHUNT_SLAB_STREAMS * sizeof(*slab));
	if (!slab)
		return false;
	slabs[engine->slab_count++] = slab;
	for (int i = SHUNT_SLAB_STREAMS - 1; i >= 0; i--) {
		shunt_lock_rank(&slab[i].rx.lock, SHUNT_RANK_RX);
		shunt_lock_rank(&slab[i].tx.lock, SHUNT_RANK_TX);
		slab[i].seat = no_seat();
		slab[i].group = &engine->group;
		slab[i].next_free = engine->free_streams;
		engine->free_streams = &slab[i];
	}
	return true;
}

static bool is_in_use(const struct shunt_stream *stream)
{
	return atomic_load_explicit(&stream->state, memory_order_relaxed) != SHUNT_UNUSED;
}

/* Each after the one before. The last one, of `state`, is the barrier for all of them. */
#define set(word, value) atomic_store_explicit(word, value, memory_order_release)

/* Everything but what stale holders of the pointer may still be using: locks and list links. */
static void reset(struct shunt_engine *engine, struct shunt_stream *stream, int fd, bool nonblocking)
{
	struct shunt_tx *tx = &stream->tx;
	struct shunt_rx *rx = &stream->rx;

	stream->file.kind = SHUNT_FILE_STREAM;
	set(&stream->fd, fd);
	stream->numbers = 1;
	stream->why.plain = SHUNT_CAUSE_NONE;
	stream->why.left = SHUNT_LEFT_NEVER;
	stream->why.left_times = 0;
	set(&stream->doubt.why, SHUNT_CAUSE_NONE);
	stream->doubt.looks = 0;
	stream->doubt.settled = stream->doubt.queued = false;
	stream->doubt.from = stream->doubt.looked = 0;
	stream->tuple = (struct shunt_tuple) { 0 };
	stream->caller = 0;
	stream->proven_on = 0;
	stream->possession = NULL;
	set(&stream->marks.own, SHUNT_MARKS_NONE);
	set(&stream->marks.users, 0);
	set(&stream->claim.state, SHUNT_UNCLAIMED);
	stream->claim.moved = 0;
	stream->rendezvous = NULL;
	set(&stream->carried_since, 0);
	stream->claim.line = stream->claim.return_tries = 0;
	stream->claim.return_at = 0;
	stream->holds = 0;
	set(&stream->handing.fd, -1);
	set(&stream->handing.wanted, false);
	stream->sharing.forked = 0;
	set(&stream->sharing.slot, NULL);
	set(&stream->uses, 0);
	set(&stream->lasting, SHUNT_LASTING_UNKNOWN);
	memset(stream->dialled, 0, sizeof(stream->dialled));
	stream->sharing.rest = 0;
	stream->parting = SHUNT_PARTING_NONE;
	stream->refusing = false;
	set(&stream->role, SHUNT_CONNECTOR);
	set(&stream->mock, (uint8_t)__atomic_load_n(&engine->config.mock, __ATOMIC_SEQ_CST));
	set(&stream->mode, nonblocking ? SHUNT_MODE_NONBLOCKING : 0);
	set(&stream->usage, SHUNT_USE_NONE);
	set(&stream->options.receive_timeout_ns, UINT64_MAX);
	set(&stream->options.send_timeout_ns, UINT64_MAX);
	set(&stream->options.low_water, 1);
	set(&stream->options.asks, SHUNT_ASKS_UNKNOWN);
	set(&stream->options.user_timeout_ms, SHUNT_USER_TIMEOUT_UNKNOWN);
	set(&stream->options.changed, 0);

	tx->nonce_at = SHUNT_NEVER;
	set(&tx->corked, false);
	tx->backlog.written = 0;
	__atomic_store_n(&tx->backlog.fd, -1, __ATOMIC_RELAXED);
	tx->backlog.linger.l_onoff = SHUNT_LINGERS_ITSELF;
	tx->backlog.fin = false;
	tx->offset = 0;
	tx->bytes = (struct shunt_bytes) { 0 };
	memset(tx->sizes, 0, sizeof(tx->sizes));

	set(&rx->nonce.fd, -1);
	rx->nonce.end_reading = false;
	rx->nonce.aside = 0;
	shunt_end_begin(&stream->end);
	set(&rx->head, 0);
	set(&rx->answers, 0);
	set(&rx->hung_up, false);
	set(&tx->trace.passes, 0);
	set(&tx->trace.ruled, 0);
	rx->bytes = (struct shunt_bytes) { 0 };
	atomic_store(&stream->state, SHUNT_FRESH);
}

/* Both directions are on the link from their first byte, as if each had been upgraded there and passed that. */
static void begin_on_link(struct shunt_seat *seat)
{
	struct shunt_seat_out *out = &seat->out;
	struct shunt_seat_in *in = &seat->in;

	shunt_heading_turn(&out->heading, SHUNT_HEADING_UPGRADES);
	shunt_heading_turn(&out->heading, SHUNT_HEADING_IS_PASSED);
	shunt_intake_turn(&in->intake, SHUNT_INTAKE_OPENS);
	shunt_intake_turn(&in->intake, SHUNT_INTAKE_PASSES);
	atomic_store(&out->announced, 1);
	atomic_store(&in->announced, 1);
	atomic_store(&out->want_link, true);
}

void shunt_streams_begin_anew(struct shunt_stream *stream, int fd)
{
	struct shunt_engine *engine = shunt_stream_engine(stream);
	struct shunt_rendezvous *rendezvous = stream->rendezvous;
	struct shunt_tuple tuple = stream->tuple;
	/* Known, and as they are: a connection on which the program has set them is not kept. */
	uint64_t receive_ns = atomic_load(&stream->options.receive_timeout_ns),
		 send_ns = atomic_load(&stream->options.send_timeout_ns);
	/* The kernel counts on: bytes of the former connection do not belong to the new one. */
	uint64_t written = stream->tx.bytes.tcp + stream->tx.backlog.written,
		 read = stream->rx.bytes.tcp + stream->rx.nonce.aside;
	uint8_t role = stream->role, dialled[16];
	uint32_t holds;

	shunt_assert_held(&stream->rx.lock);
	shunt_assert_held(&stream->tx.lock);
	memcpy(dialled, stream->dialled, sizeof(dialled));
	shunt_send_queue_leave(stream->seat);
	shunt_send_queue_free(&stream->seat->out.stage);
	shunt_lock_take(&engine->streams_lock);
	holds = stream->holds;
	shunt_traced_free(engine, stream);
	shunt_lock_take(&engine->group.lock);
	shunt_seat_begin_anew(stream->seat);
	reset(engine, stream, fd, false);
	stream->rendezvous = rendezvous;
	stream->tuple = tuple;
	stream->holds = holds;
	set(&stream->role, role);
	memcpy(stream->dialled, dialled, sizeof(dialled));
	atomic_store(&stream->options.receive_timeout_ns, receive_ns);
	atomic_store(&stream->options.send_timeout_ns, send_ns);
	stream->tx.backlog.written = written;
	stream->rx.nonce.aside = read;
	set(&stream->claim.state, SHUNT_CLAIM_AGREED);
	set(&stream->usage, SHUNT_USE_TOLD);
	stream->seat->pendings = stream->tx.trace.pendings;
	shunt_send_queue_begin(stream->seat, 0);
	begin_on_link(stream->seat);
	atomic_store(&stream->state, SHUNT_LINKED);
	shunt_lock_leave(&engine->group.lock);
	shunt_lock_leave(&engine->streams_lock);
}

struct shunt_stream *shunt_streams_new(struct shunt_engine *engine, int fd, bool nonblocking)
{
	struct shunt_stream *stream = NULL;

	if (atomic_load(&engine->reap) && shunt_lock_try(&engine->group.seats_lock)) {
		shunt_streams_reap(engine);
		shunt_lock_leave(&engine->group.seats_lock);
	}
	shunt_lock_take(&engine->streams_lock);
	if (engine->free_streams || add_slab(engine)) {
		stream = engine->free_streams;
		engine->free_streams = stream->next_free;
		reset(engine, stream, fd, nonblocking);
	}
	shunt_lock_leave(&engine->streams_lock);
	return stream;
}

/* Threads that hold no lock of the stream may look at its seat. */
static void sit(struct shunt_stream *stream, struct shunt_seat *seat)
{
	shunt_assert_held(&shunt_stream_engine(stream)->streams_lock);
	__atomic_store_n(&stream->seat, seat, __ATOMIC_RELEASE);
}

static void get_seat(struct shunt_stream *stream)
{
	struct shunt_seat *seat = shunt_seat_make(&shunt_stream_engine(stream)->seats);

	if (!seat)
		return;
	seat->stream = stream;
#ifdef SHUNT_LOCK_CHECKS
	seat->sender = &stream->tx.lock;
#endif
	seat->pendings = stream->tx.trace.pendings;
	sit(stream, seat);
}

static void give_up_seat(struct shunt_stream *stream)
{
	struct shunt_seat *seat = stream->seat;

	if (!shunt_stream_is_seated(stream))
		return;
	sit(stream, no_seat());
	shunt_send_queue_free(&seat->out.stage);
	shunt_seat_free(&shunt_stream_engine(stream)->seats, seat);
}

/* streams_lock held. */
static void free_locked(struct shunt_engine *engine, struct shunt_stream *stream)
{
	shunt_assert_held(&engine->streams_lock);
	if (!is_in_use(stream) || stream->holds || atomic_load(&stream->listed) ||
	    atomic_load(&stream->next_reap) || stream->seat->link || stream->fd >= 0)
		return;
	atomic_store(&stream->state, SHUNT_UNUSED);
	give_up_seat(stream);
	shunt_backlog_free(stream);
	shunt_traced_free(engine, stream);
	shunt_kept_forget(engine, stream);
	free(atomic_exchange(&stream->pacing, NULL));
	stream->next_free = engine->free_streams;
	engine->free_streams = stream;
}

void shunt_streams_free(struct shunt_stream *stream)
{
	struct shunt_engine *engine = shunt_stream_engine(stream);

	shunt_lock_take(&engine->streams_lock);
	free_locked(engine, stream);
	shunt_lock_leave(&engine->streams_lock);
}

void shunt_streams_hold(struct shunt_stream *stream)
{
	shunt_lock_take(&shunt_stream_engine(stream)->streams_lock);
	stream->holds++;
	shunt_lock_leave(&shunt_stream_engine(stream)->streams_lock);
}

struct shunt_stream *shunt_streams_hold_at(struct shunt_link *link, uint32_t id)
{
	struct shunt_engine *engine = link->engine;
	struct shunt_stream *stream;

	shunt_lock_take(&engine->streams_lock);
	shunt_lock_take(&engine->group.lock);
	stream = shunt_streams_at(link, id);
	if (stream)
		stream->holds++;
	shunt_lock_leave(&engine->group.lock);
	shunt_lock_leave(&engine->streams_lock);
	return stream;
}

void shunt_streams_unhold(struct shunt_stream *stream)
{
	struct shunt_engine *engine = shunt_stream_engine(stream);

	shunt_lock_take(&engine->streams_lock);
	stream->holds--;
	free_locked(engine, stream);
	shunt_lock_leave(&engine->streams_lock);
}

/*
 * If the peer was asked to hand the stream back, it will not answer any more. Reading goes on, and waiters for the
 * answer look again, here or in a child.
 */
static void answer_nobody(struct shunt_stream *stream)
{
	uint8_t retiring = atomic_load(&stream->seat->leaving.retiring);

	shunt_rest_over(stream);
	if (retiring == SHUNT_RETIRING || retiring == SHUNT_TAKEN)
		shunt_sleep_tell(stream, EPOLLIN | EPOLLOUT | SHUNT_READY_ANSWERED);
	shunt_handover_answer(shunt_stream_engine(stream), stream);
}

int shunt_streams_seat(struct shunt_stream *stream, struct shunt_link *link,
		       struct shunt_lane *lane, struct shunt_place *place)
{
	struct shunt_engine *engine = shunt_stream_engine(stream);
	int result = -ENOMEM;

	shunt_lock_take(&stream->rx.lock);
	shunt_lock_take(&stream->tx.lock);
	shunt_lock_take(&engine->streams_lock);
	get_seat(stream);
	shunt_lock_leave(&engine->streams_lock);
	if (shunt_stream_is_seated(stream))
		result = shunt_seats_take(link, stream->seat, lane, place);
	if (result) {
		shunt_lock_take(&engine->streams_lock);
		give_up_seat(stream);
		shunt_lock_leave(&engine->streams_lock);
	}
	shunt_lock_leave(&stream->tx.lock);
	shunt_lock_leave(&stream->rx.lock);
	return result;
}

/* Its link will not name it again: the seat's number and memory there are given up. Both locks held. */
static void leave_link(struct shunt_stream *stream)
{
	struct shunt_seat *seat = stream->seat;

	if (!seat->link)
		return;
	answer_nobody(stream);
	shunt_lock_take(&seat->lane->lock);	/* who serves it has done so */
	shunt_lane_dismiss(seat->lane, seat);
	shunt_lane_leave(seat->lane);
	shunt_send_queue_leave(seat);
	shunt_traced_leave(stream);
	shunt_seats_leave(seat->link, seat);
}

void shunt_streams_unseat(struct shunt_stream *stream)
{
	leave_link(stream);
	shunt_lock_take(&shunt_stream_engine(stream)->streams_lock);
	give_up_seat(stream);
	shunt_lock_leave(&shunt_stream_engine(stream)->streams_lock);
	shunt_end_leave_link(&stream->end);
}

void shunt_streams_vacate(struct shunt_stream *stream)
{
	uint8_t state;

	shunt_lock_take(&stream->rx.lock);
	shunt_lock_take(&stream->tx.lock);
	state = atomic_load(&stream->state);
	if (state == SHUNT_CLOSED)
		leave_link(stream);	/* somebody may hold it, and look at what the link has left */
	else if (state != SHUNT_LINKED)	/* exit() has released that one: other threads go on with the link's memory */
		shunt_streams_unseat(stream);
	shunt_lock_leave(&stream->tx.lock);
	shunt_lock_leave(&stream->rx.lock);
	shunt_streams_free(stream);
}

void shunt_streams_released(struct shunt_stream *stream, uint8_t by)
{
	uint8_t before;

	if (!shunt_stream_is_seated(stream))
		return;
	before = atomic_fetch_or(&stream->seat->release, by) & SHUNT_RELEASED_BY_BOTH;
	if (before == SHUNT_RELEASED_BY_BOTH || (before | by) != SHUNT_RELEASED_BY_BOTH)
		return;
	if (__builtin_expect(shunt_kept_by_both(stream), 0))
		shunt_kept_later(stream);
	else
		shunt_streams_reap_later(stream);
}

void shunt_streams_reap_later(struct shunt_stream *stream)
{
	struct shunt_engine *engine = shunt_stream_engine(stream);
	struct shunt_stream *first = atomic_load(&engine->reap), *none = NULL;

	/* A link that ends has those looked at again that both ends have kept: they may be here already. */
	if (!atomic_compare_exchange_strong(&stream->next_reap, &none, stream))
		return;
	do {
		atomic_store(&stream->next_reap, first ? first : stream);
	} while (!atomic_compare_exchange_weak(&engine->reap, &first, stream));
}

bool shunt_streams_reap(struct shunt_engine *engine)
{
	struct shunt_stream *stream = atomic_exchange(&engine->reap, NULL);
	bool any = stream != NULL;

	shunt_assert_held(&engine->group.seats_lock);
	while (stream) {
		struct shunt_stream *next = atomic_exchange(&stream->next_reap, NULL);

		/*
		 * A thread that has just let go of it may still be about to leave its lane, which can go with its
		 * last seat.
		 */
		shunt_streams_vacate(stream);
		stream = next == stream ? NULL : next;
	}
	return any;
}

int shunt_streams_each(struct shunt_engine *engine, int (*visit)(struct shunt_stream *, void *),
		       void *arg)
{
	int result = 0;

	for (uint32_t i = 0; i < engine->slab_count && !result; i++)
		for (int j = 0; j < SHUNT_SLAB_STREAMS && !result; j++)
			if (is_in_use(&engine->slabs[i][j]))
				result = visit(&engine->slabs[i][j], arg);
	return result;
}

/* streams_lock held. */
static void find_more(struct shunt_engine *engine, struct shunt_sweep *sweep)
{
	sweep->at = sweep->count = 0;
	for (; sweep->from < engine->slab_count * SHUNT_SLAB_STREAMS && sweep->count < SHUNT_SWEEP; sweep->from++) {
		struct shunt_stream *stream = &engine->slabs[sweep->from / SHUNT_SLAB_STREAMS][sweep->from % SHUNT_SLAB_STREAMS];

		if (!is_in_use(stream) || !sweep->wants(stream, sweep->arg))
			continue;
		stream->holds++;
		sweep->streams[sweep->count++] = stream;
	}
}

struct shunt_stream *shunt_streams_next(struct shunt_engine *engine, struct shunt_sweep *sweep)
{
	if (sweep->at)
		shunt_streams_unhold(sweep->streams[sweep->at - 1]);
	if (sweep->at == sweep->count) {
		shunt_lock_take(&engine->streams_lock);
		find_more(engine, sweep);
		shunt_lock_leave(&engine->streams_lock);
	}
	return sweep->count ? sweep->streams[sweep->at++] : NULL;
}

bool shunt_streams_take_last(struct shunt_stream *stream, uint64_t until)
{
	struct shunt_engine *engine = shunt_stream_engine(stream);

	while (!shunt_lock_try(&stream->tx.lock)) {
		if (shunt_now(engine) >= until)
			return false;
		engine->sys->yield();
	}
	return true;
}

bool shunt_stream_is_plain(const struct shunt_stream *stream)
{
	return shunt_stream_is_kernels(stream);
}

bool shunt_stream_is_linked(const struct shunt_stream *stream)
{
	return atomic_load(&((struct shunt_stream *)stream)->state) == SHUNT_LINKED;
}

bool shunt_streams_note(struct shunt_engine *engine, struct shunt_stream *stream,
			enum shunt_cause cause)
{
	shunt_assert_held(&engine->streams_lock);
	if (!is_in_use(stream) || stream->why.plain)
		return false;
	stream->why.plain = cause;
	engine->causes[cause]++;
	return true;
}

void shunt_streams_because(struct shunt_engine *engine, struct shunt_stream *stream,
			   enum shunt_cause cause)
{
	bool first;

	shunt_lock_take(&engine->streams_lock);
	first = shunt_streams_note(engine, stream, cause);
	shunt_lock_leave(&engine->streams_lock);
	if (first)
		shunt_decision_plain(stream, cause);
}
