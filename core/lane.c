#include <errno.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include "core/chain.h"
#include "core/engine.h"
#include "core/expiry.h"
#include "core/linger.h"
#include "core/overflow.h"
#include "core/pin.h"
#include "core/roster.h"
#include "core/stage.h"

enum { BATCH_SINGLE, BATCH_MERGE, BATCH_CHAIN, BATCH_HYBRID };	/* SHUNT_BATCH's words */

int shunt_lane_init(struct shunt_lane *lane)
{
	struct shunt_engine *engine = lane->link->engine;
	const struct shunt_config *config = &engine->config;
	uint64_t every;
	int result;

	lane->reserve = SHUNT_CONTROL_RESERVE;
	lane->frag_bytes = shunt_narrow_u32(config->frag_bytes);
	lane->sq_depth = lane->link->device->sq_depth;
	lane->rq_depth = lane->link->device->rq_depth;
	lane->merges = config->batch == BATCH_MERGE || config->batch == BATCH_HYBRID;
	lane->chains = config->batch == BATCH_CHAIN || config->batch == BATCH_HYBRID;
	result = shunt_window_init(&lane->window, config, lane->sq_depth, &engine->group.inflight);
	if (result)
		return result;
	/* A queue, or a window, full of unsignaled WRs would never empty (PF-11). */
	every = config->signal_every < lane->sq_depth / 2 ? config->signal_every : lane->sq_depth / 2;
	if (every > lane->window.wrs / 2)
		every = lane->window.wrs / 2;
	lane->signal_every = every ? shunt_narrow_u32(every) : 1;
	return shunt_chain_init(lane);
}

void shunt_lane_fini(struct shunt_lane *lane)
{
	shunt_window_fini(&lane->window);
	shunt_chain_fini(lane);
}

static void leave(struct shunt_lane *lane)
{
	shunt_lock_leave(&lane->lock);
	if (__builtin_expect(atomic_load(&lane->dirty), 0))
		shunt_lane_kick(lane);
}

/*
 * Bytes of the stream are on their way, and the device will say when they have arrived: until then
 * more of them are gathered (CP-01). What the device does at once is never waited for.
 */
static bool under_way(struct shunt_lane *lane, const struct shunt_stream *stream)
{
	const struct shunt_tx *tx = &stream->tx;

	return lane->late && tx->last_wr <= lane->last_signaled &&
	       tx->last_wr > atomic_load_explicit(&lane->retired, memory_order_acquire);
}

static void look_at_device(struct shunt_lane *lane)
{
	if (__builtin_expect(lane->backlog != NULL, 1))
		lane->late = __atomic_load_n(lane->backlog, __ATOMIC_RELAXED) != 0;
	else
		lane->late = lane->sent != atomic_load_explicit(&lane->retired, memory_order_relaxed);
	if (__builtin_expect(lane->late, 0))
		shunt_mock_watch(lane->link->engine);
}

/*
 * The peer offered another ring: what comes behind the bytes that were posted goes there. As soon
 * as it has RING_FROM, the peer may make another offer. lane.lock held.
 */
static void take_offer(struct shunt_lane *lane, struct shunt_stream *stream)
{
	struct shunt_tx *tx = &stream->tx;
	uint64_t offer = atomic_load_explicit(&tx->offer, memory_order_acquire), used = offer;
	uint64_t at = atomic_load_explicit(&tx->posted, memory_order_relaxed);

	atomic_store(&tx->turning, true);
	if (shunt_chain_control(lane->chain, stream, SHUNT_IMM_RING_FROM, 0, at) &&
	    shunt_chain_flush(lane->chain)) {
		tx->old_address = tx->ring_address;
		tx->old_bytes = tx->ring_bytes;
		tx->old_rkey = tx->ring_rkey;
		tx->ring_address = lane->link->peer_arena + shunt_ring_offset(offer);
		tx->ring_bytes = (uint32_t)shunt_ring_bytes(offer);	/* sound: arrival.c */
		tx->ring_rkey = shunt_ring_rkey(offer);
		tx->ring_from = at;
		tx->grow_asked = false;
		atomic_store(&tx->most, 0);
		atomic_compare_exchange_strong(&tx->offer, &used, 0);
	}
	atomic_store(&tx->turning, false);
}

