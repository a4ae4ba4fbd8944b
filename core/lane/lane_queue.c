/* SPDX-License-Identifier: MIT */
#include "core/lane/lane_queue.h"
#include "core/engine.h"

/* Takes the first of a list out of it. Returns the rest. */
static struct shunt_stream *take_out(struct shunt_stream *stream)
{
	struct shunt_stream *next = stream->seat.next;

	stream->seat.next = NULL;
	return next == stream ? NULL : next;
}

static void append(struct shunt_lane *lane, struct shunt_stream *stream)
{
	stream->seat.next = stream;
	if (lane->last)
		lane->last->seat.next = stream;
	else
		lane->first = stream;
	lane->last = stream;
	atomic_fetch_add(&lane->waiting, 1);
}

void shunt_lane_enqueue(struct shunt_lane *lane, struct shunt_stream *stream, uint32_t work)
{
	shunt_lock_take(&lane->queue_lock);
	atomic_fetch_or(&stream->seat.work, work);
	if (!stream->seat.next && !atomic_load(&lane->failed))
		append(lane, stream);
	shunt_lock_leave(&lane->queue_lock);
}

void shunt_lane_hold(struct shunt_lane *lane, struct shunt_stream *stream, uint32_t work)
{
	shunt_lock_take(&lane->queue_lock);
	atomic_fetch_or(&stream->seat.work, work);
	if (!stream->seat.next && !atomic_load(&lane->failed)) {
		stream->seat.next = lane->held ? lane->held : stream;
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
		next = take_out(stream);
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
		lane->first = take_out(stream);
		if (!lane->first)
			lane->last = NULL;
		atomic_fetch_sub(&lane->waiting, 1);
		*work = atomic_exchange(&stream->seat.work, 0);
	}
	shunt_lock_leave(&lane->queue_lock);
	return stream;
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
