/* SPDX-License-Identifier: MIT */
#include "core/stream/delivered.h"
#include <sys/epoll.h>
#include "core/stream/streams.h"
#include "core/lane/send_queue.h"
#include "core/stream/deferred_fin.h"
#include "core/stream/overflow.h"
#include "core/stream/pinned.h"
#include "core/stream/ready.h"
#include "core/stream/sleep.h"
#include "core/stream/user_timeout.h"
#include "core/stream/wait.h"

/* Of a connection that this end keeps it is not known what becomes of it before the peer has said RELEASE, too. */
static bool awaits_peer(const struct shunt_seat *seat)
{
	return __builtin_expect((atomic_load(&seat->release) &
				 (SHUNT_RELEASE_KEPT | SHUNT_RELEASE_HEARD)) == SHUNT_RELEASE_KEPT,
				0);
}

static void released(struct shunt_seat *seat)
{
	if (!awaits_peer(seat))
		shunt_streams_released(shunt_stream_of(seat), SHUNT_RELEASED_BY_US);
}

static void stuck(struct shunt_seat *seat)
{
	shunt_user_timeout_begin(shunt_stream_of(seat));
}

static void roomy(struct shunt_seat *seat)
{
	struct shunt_stream *stream = shunt_stream_of(seat);

	if ((shunt_send_queue_roomy(seat) || shunt_overflow_has_room(stream)) &&
	    shunt_seat_unstarve(&seat->out))
		shunt_sleep_tell(stream, EPOLLOUT);
}

/* A thread hands the stream back, and waits until the lane owes nothing for it. True: it still does. */
static bool is_retiring(struct shunt_stream *stream, uint32_t work)
{
	if (atomic_load(&stream->seat->leaving.retiring) != SHUNT_RETIRED ||
	    atomic_load(&stream->state) != SHUNT_LINKED)
		return false;
	if (work || !shunt_ready_flushed(stream))
		return true;
	shunt_sleep_tell(stream, SHUNT_READY_ANSWERED);
	return false;
}

static bool done(struct shunt_seat *seat, uint32_t work)
{
	struct shunt_stream *stream = shunt_stream_of(seat);
	struct shunt_lane *lane = seat->lane;
	struct shunt_seat_out *out = &seat->out;
	uint64_t retired = atomic_load(&lane->retired);
	bool waits = retired < shunt_send_queue_pinned_wr(seat);

	if (!waits)
		shunt_pinned_tell(stream);
	waits |= shunt_deferred_fin_look(stream);
	waits |= is_retiring(stream, work);
	if (atomic_load(&seat->release) & SHUNT_RELEASE_POSTED) {
		if (waits || (shunt_lane_keeps(lane) && retired < out->last_wr) ||
		    atomic_load(&out->pin))
			return true;	/* told by let_seat_go() of pinned.c for the latter */
		released(seat);	/* it may be another's from here on */
		return false;
	}
	if (shunt_overflow_is_kept(stream) ||
	    (!shunt_send_queue_roomy(seat) && !shunt_overflow_has_room(stream)))
		return true;
	if (shunt_seat_unstarve(out))
		shunt_sleep_tell(stream, EPOLLOUT);
	return waits;
}

static uint64_t read_to(const struct shunt_seat *seat)
{
	return atomic_load_explicit(&shunt_stream_of(seat)->rx.head, memory_order_acquire);
}

static bool ended(const struct shunt_seat *seat)
{
	return shunt_end_has(&shunt_stream_of(seat)->end, SHUNT_END_SHUT_WRITE);
}

static bool broken(const struct shunt_seat *seat)
{
	return shunt_end_has(&shunt_stream_of(seat)->end, SHUNT_END_BROKEN);
}

const struct shunt_lane_hooks shunt_delivered_hooks = {
	.done = done,
	.roomy = roomy,
	.stuck = stuck,
	.released = released,
	.read_to = read_to,
	.ended = ended,
	.broken = broken,
};
