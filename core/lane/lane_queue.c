/* SPDX-License-Identifier: MIT */
#include "core/lane/lane_queue.h"
#include "core/engine.h"

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

void shunt_lane_requeue(struct shunt_lane *lane)
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

struct shunt_stream *shunt_lane_dequeue(struct shunt_lane *lane, uint32_t *work)
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

void shunt_lane_abandon(struct shunt_lane *lane)
{
	shunt_lock_take(&lane->queue_lock);
	for (; lane->first; lane->first = lane->first->next_in_lane)
		lane->first->queued = false;
	for (; lane->held; lane->held = lane->held->next_in_lane)
		lane->held->queued = false;
	lane->last = NULL;
	atomic_store(&lane->waiting, 0);
	atomic_store(&lane->holding, 0);
	shunt_lock_leave(&lane->queue_lock);
}
