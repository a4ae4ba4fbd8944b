/* SPDX-License-Identifier: MIT */
#include "core/lane/lane_serve.h"
#include "core/lane/chain.h"
#include "core/loop/request.h"
#include "core/poll/group.h"

void shunt_lane_take_offer(struct shunt_lane *lane, struct shunt_seat *seat)
{
	struct shunt_seat_out *out = &seat->out;
	uint64_t offer = atomic_load_explicit(&out->ring.offer, memory_order_acquire), used = offer;
	uint64_t at = atomic_load_explicit(&out->posted, memory_order_relaxed);

	shunt_assert_held(&lane->lock);
	atomic_store(&out->ring.turning, true);
	if (shunt_chain_control(lane->chain, seat, SHUNT_IMM_RING_FROM, 0, at) &&
	    shunt_chain_flush(lane->chain)) {
		out->ring.old_address = out->ring.address;
		out->ring.old_bytes = out->ring.bytes;
		out->ring.old_rkey = out->ring.rkey;
		out->ring.address = lane->link->peer_arena + shunt_ring_offset(offer);
		out->ring.bytes = (uint32_t)shunt_ring_bytes(offer);	/* sound: inbound.c */
		out->ring.rkey = shunt_ring_rkey(offer);
		out->ring.from = at;
		atomic_store(&out->overflow.most, 0);
		atomic_compare_exchange_strong(&out->ring.offer, &used, 0);
	}
	atomic_store(&out->ring.turning, false);
}

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
	{ SHUNT_WORK_REST, SHUNT_IMM_RELEASE },
};

/*
 * Up to where the link's bytes have been read. Those of TCP behind them make no room, and a peer whose stream is
 * the kernel's by now does not count them.
 */
static uint64_t read_of_link(const struct shunt_lane *lane, const struct shunt_seat *seat)
{
	uint64_t head = lane->hooks->read_to(seat), tail = atomic_load(&seat->in.tail);

	return head < tail ? head : tail;
}

static uint64_t control_value(const struct shunt_lane *lane, struct shunt_seat *seat,
			      enum shunt_imm type, uint32_t work)
{
	if (__builtin_expect(work == SHUNT_WORK_REST, 0))
		return SHUNT_RELEASE_ANEW;
	switch (type) {
	case SHUNT_IMM_UPGRADE:
		return atomic_load(&seat->out.upgrade_at);
	case SHUNT_IMM_HANDBACK:
		return atomic_load(&seat->out.handback_at);
	case SHUNT_IMM_FIN:
		return atomic_load(&seat->out.fin) |
		       (atomic_load(&seat->release) & SHUNT_RELEASE_KEPT ? SHUNT_FIN_AND_CLOSED :
									   0);
	case SHUNT_IMM_CREDIT:
		return read_of_link(lane, seat);
	case SHUNT_IMM_RELEASE:
		return lane->hooks->read_to(seat) |
		       (atomic_load(&seat->release) & SHUNT_RELEASE_KEPT ? SHUNT_RELEASE_AND_KEEP :
									   0);
	case SHUNT_IMM_SWITCHED:
		return atomic_load(&seat->in.switched);
	case SHUNT_IMM_RING:
		return atomic_load(&seat->in.ring.offered);
	default:
		return 0;
	}
}

/* Only bytes, and not many: they may as well wait for the stream's last WR. */
static bool may_hold(struct shunt_lane *lane, struct shunt_seat *seat, uint32_t work)
{
	struct shunt_seat_out *out = &seat->out;
	uint64_t bytes = atomic_load(&out->staged) - atomic_load(&out->posted);

	return __builtin_expect(lane->late, 0) && work == SHUNT_WORK_DATA &&
	       shunt_lane_under_way(lane, seat) && bytes && bytes < lane->frag_bytes &&
	       !lane->hooks->ended(seat);
}

/* Nobody will read what has no room: the peer has closed, or either end has reset the connection. */
static bool is_unwanted(const struct shunt_lane *lane, const struct shunt_seat *seat)
{
	return shunt_seat_is_released(seat) || lane->hooks->broken(seat);
}

/*
 * The peer takes FIN, HANDBACK and RING_FROM only behind the last byte that it has got. After the
 * first two the ring is not changed, so nothing names `posted` any more. Behind a reset there is no FIN: a reader that
 * has all that was posted would take that for all there is.
 */
static void drop_rest(struct shunt_seat *seat, uint32_t work)
{
	struct shunt_seat_out *out = &seat->out;
	uint64_t posted = atomic_load(&out->posted);

	if (work & SHUNT_WORK_FIN)
		atomic_store(&out->fin, shunt_seat_is_released(seat) ? posted : SHUNT_NEVER);
	if (work & SHUNT_WORK_HANDBACK)
		atomic_store(&out->handback_at, posted);
	if (work & SHUNT_WORK_BEHIND_DATA & ~(uint32_t)SHUNT_WORK_DATA)
		atomic_store(&out->posted, atomic_load(&out->staged));
}

/*
 * Posts the stream's bytes, as far as they have room. *behind: the work that has to wait with the
 * rest of them. SHUNT_CHAIN_ALL, or why all of its work comes later: STALLED or OTHERS.
 */