/* Nothing of the stream is staged or queued. lane.lock and tx.lock held. */
static bool is_clear(const struct shunt_stream *stream)
{
	return atomic_load_explicit(&stream->tx.posted, memory_order_relaxed) == stream->tx.offset &&
	       !(atomic_load_explicit(&stream->lane_work, memory_order_relaxed) & ~SHUNT_WORK_DONE);
}

bool shunt_lane_change_ring(struct shunt_lane *lane, struct shunt_stream *stream)
{
	struct shunt_tx *tx = &stream->tx;

	shunt_lock_take(&lane->lock);
	if (atomic_load(&lane->waiting) || atomic_load(&lane->holding))
		shunt_lane_serve(lane);
	if (atomic_load(&tx->offer) && is_clear(stream) && !atomic_load(&lane->failed))
		take_offer(lane, stream);
	leave(lane);
	return !atomic_load(&tx->offer);
}

/* Takes bytes that are posted later; should the link die before, the peer learns of them. */
static size_t accept_later(struct shunt_stream *stream, const struct iovec *iov, size_t skip,
			   size_t bytes, uint64_t most, bool apart)
{
	struct shunt_tx *tx = &stream->tx;

	bytes = shunt_stage_take(stream, iov, skip, bytes, most, apart);
	if (bytes)
		__atomic_store_n(&stream->control->word[SHUNT_CONTROL_ACCEPTED], tx->offset, __ATOMIC_RELAXED);
	return bytes;
}

static size_t send_staged(struct shunt_lane *lane, struct shunt_stream *stream,
			  const struct iovec *iov, size_t skip, size_t bytes)
{
	size_t room = shunt_tx_room(&stream->tx, stream->tx.offset);

	if (bytes > room)
		bytes = room;
	if (bytes)
		bytes = accept_later(stream, iov, skip, bytes, SHUNT_STAGE_BYTES, !lane->merges);
	if (!bytes)
		return 0;
	__atomic_fetch_add(&lane->counters.staged_sends, 1, __ATOMIC_RELAXED);
	shunt_lane_request(lane, stream, SHUNT_WORK_DATA);
	return bytes;
}

/* The short way, if nothing is before these bytes. lane.lock held. */
static size_t send_direct(struct shunt_lane *lane, struct shunt_stream *stream, const struct iovec *iov,
			  int iovcnt, size_t skip, size_t bytes)
{
	struct shunt_tx *tx = &stream->tx;
	size_t taken, room;

	look_at_device(lane);
	if (__builtin_expect(lane->late, 0)) {
		shunt_group_poll(lane->link->engine);
		if (under_way(lane, stream) && bytes < lane->frag_bytes &&
		    bytes <= shunt_tx_room(tx, tx->offset))
			return 0;
	}
	if (__builtin_expect(atomic_load_explicit(&tx->offer, memory_order_relaxed) != 0, 0))
		take_offer(lane, stream);
	if (__builtin_expect(lane->retains || (lane->fetches && bytes > lane->max_inline), 0) &&
	    !shunt_pin_has(stream, iov, iovcnt))
		return 0;
	room = shunt_tx_room(tx, tx->offset);
	taken = shunt_chain_direct(lane, stream, iov, iovcnt, skip, bytes < room ? bytes : room);
	tx->offset += taken;
	atomic_store_explicit(&tx->staged, tx->offset, memory_order_relaxed);
	return taken;
}

size_t shunt_lane_send(struct shunt_lane *lane, struct shunt_stream *stream,
		       const struct iovec *iov, int iovcnt, size_t skip, size_t bytes)
{
	size_t taken = 0;

	if (shunt_lock_try(&lane->lock)) {
		if (__builtin_expect(atomic_load_explicit(&lane->waiting, memory_order_relaxed) ||
				     atomic_load_explicit(&lane->lane_due, memory_order_relaxed), 0))
			shunt_lane_serve(lane);
		if (is_clear(stream) && __builtin_expect(!atomic_load_explicit(&lane->failed, memory_order_relaxed), 1))
			taken = send_direct(lane, stream, iov, iovcnt, skip, bytes);
		leave(lane);
	}
	if (__builtin_expect(taken < bytes && !atomic_load(&lane->failed), 0))
		taken += send_staged(lane, stream, iov, skip + taken, bytes - taken);
	return taken;
}

