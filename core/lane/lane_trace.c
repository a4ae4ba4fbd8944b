/* SPDX-License-Identifier: MIT */
#include "core/lane/lane_trace.h"
#include "core/base/sys.h"
#include "core/lane/lanes.h"
#include <stdlib.h>
#include "core/lane/wr.h"
#include "core/trace/followed.h"
#include "core/trace/slots.h"
#include "core/poll/group.h"

#define PATIENCE 1000000000ull /* ns after which nobody is told any more when a send was placed */

struct slot {
	const struct shunt_seat *seat; /* its last byte is to be posted; NULL: it has been, or never will */
	uint64_t end;
	uint64_t wr; /* number of the WR with its last byte; 0: not posted, or told */
	uint64_t written; /* number of the last WR that has written the record */
	uint64_t posted; /* ns */
};

struct shunt_lane_trace {
	struct shunt_trace_record *page;
	uint32_t lkey, rkey;
	uint64_t remote;
	uint64_t number; /* of the last record */
	uint64_t stamp; /* ns: just before the last doorbell */
	uint64_t unposted; /* a bit for each slot with a stream */
	uint64_t unplaced; /* a bit for each slot with a WR */
	struct slot slots[SHUNT_TRACE_SLOTS];
};

struct shunt_lane_trace *shunt_lane_trace_make(struct shunt_trace_record *page, uint32_t lkey,
					       uint64_t remote, uint32_t rkey)
{
	struct shunt_lane_trace *trace = calloc(1, sizeof(*trace));

	if (!trace)
		return NULL;
	trace->page = page;
	trace->lkey = lkey;
	trace->remote = remote;
	trace->rkey = rkey;
	return trace;
}

void shunt_lane_trace_free(struct shunt_lane *lane)
{
	if (lane->followed)
		shunt_followed_settle(lane->followed, UINT64_MAX);
	free(lane->followed);
	free(lane->trace);
	lane->followed = NULL;
	lane->trace = NULL;
}

static struct shunt_trace_book *book_of(const struct shunt_lane *lane)
{
	return atomic_load(&lane->group->common->book);
}

/* The device may yet fetch what the slot has in the page. */
static bool is_fetched_from(const struct shunt_lane *lane, const struct slot *slot)
{
	return sizeof(struct shunt_trace_record) > lane->max_inline &&
	       slot->written > atomic_load(&lane->retired);
}

/* Writes a slot from `from` on. False: the queue has no room. */
static bool write_slot(struct shunt_lane *lane, uint32_t at, uint32_t from)
{
	struct shunt_lane_trace *trace = lane->trace;
	uint64_t place = at * sizeof(struct shunt_trace_record) + from;
	struct ibv_sge sge = { (uintptr_t)trace->page + place,
			       (uint32_t)sizeof(struct shunt_trace_record) - from, trace->lkey };

	if (!shunt_wr_plain(lane, &sge, trace->remote + place, trace->rkey))
		return false;
	trace->slots[at].written = lane->sent;
	return true;
}

static void empty(struct shunt_lane_trace *trace, uint32_t at)
{
	trace->unposted &= ~shunt_slot_bit(at);
	trace->unplaced &= ~shunt_slot_bit(at);
	trace->slots[at].seat = NULL;
	trace->slots[at].wr = 0;
}

static bool write_one(struct shunt_lane *lane, struct shunt_seat *seat,
		      const struct shunt_pending *pending)
{
	struct shunt_lane_trace *trace = lane->trace;
	uint64_t now = lane->group->sys->now();
	uint32_t at;

	if (!trace)
		return false;
	at = (trace->number + 1) % SHUNT_TRACE_SLOTS;
	if (is_fetched_from(lane, &trace->slots[at]))
		return false;
	empty(trace, at);
	trace->page[at] = (struct shunt_trace_record) {
		.number = trace->number + 1,
		.id = pending->id,
		.end = pending->end,
		.stream = seat->peer_id,
		.bytes = pending->bytes | (pending->answer ? SHUNT_TRACE_ANSWER : 0),
		.called = pending->called,
		.accepted = pending->accepted,
		.posted = now,
	};
	if (!write_slot(lane, at, 0))
		return false;
	trace->number++;
	trace->slots[at].seat = seat;
	trace->slots[at].end = pending->end;
	trace->unposted |= shunt_slot_bit(at);
	return true;
}

void shunt_lane_trace_write(struct shunt_lane *lane, struct shunt_seat *seat, uint64_t upto)
{
	uint64_t posted = atomic_load_explicit(&seat->out.posted, memory_order_relaxed);
	struct shunt_pending pending = { 0 };

	while (shunt_pendings_take(seat->pendings, upto, &pending)) {
		enum shunt_trace_count what = SHUNT_TRACE_ABANDONED; /* TCP has carried its end */

		if (pending.end > posted)
			what = write_one(lane, seat, &pending) ? SHUNT_TRACE_WRITTEN :
								 SHUNT_TRACE_LOST;
		shunt_trace_count(book_of(lane), what, 1);
	}
}

void shunt_lane_trace_stamp(struct shunt_lane *lane)
{
	if (lane->trace->unposted)
		lane->trace->stamp = lane->group->sys->now();
}

void shunt_lane_trace_post(struct shunt_lane *lane, const struct shunt_seat *seat, uint64_t end,
			   uint64_t number)
{
	struct shunt_lane_trace *trace = lane->trace;
	uint64_t left = trace->unposted;
	uint32_t i;

	while (shunt_slot_take(&left, &i)) {
		struct slot *slot = &trace->slots[i];

		if (slot->seat != seat || slot->end > end)
			continue;
		slot->seat = NULL;
		slot->wr = number;
		slot->posted = trace->stamp;
		trace->unposted &= ~shunt_slot_bit(i);
		trace->unplaced |= shunt_slot_bit(i);
	}
}

/* The device counts what it has not carried out, or completions tell. */
static bool is_placed(const struct shunt_lane *lane, uint64_t number)
{
	if (atomic_load_explicit(&lane->mute_since, memory_order_relaxed))
		return false;
	if (lane->backlog)
		return lane->sent - __atomic_load_n(lane->backlog, __ATOMIC_ACQUIRE) >= number;
	return atomic_load_explicit(&lane->retired, memory_order_acquire) >= number;
}

bool shunt_lane_trace_look(struct shunt_lane *lane)
{
	struct shunt_lane_trace *trace = lane->trace;
	uint64_t now = trace->unplaced ? lane->group->sys->now() : 0;
	uint64_t left = trace->unplaced;
	uint32_t i;

	while (shunt_slot_take(&left, &i)) {
		struct slot *slot = &trace->slots[i];

		if (is_placed(lane, slot->wr) && !is_fetched_from(lane, slot)) {
			trace->page[i].posted = slot->posted;
			trace->page[i].placed = now | (lane->backlog ? 0 : SHUNT_TRACE_LATEST);
			if (!write_slot(lane, i, SHUNT_TRACE_LATER))
				continue;
		} else if (now - slot->posted < PATIENCE) {
			continue;
		}
		slot->wr = 0;
		trace->unplaced &= ~shunt_slot_bit(i);
	}
	if (!trace->unplaced)
		return false;
	shunt_request_trace(lane->group->loop);
	return true;
}

void shunt_lane_trace_forget(struct shunt_lane *lane, const struct shunt_seat *seat)
{
	for (uint32_t i = 0; lane->trace && i < SHUNT_TRACE_SLOTS; i++)
		if (lane->trace->slots[i].seat == seat)
			empty(lane->trace, i);
}
