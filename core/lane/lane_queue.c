/* SPDX-License-Identifier: MIT */
#include "core/lane/lane_queue.h"
#include "core/poll/group.h"

/* Takes the first of a list out of it. Returns the rest. */
static struct shunt_seat *take_out(struct shunt_seat *seat)
{
	struct shunt_seat *next = seat->next;

	seat->next = NULL;
	return next == seat ? NULL : next;
}

static void append(struct shunt_lane *lane, struct shunt_seat *seat)
{
	seat->next = seat;
	if (lane->last)
		lane->last->next = seat;
	else
		lane->first = seat;
	lane->last = seat;
	atomic_fetch_add(&lane->waiting, 1);
}

void shunt_lane_enqueue(struct shunt_lane *lane, struct shunt_seat *seat, uint32_t work)
{
	shunt_lock_take(&lane->queue_lock);
	atomic_fetch_or(&seat->work, work);
	if (!seat->next && !atomic_load(&lane->failed))
		append(lane, seat);
	shunt_lock_leave(&lane->queue_lock);
}

void shunt_lane_hold(struct shunt_lane *lane, struct shunt_seat *seat, uint32_t work)
{
	shunt_lock_take(&lane->queue_lock);
	atomic_fetch_or(&seat->work, work);
	if (!seat->next && !atomic_load(&lane->failed)) {
		seat->next = lane->held ? lane->held : seat;
		lane->held = seat;
		atomic_fetch_add(&lane->holding, 1);
	}
	shunt_lock_leave(&lane->queue_lock);
}

void shunt_lane_requeue(struct shunt_lane *lane)
{
	struct shunt_seat *seat, *next;

	shunt_lock_take(&lane->queue_lock);
	for (seat = lane->held; seat; seat = next) {
		next = take_out(seat);
		append(lane, seat);
	}
	lane->held = NULL;
	atomic_store(&lane->holding, 0);
	shunt_lock_leave(&lane->queue_lock);
}

struct shunt_seat *shunt_lane_dequeue(struct shunt_lane *lane, uint32_t *work)
{
	struct shunt_seat *seat;

	shunt_lock_take(&lane->queue_lock);
	seat = lane->first;
	if (seat) {
		lane->first = take_out(seat);
		if (!lane->first)
			lane->last = NULL;
		atomic_fetch_sub(&lane->waiting, 1);
		*work = atomic_exchange(&seat->work, 0);
	}
	shunt_lock_leave(&lane->queue_lock);
	return seat;
}

void shunt_lane_dismiss(struct shunt_lane *lane, struct shunt_seat *seat)
{
	struct shunt_seat *ahead = NULL, *at;

	shunt_assert_held(&lane->lock);
	if (!atomic_load(&seat->work))
		return;
	shunt_lane_requeue(lane);
	shunt_lock_take(&lane->queue_lock);
	for (at = lane->first; at && at != seat; at = at->next == at ? NULL : at->next)
		ahead = at;
	if (at && ahead) {
		ahead->next = at == lane->last ? ahead : at->next;
		lane->last = at == lane->last ? ahead : lane->last;
		at->next = NULL;
	} else if (at) {
		lane->first = take_out(at);
		lane->last = lane->first ? lane->last : NULL;
	}
	if (at)
		atomic_fetch_sub(&lane->waiting, 1);
	atomic_store(&seat->work, 0);
	shunt_lock_leave(&lane->queue_lock);
	atomic_store(&lane->dirty, true);	/* of what was held, some may be due */
}

void shunt_lane_abandon(struct shunt_lane *lane)
{
	shunt_lock_take(&lane->queue_lock);
	while (lane->first)
		lane->first = take_out(lane->first);
	while (lane->held)
		lane->held = take_out(lane->held);
	lane->last = NULL;
	atomic_store(&lane->waiting, 0);
	atomic_store(&lane->holding, 0);
	shunt_lock_leave(&lane->queue_lock);
}