static enum shunt_chain_took serve_data(struct shunt_lane *lane, struct shunt_seat *seat,
					uint32_t *work, uint32_t *behind)
{
	struct shunt_seat_out *out = &seat->out;
	enum shunt_chain_took took;

	shunt_assert_held(&lane->lock);
	for (;;) {
		took = shunt_chain_data(lane->chain, seat);
		if (took == SHUNT_CHAIN_STALLED || took == SHUNT_CHAIN_OTHERS)
			return took;
		if (took == SHUNT_CHAIN_ALL)
			break;
		if (!shunt_chain_flush(lane->chain))
			return SHUNT_CHAIN_STALLED;
		if (is_unwanted(lane, seat)) {
			drop_rest(seat, *work);
			break;
		}
		if (atomic_load(&out->ring.offer))
			shunt_lane_take_offer(lane, seat);
		if (!shunt_seat_room(out, atomic_load(&out->posted))) {
			lane->hooks->stuck(seat);
			*behind = *work & SHUNT_WORK_BEHIND_DATA;
			break;
		}
	}
	*work &= ~(SHUNT_WORK_DATA | *behind);
	return SHUNT_CHAIN_ALL;
}

/* The peer is to get no room: whoever lets go of it does that work. */
static bool withholds(struct shunt_seat_in *in, uint32_t work)
{
	uint8_t kept = atomic_load_explicit(&in->withheld, memory_order_relaxed);
	uint8_t owed = work == SHUNT_WORK_CREDIT ? SHUNT_WITHHELD_CREDIT :
		       work == SHUNT_WORK_RING	 ? SHUNT_WITHHELD_RING :
						   0;

	while (__builtin_expect(kept && owed, 0))
		if (atomic_compare_exchange_weak(&in->withheld, &kept, (uint8_t)(kept | owed)))
			return true;
	return false;
}

/* The end of a direction whose last bytes were dropped is a reset. */
static enum shunt_imm type_of(const struct shunt_seat *seat, enum shunt_imm type)
{
	return type == SHUNT_IMM_FIN && atomic_load(&seat->out.fin) == SHUNT_NEVER ?
		       SHUNT_IMM_RESET :
		       type;
}

/* Serves one stream's work. The rest is queued again, behind the others. False: credit ran out. */
static bool serve_stream(struct shunt_lane *lane, struct shunt_seat *seat, uint32_t work)
{
	enum shunt_chain_took took = SHUNT_CHAIN_STALLED;
	struct shunt_chain *chain = lane->chain;
	uint32_t behind = 0;
	bool released;

	/* Queued again since it was served: what `posted` and `release` say is true only after the doorbell. */
	if (shunt_chain_has(chain, seat) && !shunt_chain_flush(chain))
		goto later;
	released = atomic_load_explicit(&seat->release, memory_order_relaxed) &
		   SHUNT_RELEASE_POSTED;
	if (__builtin_expect(work & SHUNT_WORK_DONE, 0)) {
		work &= ~SHUNT_WORK_DONE;
		if (lane->hooks->done(seat, work))
			shunt_lane_hold(lane, seat, SHUNT_WORK_DONE);
	}
	if (released)
		return true;	/* nothing may follow RELEASE */
	if (may_hold(lane, seat, work)) {
		lane->counters.held++;
		shunt_lane_hold(lane, seat, work);
		return true;
	}
	for (size_t i = 0; i < sizeof(controls) / sizeof(controls[0]); i++) {
		if (work & controls[i].work) {
			enum shunt_imm type = type_of(seat, controls[i].type);

			if (!withholds(&seat->in, controls[i].work) &&
			    !shunt_chain_control(chain, seat, type, controls[i].work,
						 control_value(lane, seat, type, controls[i].work)))
				goto later;
			work &= ~controls[i].work;
		}
		if (i || !(work & SHUNT_WORK_DATA))
			continue;
		took = serve_data(lane, seat, &work, &behind);
		if (took != SHUNT_CHAIN_ALL)
			goto later;
	}
	if (__builtin_expect(behind, 0))
		shunt_lane_hold(lane, seat, behind);	/* until the next credit, or ring */
	return true;
later:
	shunt_lane_enqueue(lane, seat, work | behind);
	if (took == SHUNT_CHAIN_OTHERS && atomic_load(&lane->holding))
		shunt_lane_requeue(lane);	/* it may wait for its room there, too: then that is not the queue's end */
	return took == SHUNT_CHAIN_OTHERS;
}

void shunt_lane_serve(struct shunt_lane *lane)
{
	struct shunt_chain *chain = lane->chain;
	struct shunt_seat *seat;
	uint32_t work = 0;

	shunt_assert_held(&lane->lock);
	if (atomic_load(&lane->failed))
		return;
	shunt_chain_begin(chain);
	shunt_lane_look(lane);
	if (atomic_load_explicit(&lane->holding, memory_order_relaxed))
		shunt_lane_requeue(lane);
	if (atomic_exchange(&lane->lane_due, false) &&
	    !shunt_chain_control(chain, NULL, SHUNT_IMM_LANE, 0, atomic_load(&lane->lane_value)))
		atomic_store(&lane->lane_due, true);
	while ((seat = shunt_lane_dequeue(lane, &work)) != NULL) {
		if (!serve_stream(lane, seat, work)) {
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
		shunt_lane_ring(lane);
	} while (atomic_load(&lane->dirty));
	if (shunt_lane_stalled(lane))
		shunt_request_watch(lane->group->loop);
}

void shunt_lane_request(struct shunt_lane *lane, struct shunt_seat *seat, uint32_t work)
{
	shunt_lane_enqueue(lane, seat, work);
	shunt_lane_kick(lane);
}

bool shunt_lane_stalled(struct shunt_lane *lane)
{
	return (atomic_load(&lane->waiting) || atomic_load(&lane->holding) || atomic_load(&lane->unsettled) ||
		atomic_load(&lane->lane_due)) && !atomic_load(&lane->failed);
}
