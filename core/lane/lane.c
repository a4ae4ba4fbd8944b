/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>
#include "core/lane/chain.h"
#include "core/base/config.h"
#include "core/base/narrow.h"
#include "core/base/sys.h"
#include "core/lane/copying.h"
#include "core/lane/wr.h"
#include "core/lane/direct.h"
#include "core/lane/lane_serve.h"
#include "core/lane/lane_trace.h"
#include "core/lane/lanes.h"
#include "core/lane/roster.h"
#include "core/lane/send_queue.h"
#include "core/loop/request.h"
#include "core/poll/group.h"

#define USUAL_WINDOW (1 << 20)

enum { BATCH_SINGLE, BATCH_MERGE, BATCH_CHAIN, BATCH_HYBRID };	/* `batch`'s words */

/* A queue, or a window, full of unsignaled WRs would never empty (PF-11). */
static void configure(struct shunt_lane *lane)
{
	const struct shunt_config *config = lane->group->config;
	uint64_t every = config->signal_every < lane->sq_depth / 2 ? config->signal_every :
								     lane->sq_depth / 2;

	if (every > lane->window.wrs / 2)
		every = lane->window.wrs / 2;
	lane->signal_every = every ? shunt_narrow_u32(every) : 1;
	atomic_store_explicit(&lane->merges,
			      config->batch == BATCH_MERGE || config->batch == BATCH_HYBRID,
			      memory_order_relaxed);
	lane->chains = config->batch == BATCH_CHAIN || config->batch == BATCH_HYBRID;
	shunt_copying_configure(lane);
}

/* SHUNT_TUNE=window=auto: a stream may fill the window if the lane keeps bytes until they have arrived (send_queue.h). */
static uint64_t usual_window(const struct shunt_lane *lane)
{
	uint64_t widest = lane->group->config->stage_max;

	return lane->retains && widest > USUAL_WINDOW ? widest : USUAL_WINDOW;
}

int shunt_lane_init(struct shunt_lane *lane)
{
	struct shunt_group *group = lane->group;
	const struct shunt_config *config = group->config;
	int result;

	shunt_lock_rank(&lane->lock, SHUNT_RANK_LANE);
	shunt_lock_rank(&lane->queue_lock, SHUNT_RANK_QUEUE);
	lane->retains = config->retain || !lane->link->device->kind->peek;
	lane->window.usual = usual_window(lane);
	lane->hooks = group->common->hooks;
	lane->reserve = SHUNT_CONTROL_RESERVE;
	lane->frag_bytes = shunt_narrow_u32(config->frag_bytes);
	lane->sq_depth = lane->link->device->sq_depth;
	lane->rq_depth = lane->link->device->rq_depth;
	result = shunt_window_init(&lane->window, config, lane->sq_depth, &group->inflight);
	if (result)
		return result;
	configure(lane);
	return shunt_chain_init(lane);
}

/* Nothing of it is in flight, or a WR under way says when all of it is done. lane.lock held. */
static bool is_covered(struct shunt_lane *lane)
{
	uint64_t number;

	return lane->sent == atomic_load(&lane->retired) || shunt_wr_probe(lane, &number);
}

bool shunt_lane_change(struct shunt_lane *lane)
{
	struct shunt_group *group = lane->group;
	bool done;

	shunt_lock_take(&lane->lock);
	done = atomic_load(&lane->failed) || is_covered(lane);
	if (done) {
		shunt_lock_take(&group->lock);
		lane->window.usual = usual_window(lane);
		shunt_window_change(&lane->window, lane->group->config, &group->inflight);
		shunt_lock_leave(&group->lock);
		configure(lane);
		shunt_chain_change(lane);
	} else {
		lane->unsignaled = lane->signal_every; /* the next is */
	}
	shunt_lane_leave(lane);
	shunt_lane_kick(lane); /* there may be more room than before */
	return done;
}

void shunt_lane_fini(struct shunt_lane *lane)
{
	shunt_window_fini(&lane->window);
	shunt_chain_fini(lane);
	shunt_lane_trace_free(lane);
}

/* Stream offset of the next byte, while the direction is on the link. tx.lock held. */
static inline uint64_t staged_of(const struct shunt_seat *seat)
{
	return atomic_load_explicit(&seat->out.staged, memory_order_relaxed);
}