size_t shunt_lane_overflow(struct shunt_lane *lane, struct shunt_stream *stream,
			   const struct iovec *iov, size_t skip, size_t bytes, uint64_t most)
{
	bool wide = false;

	if (shunt_lock_try(&lane->lock)) {
		wide = shunt_stage_widen(stream, most);
		leave(lane);
	}
	bytes = wide ? accept_later(stream, iov, skip, bytes, most, false) : 0;
	/* The thread that serves the lane tells when the stage can be widened. */
	shunt_lane_request(lane, stream, wide ? SHUNT_WORK_DATA : SHUNT_WORK_DONE);
	return bytes;
}

void shunt_lane_push(struct shunt_lane *lane, struct shunt_stream *stream)
{
	atomic_store_explicit(&stream->tx.gathering, false, memory_order_relaxed);
	shunt_lane_request(lane, stream, SHUNT_WORK_DATA);
}

size_t shunt_lane_gather(struct shunt_lane *lane, struct shunt_stream *stream, const struct iovec *iov,
			 size_t skip, size_t bytes)
{
	struct shunt_engine *engine = lane->link->engine;
	struct shunt_tx *tx = &stream->tx;
	size_t room = shunt_tx_room(tx, tx->offset);
	size_t taken = accept_later(stream, iov, skip, bytes < room ? bytes : room,
				    SHUNT_STAGE_BYTES, false);

	if (taken < bytes || tx->offset - atomic_load(&tx->posted) >= SHUNT_STAGE_BYTES) {
		shunt_lane_push(lane, stream);
	} else if (!atomic_load_explicit(&tx->gathering, memory_order_relaxed)) {
		atomic_store_explicit(&tx->gathered_at, shunt_now(engine), memory_order_relaxed);
		atomic_store_explicit(&tx->gathering, true, memory_order_release);
		shunt_service_gather(engine);
	}
	return taken;
}

/* --- serving the merge queue; lane.lock held --- */

static const struct {
	uint32_t work;
	enum shunt_imm type;
} controls[] = {	/* in the order in which a stream's work is served; DATA comes after the first */
	{ SHUNT_WORK_UPGRADE, SHUNT_IMM_UPGRADE },
	{ SHUNT_WORK_BLOCKED, SHUNT_IMM_BLOCKED },
	{ SHUNT_WORK_HANDBACK, SHUNT_IMM_HANDBACK },
	{ SHUNT_WORK_FIN, SHUNT_IMM_FIN },
	{ SHUNT_WORK_RESET, SHUNT_IMM_RESET },
	{ SHUNT_WORK_CREDIT, SHUNT_IMM_CREDIT },
	{ SHUNT_WORK_SWITCHED, SHUNT_IMM_SWITCHED },
	{ SHUNT_WORK_RING, SHUNT_IMM_RING },
	{ SHUNT_WORK_RELEASE, SHUNT_IMM_RELEASE },
};

/*
 * Up to where the link's bytes have been read. Those of TCP behind them make no room, and a peer whose stream is
 * the kernel's by now does not count them.
 */
static uint64_t read_of_link(const struct shunt_rx *rx)
{
	uint64_t head = atomic_load_explicit(&rx->head, memory_order_acquire), tail = atomic_load(&rx->tail);

	return head < tail ? head : tail;
}

static uint64_t control_value(struct shunt_stream *stream, enum shunt_imm type)
{
	switch (type) {
	case SHUNT_IMM_UPGRADE:
		return atomic_load(&stream->tx.upgrade_at);
	case SHUNT_IMM_HANDBACK:
		return atomic_load(&stream->tx.handback_at);
	case SHUNT_IMM_FIN:
		return atomic_load(&stream->tx.fin);
	case SHUNT_IMM_CREDIT:
		return read_of_link(&stream->rx);
	case SHUNT_IMM_RELEASE:
		return atomic_load(&stream->rx.head);
	case SHUNT_IMM_SWITCHED:
		return atomic_load(&stream->rx.switched);
	case SHUNT_IMM_RING:
		return atomic_load(&stream->rx.offered);
	default:
		return 0;
	}
}

/* Only bytes, and not many: they may as well wait for the stream's last WR. */
static bool may_hold(struct shunt_lane *lane, struct shunt_stream *stream, uint32_t work)
{
	struct shunt_tx *tx = &stream->tx;
	uint64_t bytes = atomic_load(&tx->staged) - atomic_load(&tx->posted);

	return __builtin_expect(lane->late, 0) && work == SHUNT_WORK_DATA && under_way(lane, stream) &&
	       !atomic_load(&tx->shut) && bytes && bytes < lane->frag_bytes;
}

