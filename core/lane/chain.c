/* SPDX-License-Identifier: MIT */
#include "core/lane/chain.h"
#include "core/base/config.h"
#include "core/base/narrow.h"
#include <errno.h>
#include <stdlib.h>
#include "core/lane/copying.h"
#include "core/lane/lane_queue.h"
#include "core/lane/lane_trace.h"
#include "core/lane/send_queue.h"
#include "core/lane/wr.h"
#include "core/link/link.h"
#include "core/trace/probe.h"
#include "core/poll/group.h"

#define CHAIN_MAX 64	/* of `chain` */
#define UNAWAITED 8	/* WRs in a row that wake nobody: they take receives of a peer that sleeps */

struct shunt_chain {
	struct shunt_lane *lane;
	uint32_t count, limit;
	uint64_t bytes;				/* of data in it */
	uint32_t kept;				/* WRs whose bytes a stage keeps until they are complete */
	uint64_t number;			/* of chains so far */
	uint32_t unawaited;			/* WRs since the last that a sleeper of the peer waits for */
	struct shunt_seat *owner[CHAIN_MAX];	/* NULL: the lane itself */
	uint32_t work[CHAIN_MAX];		/* what the WR serves */
	uint64_t value[CHAIN_MAX];		/* a control word, or the stream offset behind the data */
	struct ibv_send_wr wr[CHAIN_MAX];
	struct ibv_sge sge[CHAIN_MAX];
};

static void configure(struct shunt_chain *chain, const struct shunt_lane *lane)
{
	chain->limit = lane->chains ? shunt_narrow_u32(lane->group->config->chain_max) : 1;
}

int shunt_chain_init(struct shunt_lane *lane)
{
	struct shunt_chain *chain = malloc(sizeof(*chain));

	if (!chain)
		return -ENOMEM;
	shunt_chain_begin(chain);
	chain->number = 1;
	chain->unawaited = 0;
	chain->lane = lane;
	lane->chain = chain;
	configure(chain, lane);
	return 0;
}

void shunt_chain_change(struct shunt_lane *lane)
{
	shunt_assert_held(&lane->lock);
	configure(lane->chain, lane);
}

void shunt_chain_fini(struct shunt_lane *lane)
{
	free(lane->chain);
	lane->chain = NULL;
}

void shunt_chain_begin(struct shunt_chain *chain)
{
	chain->count = 0;
	chain->bytes = 0;
	chain->kept = 0;
}

bool shunt_chain_has(const struct shunt_chain *chain, const struct shunt_seat *seat)
{
	return seat->chain == chain->number;
}

/* Posts the chain first if its WRs are in the way. A sender that never waits gets its completions here. */
static __attribute__((noinline)) bool make_room(struct shunt_chain *chain, uint32_t bytes, uint32_t reserve)
{
	struct shunt_lane *lane = chain->lane;
	enum shunt_limit limit;

	if (chain->count == chain->limit && !shunt_chain_flush(chain))
		return false;
	limit = shunt_wr_admit(lane, chain->count, chain->bytes, bytes, reserve);
	if (!limit)
		return true;
	if (!shunt_chain_flush(chain))
		return false;
	shunt_group_poll(lane->group);
	limit = shunt_wr_admit(lane, chain->count, chain->bytes, bytes, reserve);
	if (!limit)
		return true;
	__atomic_fetch_add(&lane->counters.stalls[limit], 1, __ATOMIC_RELAXED);
	SHUNT_PROBE4(stall, -1, lane->link->peer_pid, lane->number, shunt_limit_names[limit]);
	return false;
}

/* Room for one more WR. */
static inline bool room(struct shunt_chain *chain, uint32_t bytes, uint32_t reserve)
{
	if (__builtin_expect(chain->count < chain->limit &&
			     shunt_wr_admit(chain->lane, chain->count, chain->bytes, bytes, reserve) == SHUNT_LIMIT_NONE, 1))
		return true;
	return make_room(chain, bytes, reserve);
}

/* --- the chain --- */