/* Nothing of the stream, whose next byte is at `offset`, is staged or queued. lane.lock and tx.lock held. */
static inline bool is_clear(const struct shunt_seat *seat, uint64_t offset)
{
	return atomic_load_explicit(&seat->out.posted, memory_order_relaxed) == offset &&
	       !(atomic_load_explicit(&seat->work, memory_order_relaxed) & ~SHUNT_WORK_DONE);
}

bool shunt_lane_change_ring(struct shunt_lane *lane, struct shunt_seat *seat)
{
	struct shunt_seat_out *out = &seat->out;

	shunt_seat_assert_sends(seat);
	shunt_lock_take(&lane->lock);
	if (atomic_load(&lane->waiting) || atomic_load(&lane->holding))
		shunt_lane_serve(lane);
	if (atomic_load(&out->ring.offer) && is_clear(seat, staged_of(seat)) &&
	    !atomic_load(&lane->failed))
		shunt_lane_take_offer(lane, seat);
	shunt_lane_leave(lane);
	return !atomic_load(&out->ring.offer);
}

/* Should this process be killed, the peer knows of these bytes. */
static void note_accepted(struct shunt_seat *seat)
{
	__atomic_store_n(&seat->control->word[SHUNT_CONTROL_ACCEPTED], staged_of(seat),
			 __ATOMIC_RELAXED);
}

size_t shunt_lane_accept(struct shunt_seat *seat, struct shunt_iov *from, size_t bytes,
			 uint64_t most, bool apart)
{
	shunt_seat_assert_sends(seat);
	bytes = shunt_send_queue_take(seat, from, bytes, most, apart);
	if (bytes)
		note_accepted(seat);
	return bytes;
}

size_t shunt_lane_fill_room(struct shunt_seat *seat, uint64_t most, bool apart, void **at)
{
	shunt_seat_assert_sends(seat);
	return shunt_send_queue_room(seat, most, apart, at);
}

void shunt_lane_fill(struct shunt_seat *seat, size_t bytes, bool apart)
{
	shunt_seat_assert_sends(seat);
	shunt_send_queue_add(seat, bytes, apart);
	note_accepted(seat);
	__atomic_fetch_add(&seat->lane->counters.staged_sends, 1, __ATOMIC_RELAXED);
	shunt_lane_push(seat->lane, seat);
}

/* Bytes for which the ring has room. */
static size_t accept_in_window(struct shunt_seat *seat, struct shunt_iov *from, size_t bytes,
			       bool apart)
{
	size_t taken;

	shunt_seat_assert_sends(seat);
	if (!bytes)
		return 0;
	taken = shunt_lane_accept(seat, from, bytes, shunt_send_queue_limit(seat), apart);
	if (__builtin_expect(taken < bytes, 0) && shunt_send_queue_full(seat))
		taken += shunt_lane_accept(seat, from, bytes - taken, shunt_send_queue_limit(seat),
					   apart);
	return taken;
}

static size_t send_staged(struct shunt_lane *lane, struct shunt_seat *seat, struct shunt_iov *from,
			  size_t bytes)
{
	size_t room = shunt_seat_room(&seat->out, staged_of(seat)), taken;

	if (bytes > room)
		bytes = room;
	taken = accept_in_window(seat, from, bytes, !shunt_lane_merges(lane));
	if (!taken)
		return 0;
	__atomic_fetch_add(&lane->counters.staged_sends, 1, __ATOMIC_RELAXED);
	shunt_lane_request(lane, seat, SHUNT_WORK_DATA);
	return taken;
}

/* The short way, if nothing is before these bytes. lane.lock held. */
static size_t send_direct(struct shunt_lane *lane, struct shunt_seat *seat, uint64_t offset,
			  struct shunt_iov *from, size_t bytes)
{
	struct shunt_seat_out *out = &seat->out;
	size_t taken, room;

	shunt_assert_held(&lane->lock);
	shunt_lane_look(lane);
	if (__builtin_expect(lane->late, 0)) {
		shunt_group_poll(lane->group);
		if (shunt_lane_under_way(lane, seat) && bytes < lane->frag_bytes &&
		    bytes <= shunt_seat_room(out, offset))
			return 0;
	}
	if (__builtin_expect(atomic_load_explicit(&out->ring.offer, memory_order_relaxed) != 0, 0))
		shunt_lane_take_offer(lane, seat);
	if (__builtin_expect(lane->retains || (lane->fetches && bytes > lane->max_inline), 0) &&
	    !shunt_send_queue_continues(seat, from))
		return 0;
	room = shunt_seat_room(out, offset);
	taken = shunt_direct_send(lane, seat, from, bytes < room ? bytes : room);
	atomic_store_explicit(&out->staged, offset + taken, memory_order_relaxed);
	return taken;
}

