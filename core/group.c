#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "core/engine.h"
#include "core/epset.h"
#include "core/soft/soft.h"

#define POLL_BATCH 32	/* completions taken with one ibv_poll_cq (RB-16) */
#define POLL_ROUNDS 8	/* at most, so that one poll is bounded */
#define CQ_ENTRIES 65536

static int keep_descriptor(void *arg, int fd)
{
	return shunt_private_adopt(arg, fd);
}

static void drop_descriptor(void *arg, int fd)
{
	shunt_private_close(arg, fd);
}

/* Only a device with a thread has something to tell: senders wait for it in shunt_lane_settled(). */
static void settled(void *arg)
{
	shunt_service_wake(arg);
}

int shunt_group_open(struct shunt_engine *engine)
{
	struct shunt_group *group = &engine->group;
	struct soft_attr attr = { .arena_bytes = engine->config.arena_bytes,
				  .max_cqe = CQ_ENTRIES, .now = engine->sys->now,
				  .keep = keep_descriptor, .drop = drop_descriptor,
				  .keep_arg = engine, .settled = settled, .settled_arg = engine };

	if (group->open)
		return 0;
	soft_model_parse(engine->config.soft_model, &attr.model);	/* checked when it was loaded */
	attr.engine_thread = attr.model.on && !engine->manual;
	group->context = soft_open(&attr, &group->verbs);
	if (!group->context)
		return -errno;
	group->channel = group->verbs->create_comp_channel(group->context);
	if (!group->channel)
		goto close_context;
	group->cq = group->verbs->create_cq(group->context, CQ_ENTRIES, NULL, group->channel, 0);
	if (!group->cq)
		goto destroy_channel;
	group->open = true;
	return 0;

destroy_channel:
	group->verbs->destroy_comp_channel(group->channel);
close_context:
	soft_close(group->context);
	return -ENOMEM;
}

void shunt_group_close(struct shunt_engine *engine)
{
	struct shunt_group *group = &engine->group;

	if (!group->open)
		return;
	group->open = false;
	group->verbs->destroy_cq(group->cq);
	group->verbs->destroy_comp_channel(group->channel);
	soft_close(group->context);
}

void shunt_group_add_lane(struct shunt_engine *engine, struct shunt_lane *lane)
{
	struct shunt_group *group = &engine->group;

	shunt_lock_take(&group->lock);
	lane->next_in_group = group->lanes;
	group->lanes = lane;
	shunt_lock_leave(&group->lock);
}

void shunt_group_remove_lane(struct shunt_engine *engine, struct shunt_lane *lane)
{
	struct shunt_group *group = &engine->group;

	shunt_lock_take(&group->lock);
	for (struct shunt_lane **p = &group->lanes; *p; p = &(*p)->next_in_group) {
		if (*p == lane) {
			*p = lane->next_in_group;
			break;
		}
	}
	for (struct shunt_lane **p = &group->kick_lanes; *p; p = &(*p)->next_kick) {
		if (*p == lane) {
			*p = lane->next_kick;
			break;
		}
	}
	shunt_lock_leave(&group->lock);
}

struct shunt_lane *shunt_group_lane(struct shunt_engine *engine, uint32_t qp_num)
{
	struct shunt_lane *lane = engine->group.lanes;

	while (lane && lane->qp->qp_num != qp_num)
		lane = lane->next_in_group;
	return lane;
}

bool shunt_group_settled(struct shunt_engine *engine)
{
	struct shunt_group *group = &engine->group;
	bool settled = true;

	shunt_lock_take(&group->lock);
	for (struct shunt_lane *lane = group->lanes; lane; lane = lane->next_in_group)
		settled &= atomic_load(&lane->failed) || soft_qp_settled(lane->qp);
	shunt_lock_leave(&group->lock);
	return settled;
}

/* --- polling --- */

int shunt_group_poll_locked(struct shunt_engine *engine)
{
	struct shunt_group *group = &engine->group;
	struct ibv_wc wc[POLL_BATCH];
	int total = 0, n = 0;

	if (!group->open)
		return 0;
	group->polls++;
	if (__builtin_expect(atomic_load_explicit(&group->rearm, memory_order_relaxed), 0)) {
		atomic_store(&group->rearm, false);
		if (group->leader || group->service_asleep)
			shunt_group_arm(engine);
	}
	for (int round = 0; round < POLL_ROUNDS; round++) {
		n = ibv_poll_cq(group->cq, POLL_BATCH, wc);
		for (int i = 0; i < n; i++)
			shunt_arrival_apply(engine, &wc[i]);
		if (n > 0)
			total += n;
		if (n < POLL_BATCH)
			break;
	}
	if (!total) {
		group->empty_polls++;
		return 0;
	}
	group->completions += total;
	for (struct shunt_lane *lane = group->lanes; lane; lane = lane->next_in_group)
		shunt_lane_repost(lane);
	return total;
}

int shunt_group_poll(struct shunt_engine *engine)
{
	struct shunt_group *group = &engine->group;
	int n;

	if (!shunt_lock_try(&group->lock))
		return 0;
	n = shunt_group_poll_locked(engine);
	shunt_lock_leave(&group->lock);
	shunt_group_after(engine, group);
	return n;
}