/* WRs of the chain from number `from` on were not posted: their work is queued again (PF-10). */
static void undo(struct shunt_chain *chain, uint32_t from, uint32_t count)
{
	struct shunt_lane *lane = chain->lane;

	for (uint32_t i = from; i < count; i++) {
		if (chain->work[i] == SHUNT_WORK_DATA)
			shunt_wr_not_posted(lane, chain->sge[i].length);
		if (chain->owner[i])
			shunt_lane_enqueue(lane, chain->owner[i], chain->work[i]);
		else
			atomic_store(&lane->lane_due, true);
	}
}

/* Bytes up to `end` have been posted, with WR `number`. */
static void posted_data(struct shunt_lane *lane, struct shunt_seat *seat, uint64_t number,
			uint64_t end, bool kept)
{
	struct shunt_seat_out *out = &seat->out;

	lane->counters.merged++;
	out->last_wr = number;
	if (__builtin_expect(lane->trace != NULL, 0))
		shunt_lane_trace_post(lane, seat, end, number);
	shunt_send_queue_posted(&out->stage, end);
	if (__builtin_expect(kept, 0))
		shunt_send_queue_keep(seat, number, end);
	atomic_store_explicit(&out->posted, end, memory_order_release);
	if (__builtin_expect(kept, 0) && !shunt_send_queue_roomy(seat))
		shunt_lane_hold(lane, seat, SHUNT_WORK_DONE);
	else if (__builtin_expect(atomic_load_explicit(&out->starved, memory_order_relaxed), 0))
		lane->hooks->roomy(seat);
}

/* The seat may go, once nothing that was posted for it is fetched any more, and an end that was put off is said. */
static void posted_release(struct shunt_lane *lane, struct shunt_seat *seat, uint64_t number)
{
	atomic_fetch_or(&seat->release, SHUNT_RELEASE_POSTED);
	seat->out.last_wr = number;
	if (shunt_lane_keeps(lane) ||
	    (shunt_seat_fin_is_due(&seat->out) && !shunt_seat_fin_is_kept(seat)))
		shunt_lane_hold(lane, seat, SHUNT_WORK_DONE);
	else
		lane->hooks->released(seat);
}

/* TCP may go on as soon as it has arrived. */
static void posted_handback(struct shunt_lane *lane, struct shunt_seat *seat)
{
	if (!(shunt_heading_turn(&seat->out.heading, SHUNT_HEADING_IS_POSTED) &
	      SHUNT_HEADING_AWAITED))
		return;
	atomic_store(&lane->unsettled, true);
	shunt_request_watch(lane->group->loop);
}

/* The device is yet to fetch the WR's bytes, or those of the part ahead of it, or to need them again. */
static bool is_kept(const struct shunt_chain *chain, uint32_t i)
{
	const struct ibv_send_wr *wr = &chain->wr[i];

	return chain->lane->retains || !(wr->send_flags & IBV_SEND_INLINE) ||
	       (i && wr[-1].opcode == IBV_WR_RDMA_WRITE && !(wr[-1].send_flags & IBV_SEND_INLINE));
}

/* WR number i has been posted. */
static void posted(struct shunt_chain *chain, uint32_t i, uint64_t number)
{
	struct shunt_seat *seat = chain->owner[i];
	struct shunt_lane *lane = chain->lane;

	switch (chain->work[i]) {
	case SHUNT_WORK_DATA:
		if (chain->wr[i].opcode == IBV_WR_RDMA_WRITE) {	/* what is behind it tells of it */
			lane->reads++;
			lane->counters.merged++;
			return;
		}
		posted_data(lane, seat, number, chain->value[i], is_kept(chain, i));
		return;
	case SHUNT_WORK_FIN:
		seat->out.fin_later.wr = number;
		if (shunt_seat_fin_is_due(&seat->out) && !shunt_seat_fin_is_kept(seat))
			shunt_lane_hold(lane, seat, SHUNT_WORK_DONE);
		break;
	case SHUNT_WORK_HANDBACK:
		posted_handback(lane, seat);
		break;
	case SHUNT_WORK_RELEASE:
		posted_release(lane, seat, number);
		break;
	}
	lane->counters.control++;
}

