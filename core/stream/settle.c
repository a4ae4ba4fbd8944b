/* SPDX-License-Identifier: MIT */
#include "core/lane/lane.h"
#include "core/lane/lane_serve.h"
#include "core/lane/roster.h"
#include "core/loop/request.h"
#include "core/poll/group.h"
#include "core/stream/settle.h"
#include "core/stream/spare.h"
#include "core/stream/stream.h"
#include "core/stream/track.h"

void shunt_settle_later(struct shunt_stream *stream)
{
	struct shunt_group *group = stream->group;

	shunt_assert_held(&group->lock);
	if (stream->next_settle)
		return;
	stream->next_settle = group->settle ? group->settle : stream;
	group->settle = stream;
	atomic_store_explicit(&group->after_due, true, memory_order_relaxed);
}

/* A reader that holds the lock passes the switch itself when it comes to it. */
static void settle(struct shunt_stream *stream)
{
	if (!shunt_lock_try(&stream->rx.lock))
		return;
	shunt_track_settle(stream);
	shunt_lock_leave(&stream->rx.lock);
}

void shunt_settle_all(struct shunt_group *group)
{
	struct shunt_lane *lane = NULL;
	struct shunt_stream *stream;
	bool stalled = false;

	do {
		shunt_lock_take(&group->lock);
		lane = shunt_roster_next(group, lane, &stalled);
		stream = lane ? NULL : group->settle;	/* its locks come before a lane's */
		if (stream) {
			group->settle = stream->next_settle == stream ? NULL : stream->next_settle;
			stream->next_settle = NULL;
		}
		if (!lane && !stream)
			atomic_store_explicit(&group->after_due, false, memory_order_relaxed);
		shunt_lock_leave(&group->lock);
		if (lane) {
			shunt_assert_held(&lane->lock);
			atomic_store(&lane->dirty, false);
			shunt_lane_serve(lane);
		}
		if (stream)
			settle(stream);
	} while (lane || stream);
	shunt_spares_look(group);
	if (stalled)
		shunt_request_watch(group->loop);
}