void shunt_lane_hold(struct shunt_lane *lane, struct shunt_stream *stream, uint32_t work)
{
	shunt_lock_take(&lane->queue_lock);
	atomic_fetch_or(&stream->lane_work, work);
	if (!stream->queued && !atomic_load(&lane->failed)) {
		stream->queued = true;
		stream->next_in_lane = lane->held;
		lane->held = stream;
		atomic_fetch_add(&lane->holding, 1);
	}
	shunt_lock_leave(&lane->queue_lock);
}

/* WRs of the stream may be complete: who waits for that is told. True: something still waits. */
static bool awaits_done(struct shunt_lane *lane, struct shunt_stream *stream)
{
	struct shunt_tx *tx = &stream->tx;
	uint64_t retired = atomic_load(&lane->retired);
	bool waits = false;

	if (!shunt_pin_fetched(stream)) {
		waits = retired < atomic_load(&tx->pinned_wr);
		if (!waits)
			shunt_lane_fetched(stream);
	}
	waits |= shunt_linger_look(stream);
	if (stream->let_go) {
		if (waits || retired < tx->last_wr || atomic_load(&tx->pin))
			return true;	/* told by let_seat_go() of pin.c for the latter */
		shunt_streams_released(stream, SHUNT_RELEASED_BY_US);	/* it may be another's from here on */
		return false;
	}
	if (shunt_overflow_is_kept(stream) ||
	    (!shunt_stage_roomy(stream) && !shunt_overflow_has_room(stream)))
		return true;
	if (shunt_tx_unstarve(tx))
		shunt_group_tell(lane->link->engine, stream, EPOLLOUT);
	return waits;
}

void shunt_lane_fetched(struct shunt_stream *stream)
{
	atomic_store(&stream->tx.pinned_wr, 0);
	shunt_group_tell(stream->engine, stream, SHUNT_READY_FETCHED);
}

/* Nobody will read what has no room: the peer has closed, or one of us resets the connection. */
static bool is_unwanted(const struct shunt_stream *stream, uint32_t work)
{
	return work & SHUNT_WORK_RESET || atomic_load(&stream->released) ||
	       atomic_load(&stream->tx.dead);
}

/*
 * The peer takes FIN, HANDBACK and RING_FROM only behind the last byte that it has got. After the
 * first two the ring is not changed, so nothing names `posted` any more.
 */
static void drop_rest(struct shunt_stream *stream, uint32_t work)
{
	struct shunt_tx *tx = &stream->tx;
	uint64_t posted = atomic_load(&tx->posted);

	if (work & SHUNT_WORK_FIN)
		atomic_store(&tx->fin, posted);
	if (work & SHUNT_WORK_HANDBACK)
		atomic_store(&tx->handback_at, posted);
	if (work & SHUNT_WORK_BEHIND_DATA & ~(uint32_t)SHUNT_WORK_DATA)
		atomic_store(&tx->posted, atomic_load(&tx->staged));
}

/*
 * Posts the stream's bytes, as far as they have room. *behind: the work that has to wait with the
 * rest of them. False: no credit, or the window is closed.
 */
static bool serve_data(struct shunt_lane *lane, struct shunt_stream *stream, uint32_t *work,
		       uint32_t *behind)
{
	struct shunt_tx *tx = &stream->tx;
	enum shunt_chain_took took;

	for (;;) {
		took = shunt_chain_data(lane->chain, stream);
		if (took == SHUNT_CHAIN_STALLED)
			return false;
		if (took == SHUNT_CHAIN_ALL)
			break;
		if (!shunt_chain_flush(lane->chain))
			return false;
		if (is_unwanted(stream, *work)) {
			drop_rest(stream, *work);
			break;
		}
		if (atomic_load(&tx->offer))
			take_offer(lane, stream);
		if (!shunt_tx_room(tx, atomic_load(&tx->posted))) {
			shunt_expiry_begin(stream);
			*behind = *work & SHUNT_WORK_BEHIND_DATA;
			break;
		}
	}
	*work &= ~(SHUNT_WORK_DATA | *behind);
	return true;
}