bool shunt_chain_flush(struct shunt_chain *chain)
{
	struct shunt_lane *lane = chain->lane;
	uint32_t count = chain->count;
	uint64_t before = lane->sent;
	uint32_t taken;

	shunt_assert_held(&chain->lane->lock);
	if (!count)
		return true;
	shunt_wr_expect(lane, chain->bytes);
	if (__builtin_expect(chain->kept || lane->retains, 0) && !(chain->wr[count - 1].send_flags & IBV_SEND_SIGNALED)) {
		shunt_wr_signal(lane, before + count, lane->window.posted);	/* somebody may wait for their room */
		chain->wr[count - 1].send_flags |= IBV_SEND_SIGNALED;
	}
	shunt_chain_begin(chain);
	chain->number++;
	for (uint32_t i = 0; i < count; i++) {
		if (i + 1 < count)
			chain->wr[i].next = &chain->wr[i + 1];
		if (chain->work[i] == SHUNT_WORK_DATA)
			atomic_store(&chain->owner[i]->out.exposed, chain->value[i]);
	}
	if (chain->unawaited < count)
		chain->wr[count - 1].send_flags |= IBV_SEND_SOLICITED;	/* one event for all of them (CP-05) */
	if (__builtin_expect(lane->trace != NULL, 0))
		shunt_lane_trace_stamp(lane);
	taken = shunt_wr_post(lane, &chain->wr[0], count);
	if (taken > lane->counters.chain_max)
		lane->counters.chain_max = taken;
	for (uint32_t i = 0; i < taken; i++)
		posted(chain, i, before + i + 1);
	undo(chain, taken, count);
	if (__builtin_expect(lane->trace != NULL, 0))
		shunt_lane_trace_look(lane);
	return taken == count;
}

/* The peer has closed what this end keeps, so it looks for these when it connects again. */
static bool nobody_waits_for(const struct shunt_seat *seat, uint32_t work)
{
	const uint8_t both = SHUNT_RELEASE_KEPT | SHUNT_RELEASE_HEARD | SHUNT_RELEASE_KEEPS;

	return work == SHUNT_WORK_REST || (atomic_load(&seat->release) & both) == both;
}

static uint32_t next(struct shunt_chain *chain, struct shunt_seat *seat, uint32_t work,
		     uint64_t value)
{
	uint32_t i = chain->count++;

	chain->owner[i] = seat;
	chain->work[i] = work;
	chain->value[i] = value;
	if (seat)
		seat->chain = chain->number;
	if (__builtin_expect(work & (SHUNT_WORK_RELEASE | SHUNT_WORK_REST), 0) &&
	    chain->unawaited < UNAWAITED && nobody_waits_for(seat, work))
		chain->unawaited++;
	else
		chain->unawaited = 0;
	return i;
}

bool shunt_chain_control(struct shunt_chain *chain, struct shunt_seat *seat, enum shunt_imm type,
			 uint32_t work, uint64_t value)
{
	struct shunt_lane *lane = chain->lane;
	uint32_t id = seat ? seat->peer_id : 0;
	uint32_t word = seat ? type : lane->number;
	uint64_t number;
	uint32_t i;

	shunt_assert_held(&chain->lane->lock);
	if (!room(chain, 0, seat ? lane->reserve : 0))
		return false;
	i = next(chain, seat, work, value);
	number = lane->sent + i + 1;
	chain->sge[i] = shunt_wr_word_sge(lane, &chain->value[i], number);
	shunt_wr_fill(&chain->wr[i], &chain->sge[i], 1,
	     shunt_wr_flags(lane, number, chain->bytes, 8, false, work == SHUNT_WORK_HANDBACK ||
		       (work == SHUNT_WORK_RELEASE && shunt_lane_keeps(lane))) |
		     (chain->unawaited ? 0 : IBV_SEND_SOLICITED),
	     number, shunt_imm_make(type, id),
	     lane->peer_controls + id * sizeof(struct shunt_control) + word * 8, lane->rkey);
	return true;
}