size_t shunt_lane_send(struct shunt_lane *lane, struct shunt_seat *seat, struct shunt_iov *from,
		       size_t bytes)
{
	uint64_t offset = staged_of(seat);
	size_t taken = 0;

	shunt_seat_assert_sends(seat);
	if (shunt_lock_try(&lane->lock)) {
		if (__builtin_expect(atomic_load_explicit(&lane->waiting, memory_order_relaxed) ||
				     atomic_load_explicit(&lane->lane_due, memory_order_relaxed), 0))
			shunt_lane_serve(lane);
		if (is_clear(seat, offset) &&
		    __builtin_expect(!atomic_load_explicit(&lane->failed, memory_order_relaxed), 1))
			taken = send_direct(lane, seat, offset, from, bytes);
		shunt_lane_leave(lane);
	}
	if (__builtin_expect(taken < bytes && !from->bad && !atomic_load(&lane->failed), 0))
		taken += send_staged(lane, seat, from, bytes - taken);
	return taken;
}

void shunt_lane_push(struct shunt_lane *lane, struct shunt_seat *seat)
{
	shunt_seat_assert_sends(seat);
	atomic_store_explicit(&seat->out.gather_since, 0, memory_order_relaxed);
	shunt_lane_request(lane, seat, SHUNT_WORK_DATA);
}

size_t shunt_lane_gather(struct shunt_lane *lane, struct shunt_seat *seat, struct shunt_iov *from,
			 size_t bytes)
{
	struct shunt_group *group = lane->group;
	struct shunt_seat_out *out = &seat->out;
	size_t room = shunt_seat_room(out, staged_of(seat));
	size_t taken = accept_in_window(seat, from, bytes < room ? bytes : room, false);

	shunt_seat_assert_sends(seat);
	if (taken < bytes ||
	    staged_of(seat) - atomic_load(&out->posted) >= SHUNT_SEND_QUEUE_BYTES) {
		shunt_lane_push(lane, seat);
	} else if (!atomic_load_explicit(&out->gather_since, memory_order_relaxed)) {
		atomic_store_explicit(&out->gather_since, group->sys->now(), memory_order_release);
		shunt_request_gather(group->loop);
	}
	return taken;
}

bool shunt_lane_arrived(struct shunt_lane *lane)
{
	const struct shunt_device_kind *kind = lane->link->device->kind;

	return kind->settled && !atomic_load_explicit(&lane->mute_since, memory_order_relaxed) ? kind->settled(lane->qp) :
	       __atomic_load_n(&lane->sent, __ATOMIC_RELAXED) == atomic_load(&lane->retired);
}

void shunt_lane_break(struct shunt_lane *lane)
{
	struct ibv_qp_attr broken = { .qp_state = IBV_QPS_ERR };

	shunt_assert_held(&lane->lock);
	lane->link->device->verbs->modify_qp(lane->qp, &broken, IBV_QP_STATE);
}

uint64_t shunt_lane_awaited(struct shunt_lane *lane)
{
	uint64_t number;

	shunt_lock_take(&lane->lock);
	number = lane->last_signaled;
	shunt_lane_leave(lane);
	return number;
}

uint64_t shunt_lane_messages(struct shunt_lane *lane)
{
	uint64_t count;

	shunt_lock_take(&lane->lock);
	count = lane->sent - lane->reads;
	shunt_lane_leave(lane);
	return count;
}

bool shunt_lane_heard(struct shunt_lane *lane, uint64_t messages)
{
	struct shunt_group *group = lane->group;
	bool heard;

	shunt_lock_take(&group->lock);
	heard = lane->received >= messages;
	shunt_lock_leave(&group->lock);
	if (heard)
		return true;
	atomic_store(&lane->unsettled, true);
	shunt_request_watch(lane->group->loop);
	return false;
}