/* Serves one stream's work. False: credit ran out; what is left is queued again. */
static bool serve_stream(struct shunt_lane *lane, struct shunt_stream *stream, uint32_t work)
{
	struct shunt_chain *chain = lane->chain;
	uint32_t behind = 0;
	bool released;

	/* Queued again since it was served: what `posted` and `releases` say is true only after the doorbell. */
	if (shunt_chain_has(chain, stream) && !shunt_chain_flush(chain))
		goto stalled;
	released = stream->let_go;
	if (__builtin_expect(work & SHUNT_WORK_DONE, 0)) {
		if (awaits_done(lane, stream))
			shunt_lane_hold(lane, stream, SHUNT_WORK_DONE);
		work &= ~SHUNT_WORK_DONE;
	}
	if (released)
		return true;	/* nothing may follow RELEASE */
	if (may_hold(lane, stream, work)) {
		lane->counters.held++;
		shunt_lane_hold(lane, stream, work);
		return true;
	}
	for (size_t i = 0; i < sizeof(controls) / sizeof(controls[0]); i++) {
		if (work & controls[i].work) {
			if (!shunt_chain_control(chain, stream, controls[i].type, controls[i].work,
						 control_value(stream, controls[i].type)))
				goto stalled;
			work &= ~controls[i].work;
		}
		if (i == 0 && work & SHUNT_WORK_DATA && !serve_data(lane, stream, &work, &behind))
			goto stalled;
	}
	if (__builtin_expect(behind, 0))
		shunt_lane_hold(lane, stream, behind);	/* until the next credit, or ring */
	return true;
stalled:
	shunt_lane_enqueue(lane, stream, work | behind);
	return false;
}

static void append(struct shunt_lane *lane, struct shunt_stream *stream)
{
	stream->next_in_lane = NULL;
	if (lane->last)
		lane->last->next_in_lane = stream;
	else
		lane->first = stream;
	lane->last = stream;
	atomic_fetch_add(&lane->waiting, 1);
}

/* Those that were held are looked at again. */
static void requeue_held(struct shunt_lane *lane)
{
	struct shunt_stream *stream, *next;

	shunt_lock_take(&lane->queue_lock);
	for (stream = lane->held; stream; stream = next) {
		next = stream->next_in_lane;
		append(lane, stream);
	}
	lane->held = NULL;
	atomic_store(&lane->holding, 0);
	shunt_lock_leave(&lane->queue_lock);
}

static struct shunt_stream *dequeue(struct shunt_lane *lane, uint32_t *work)
{
	struct shunt_stream *stream;

	shunt_lock_take(&lane->queue_lock);
	stream = lane->first;
	if (stream) {
		lane->first = stream->next_in_lane;
		if (!lane->first)
			lane->last = NULL;
		stream->queued = false;
		atomic_fetch_sub(&lane->waiting, 1);
		*work = atomic_exchange(&stream->lane_work, 0);
	}
	shunt_lock_leave(&lane->queue_lock);
	return stream;
}

void shunt_lane_enqueue(struct shunt_lane *lane, struct shunt_stream *stream, uint32_t work)
{
	shunt_lock_take(&lane->queue_lock);
	atomic_fetch_or(&stream->lane_work, work);
	if (!stream->queued && !atomic_load(&lane->failed)) {
		stream->queued = true;
		append(lane, stream);
	}
	shunt_lock_leave(&lane->queue_lock);
}

void shunt_lane_forget(struct shunt_lane *lane, struct shunt_stream *stream)
{
	shunt_lock_take(&lane->lock);
	atomic_store(&stream->lane_work, 0);
	shunt_lock_leave(&lane->lock);
	shunt_lane_kick(lane);
}

void shunt_lane_serve(struct shunt_lane *lane)
{
	struct shunt_chain *chain = lane->chain;
	struct shunt_stream *stream;
	uint32_t work = 0;

	if (atomic_load(&lane->failed))
		return;
	shunt_chain_begin(chain);
	look_at_device(lane);
	if (atomic_load_explicit(&lane->holding, memory_order_relaxed))
		requeue_held(lane);
	if (atomic_exchange(&lane->lane_due, false) &&
	    !shunt_chain_control(chain, NULL, SHUNT_IMM_LANE, 0, atomic_load(&lane->lane_value)))
		atomic_store(&lane->lane_due, true);
	while ((stream = dequeue(lane, &work)) != NULL) {
		if (!serve_stream(lane, stream, work)) {
			lane->counters.queue_stalls++;
			break;
		}
	}
	shunt_chain_flush(chain);
}