/*
 * Records of sends that end within bytes that have been admitted: they are posted before, behind what was collected so
 * far. False: the QP does not take that.
 */
static __attribute__((noinline)) bool write_records(struct shunt_chain *chain,
						    struct shunt_seat *seat, uint64_t upto,
						    uint32_t admitted)
{
	if (shunt_pendings_end(seat->pendings) > upto)
		return true;
	if (!shunt_chain_flush(chain)) {
		shunt_window_return(&chain->lane->window, admitted);
		return false;
	}
	shunt_lane_trace_write(chain->lane, seat, upto);
	return true;
}

/* A stream has put so many bytes into the chain, and others wait for their turn (XR-22). */
static inline bool had_its_turn(const struct shunt_lane *lane, uint64_t bytes)
{
	return __builtin_expect(bytes >= lane->frag_bytes, 0) &&
	       atomic_load_explicit(&lane->waiting, memory_order_relaxed);
}

enum shunt_chain_took shunt_chain_data(struct shunt_chain *chain, struct shunt_seat *seat)
{
	struct shunt_lane *lane = chain->lane;
	struct shunt_seat_out *out = &seat->out;
	struct shunt_send_stage *stage = &out->stage;
	uint64_t staged = atomic_load_explicit(&out->staged, memory_order_acquire);
	uint64_t limit = shunt_seat_limit(out), end = staged < limit ? staged : limit;
	uint64_t begun = atomic_load_explicit(&out->posted, memory_order_relaxed), offset = begun;
	enum shunt_wr_part part_of = SHUNT_WR_WHOLE;

	shunt_assert_held(&chain->lane->lock);
	while (offset < end) {
		uint32_t whole = shunt_send_queue_piece(stage, offset, end),
			 piece = shunt_wr_piece(lane, out, offset, whole);
		bool behind = part_of == SHUNT_WR_AHEAD;
		uint64_t number;
		uint32_t i;
		int flags;

		part_of = behind ? SHUNT_WR_BEHIND : SHUNT_WR_WHOLE;
		if (!behind && shunt_wr_goes_round(lane, out, offset, piece, whole) &&
		    chain->count + 2 <= chain->limit &&
		    shunt_wr_admit_two(lane, chain->count, chain->bytes, piece, whole - piece))
			part_of = SHUNT_WR_AHEAD;
		if (part_of == SHUNT_WR_WHOLE && !room(chain, piece, lane->reserve))
			return SHUNT_CHAIN_STALLED;
		if (__builtin_expect(shunt_lane_trace_due(seat), 0) && !behind) {
			uint32_t both = part_of == SHUNT_WR_AHEAD ? whole : piece;

			if (!write_records(chain, seat, offset + both, both))
				return SHUNT_CHAIN_STALLED;
		}
		i = next(chain, seat, SHUNT_WORK_DATA, offset + piece);
		number = lane->sent + i + 1;
		chain->sge[i] = (struct ibv_sge) { .addr = (uintptr_t)shunt_send_queue_at(stage, offset), .length = piece,
						   .lkey = stage->lkey };
		chain->kept += piece > lane->max_inline;
		flags = shunt_wr_flags(lane, number, chain->bytes, piece, true, false);
		flags |= shunt_copying_flags(lane, out, offset, piece);
		shunt_wr_fill(&chain->wr[i], &chain->sge[i], 1, flags, number,
			      shunt_imm_make(part_of == SHUNT_WR_BEHIND ? SHUNT_IMM_ROUND :
									  SHUNT_IMM_DATA,
					     seat->peer_id),
			      shunt_wr_place(out, offset), out->ring.rkey);
		if (part_of == SHUNT_WR_AHEAD)
			shunt_wr_silence(&chain->wr[i]);
		chain->bytes += piece;
		offset += piece;
		if (offset < end && part_of != SHUNT_WR_AHEAD && had_its_turn(lane, offset - begun))
			return SHUNT_CHAIN_OTHERS;
	}
	return offset < staged ? SHUNT_CHAIN_RING_FULL : SHUNT_CHAIN_ALL;
}