bool shunt_lane_settled(struct shunt_lane *lane)
{
	if (shunt_lane_arrived(lane))
		return true;
	atomic_store(&lane->unsettled, true);
	/* A device with a thread may have told the service thread before it could see the mark. */
	if (shunt_lane_arrived(lane))
		shunt_loop_wake(lane->group->loop);
	else
		shunt_request_watch(lane->group->loop);
	return false;
}

bool shunt_lane_handed_over(struct shunt_lane *lane, struct shunt_seat *seat)
{
	if (shunt_seat_is_released(seat))
		return true;
	shunt_lane_kick(lane);
	shunt_group_poll_fully(lane->group);
	if (shunt_heading_turn(&seat->out.heading, SHUNT_HEADING_IS_AWAITED) &
	    SHUNT_HEADING_UNPOSTED)
		return false;	/* a window keeps it back: the poster sees the mark */
	return shunt_lane_settled(lane) && !atomic_load(&lane->failed);
}

void shunt_lane_set_gate(struct shunt_lane *lane, struct shunt_gate *gate, uint32_t frag_bytes)
{
	uint32_t most = shunt_narrow_u32(lane->group->config->frag_bytes);

	shunt_lock_take(&lane->lock);
	shunt_window_set_gate(&lane->window, gate);
	lane->frag_bytes = frag_bytes && frag_bytes < most ? frag_bytes : most;
	shunt_lane_leave(lane);
}

void shunt_lane_forget(struct shunt_lane *lane, struct shunt_seat *seat)
{
	shunt_lock_take(&lane->lock);
	atomic_store(&seat->work, 0);
	shunt_lock_leave(&lane->lock);
	shunt_lane_kick(lane);
}

/* --- receives --- */

/* Not each provider says which one it refused. */
static bool is_among(const struct ibv_recv_wr *bad, const struct ibv_recv_wr *wr, uint32_t count)
{
	return (uintptr_t)bad - (uintptr_t)wr < count * sizeof(*wr);
}

/* 0; -EAGAIN: some could not be posted yet; -EIO. */
int shunt_lane_post_receives(struct shunt_lane *lane, uint32_t count)
{
	struct ibv_recv_wr wr[64], *bad = wr;
	uint32_t taken;
	int result;

	while (count) {
		uint32_t n = count < 64 ? count : 64;

		for (uint32_t i = 0; i < n; i++)
			wr[i] = (struct ibv_recv_wr) { .next = i + 1 < n ? &wr[i + 1] : NULL,
						       .wr_id = (uintptr_t)lane };
		result = ibv_post_recv(lane->qp, wr, &bad);
		if (result && (abs(result) != EAGAIN || !is_among(bad, wr, n)))
			return -EIO;
		taken = result ? (uint32_t)(bad - wr) : n;
		lane->reposted += taken;
		count -= taken;
		if (result)
			break;
	}
	lane->repost_at = lane->reposted - lane->rq_depth + lane->rq_depth / 8;
	return count ? -EAGAIN : 0;
}

/*
 * ionic takes no receive while the device has its slot. The next messages bring another try. They come while so
 * many receives are left. With fewer the peer may be out of credit, which it is given from half of them on.
 */
static bool can_wait(const struct shunt_lane *lane)
{
	return lane->reposted - lane->received - lane->flushed >=
	       lane->rq_depth / 2 + SHUNT_CONTROL_RESERVE;
}

void shunt_lane_announce(struct shunt_lane *lane)
{
	shunt_assert_held(&lane->group->lock);
	lane->granted = lane->reposted;
	atomic_store(&lane->lane_value, lane->reposted);
	atomic_store(&lane->lane_due, true);
}

void shunt_lane_repost(struct shunt_lane *lane)
{
	int result;

	shunt_assert_held(&lane->group->lock);
	if (atomic_load(&lane->failed))
		return;	/* some devices do not give back what is posted to a QP that is dead (docs/dev/DEVICES.md) */
	result = shunt_lane_post_receives(
		lane, shunt_narrow_u32(lane->received + lane->rq_depth - lane->reposted));
	if (result && !(result == -EAGAIN && can_wait(lane))) {
		shunt_link_fail(lane->link, "no more receives can be posted");
		return;
	}
	if (lane->reposted - lane->granted < lane->rq_depth / 2)
		return;
	lane->repeated = false;
	shunt_lane_announce(lane);
	shunt_roster_kick(lane->group, lane);
}