void shunt_lane_kick(struct shunt_lane *lane)
{
	do {
		atomic_store(&lane->dirty, true);
		if (!shunt_lock_try(&lane->lock))
			return;	/* its holder looks at `dirty` after leaving */
		atomic_store(&lane->dirty, false);
		shunt_lane_serve(lane);
		shunt_lock_leave(&lane->lock);
	} while (atomic_load(&lane->dirty));
	if (shunt_lane_stalled(lane))
		shunt_service_watch(lane->link->engine);
}

void shunt_lane_request(struct shunt_lane *lane, struct shunt_stream *stream, uint32_t work)
{
	shunt_lane_enqueue(lane, stream, work);
	shunt_lane_kick(lane);
}

bool shunt_lane_stalled(struct shunt_lane *lane)
{
	return (atomic_load(&lane->waiting) || atomic_load(&lane->holding) || atomic_load(&lane->unsettled) ||
		atomic_load(&lane->lane_due)) && !atomic_load(&lane->failed);
}

bool shunt_lane_arrived(struct shunt_lane *lane)
{
	const struct shunt_device_kind *kind = lane->link->device->kind;

	return kind->settled && !atomic_load_explicit(&lane->mute_since, memory_order_relaxed) ? kind->settled(lane->qp) :
	       __atomic_load_n(&lane->sent, __ATOMIC_RELAXED) == atomic_load(&lane->retired);
}

uint64_t shunt_lane_awaited(struct shunt_lane *lane)
{
	uint64_t number;

	shunt_lock_take(&lane->lock);
	number = lane->last_signaled;
	leave(lane);
	return number;
}

uint64_t shunt_lane_messages(struct shunt_lane *lane)
{
	uint64_t count;

	shunt_lock_take(&lane->lock);
	count = lane->sent - lane->reads;
	leave(lane);
	return count;
}

bool shunt_lane_heard(struct shunt_lane *lane, uint64_t messages)
{
	struct shunt_group *group = &lane->link->engine->group;
	bool heard;

	shunt_lock_take(&group->lock);
	heard = lane->received >= messages;
	shunt_lock_leave(&group->lock);
	if (heard)
		return true;
	atomic_store(&lane->unsettled, true);
	shunt_service_watch(lane->link->engine);
	return false;
}

bool shunt_lane_settled(struct shunt_lane *lane)
{
	if (shunt_lane_arrived(lane))
		return true;
	atomic_store(&lane->unsettled, true);
	/* A device with a thread may have told the service thread before it could see the mark. */
	if (shunt_lane_arrived(lane))
		shunt_service_wake(lane->link->engine);
	else
		shunt_service_watch(lane->link->engine);
	return false;
}

bool shunt_lane_handed_over(struct shunt_lane *lane, struct shunt_stream *stream)
{
	if (atomic_load(&stream->released))
		return true;
	shunt_lane_kick(lane);
	shunt_group_poll_fully(lane->link->engine);
	atomic_store(&stream->tx.wants_handed, true);
	if (!atomic_load(&stream->tx.handed))
		return false;	/* a window keeps it back: who posts it sees the mark */
	return shunt_lane_settled(lane) && !atomic_load(&lane->failed);
}

/* --- receives --- */

int shunt_lane_post_receives(struct shunt_lane *lane, uint32_t count)
{
	struct ibv_recv_wr wr[64], *bad;

	while (count) {
		uint32_t n = count < 64 ? count : 64;

		for (uint32_t i = 0; i < n; i++)
			wr[i] = (struct ibv_recv_wr) { .next = i + 1 < n ? &wr[i + 1] : NULL,
						       .wr_id = (uintptr_t)lane };
		if (ibv_post_recv(lane->qp, wr, &bad))
			return -EIO;
		count -= n;
		lane->reposted += n;
	}
	lane->repost_at = lane->reposted - lane->rq_depth + lane->rq_depth / 8;
	return 0;
}

void shunt_lane_repost(struct shunt_lane *lane)
{
	if (atomic_load(&lane->failed))
		return;	/* some devices do not give back what is posted to a QP that is dead (docs/DEVICES.md) */
	if (shunt_lane_post_receives(lane, shunt_narrow_u32(lane->received + lane->rq_depth -
							    lane->reposted))) {
		shunt_link_fail(lane->link, "no more receives can be posted");
		return;
	}
	if (lane->reposted - lane->granted < lane->rq_depth / 2)
		return;
	lane->granted = lane->reposted;
	atomic_store(&lane->lane_value, lane->reposted);
	atomic_store(&lane->lane_due, true);
	shunt_roster_kick(lane->link->engine, lane);
}