void shunt_group_poll_fully(struct shunt_engine *engine)
{
	struct shunt_group *group = &engine->group;
	int n;

	do {
		shunt_lock_take(&group->lock);
		n = shunt_group_poll_locked(engine);
		shunt_lock_leave(&group->lock);
		shunt_group_after(engine, group);
	} while (n);
}

void shunt_group_kick_lane(struct shunt_engine *engine, struct shunt_lane *lane)
{
	struct shunt_group *group = &engine->group;

	if (lane->kicked)
		return;
	lane->kicked = true;
	lane->next_kick = group->kick_lanes;
	group->kick_lanes = lane;
	atomic_store_explicit(&group->after_due, true, memory_order_relaxed);
}

void shunt_group_settle(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_group *group = &engine->group;

	if (stream->settling)
		return;
	stream->settling = true;
	stream->next_settle = group->settle;
	group->settle = stream;
	atomic_store_explicit(&group->after_due, true, memory_order_relaxed);
}

/* A reader that holds the lock passes the switch itself when it comes to it. */
static void settle(struct shunt_engine *engine, struct shunt_stream *stream)
{
	if (!shunt_lock_try(&stream->rx.lock))
		return;
	shunt_track_settle(engine, stream);
	shunt_lock_leave(&stream->rx.lock);
}

void shunt_group_after_slow(struct shunt_engine *engine)
{
	struct shunt_group *group = &engine->group;
	struct shunt_lane *lane;
	struct shunt_stream *stream;

	for (;;) {
		shunt_lock_take(&group->lock);
		lane = group->kick_lanes;
		if (lane) {
			group->kick_lanes = lane->next_kick;
			lane->kicked = false;
		}
		stream = group->settle;
		if (stream) {
			group->settle = stream->next_settle;
			stream->settling = false;
		}
		if (!lane && !stream)
			atomic_store_explicit(&group->after_due, false, memory_order_relaxed);
		shunt_lock_leave(&group->lock);
		if (!lane && !stream)
			return;
		if (lane)
			shunt_lane_kick(lane);
		if (stream)
			settle(engine, stream);
	}
}

/* --- events --- */

void shunt_group_arm(struct shunt_engine *engine)
{
	struct shunt_group *group = &engine->group;

	if (!group->open)
		return;
	group->arms++;
	ibv_req_notify_cq(group->cq, 0);
}

void shunt_group_take_event(struct shunt_engine *engine)
{
	struct shunt_group *group = &engine->group;
	struct ibv_cq *cq;
	void *context;

	if (!group->open || group->verbs->get_cq_event(group->channel, &cq, &context))
		return;
	group->verbs->ack_cq_events(cq, 1);
	__atomic_fetch_add(&group->events, 1, __ATOMIC_RELAXED);
	/* It may have been meant for a leader that sleeps on: the next poll asks for another. */
	atomic_store(&group->rearm, true);
}

/* --- who is told --- */

void shunt_group_kick(struct shunt_engine *engine, struct shunt_sleeper *sleeper)
{
	uint64_t one = 1;
	int saved = errno;

	if (!sleeper->asleep)
		return;
	sleeper->asleep = false;
	engine->group.kicks++;
	if (engine->sys->write(sleeper->kick_fd, &one, sizeof(one)) < 0)
		shunt_log(SHUNT_LOG_ERROR, "cannot wake a thread: error %d", errno);
	errno = saved;
}

void shunt_group_notify(struct shunt_engine *engine, struct shunt_stream *stream, uint32_t what)
{
	if (stream->watches)
		shunt_epset_notify(engine, stream, what);
	for (struct shunt_sleep_on *on = stream->sleepers; on; on = on->next) {
		on->sleeper->told = true;
		shunt_group_kick(engine, on->sleeper);
	}
}

void shunt_group_tell(struct shunt_engine *engine, struct shunt_stream *stream, uint32_t what)
{
	struct shunt_group *group = &engine->group;

	shunt_lock_take(&group->lock);
	shunt_group_notify(engine, stream, what);
	shunt_lock_leave(&group->lock);
}

void shunt_group_sleep_enter(struct shunt_engine *engine, struct shunt_sleeper *sleeper)
{
	struct shunt_group *group = &engine->group;

	group->sleeps++;
	sleeper->previous = NULL;
	sleeper->next = group->sleepers;
	if (group->sleepers)
		group->sleepers->previous = sleeper;
	group->sleepers = sleeper;
	/* Who falls asleep before there is a channel is not on it later either. */
	sleeper->leader = false;
	shunt_group_sleep_lead(engine, sleeper);
}

/*
 * Without a leader, whoever leaves wakes the next to become it: also one that was woken to lead and does not
 * come back.
 */
void shunt_group_sleep_leave(struct shunt_engine *engine, struct shunt_sleeper *sleeper)
{
	struct shunt_group *group = &engine->group;

	if (sleeper->previous)
		sleeper->previous->next = sleeper->next;
	else
		group->sleepers = sleeper->next;
	if (sleeper->next)
		sleeper->next->previous = sleeper->previous;
	if (group->leader == sleeper)
		group->leader = NULL;
	if (group->open && !group->leader && group->sleepers)
		shunt_group_kick(engine, group->sleepers);
}

bool shunt_group_sleep_lead(struct shunt_engine *engine, struct shunt_sleeper *sleeper)
{
	struct shunt_group *group = &engine->group;

	if (!group->open || group->leader)
		return false;
	sleeper->leader = true;
	group->leader = sleeper;
	return true;
}
