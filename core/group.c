#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "core/engine.h"
#include "core/epset.h"
#include "core/polling.h"
#include "core/proof.h"

#define BATCH_MAX 64	/* of SHUNT_POLL_BATCH: completions taken with one ibv_poll_cq (RB-17) */
#define CLOSED_NS 10000000000ull	/* between two looks for a device */
#define POLL_ROUNDS 8	/* at most, so that one poll is bounded */
#define CQ_ENTRIES 65536	/* or what the device has */

static int entries_of(const struct shunt_device *device)
{
	return device->limits.max_cqe < CQ_ENTRIES ? device->limits.max_cqe : CQ_ENTRIES;
}

static bool is_of(const struct ibv_cq *cq, const struct shunt_device *device)
{
	return cq->context == device->context;
}

static void destroy_cqs(struct shunt_group *group, struct shunt_device *device)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < group->cq_count; i++) {
		if (is_of(group->cqs[i], device))
			device->verbs->destroy_cq(group->cqs[i]);
		else
			group->cqs[kept++] = group->cqs[i];
	}
	group->cq_count = kept;
}

/* All of a device are on one channel. group.lock held. */
static bool add_cq(struct shunt_group *group, struct shunt_device *device)
{
	struct ibv_cq *cq;

	if (group->cq_count == SHUNT_CQS_MAX)
		return false;
	cq = device->verbs->create_cq(device->context, entries_of(device), device, device->channel, 0);
	if (!cq)
		return false;
	group->cq_lanes[group->cq_count] = 0;
	group->cqs[group->cq_count++] = cq;
	return true;
}

uint32_t shunt_group_depth(uint64_t wanted, uint32_t most)
{
	uint32_t depth = 1;

	while (depth <= most / 2 && 2 * (uint64_t)depth <= wanted)
		depth *= 2;
	return depth;
}

/* Its channel, its limits, its first CQs. */
static int prepare(struct shunt_engine *engine, struct shunt_device *device)
{
	struct shunt_group *group = &engine->group;
	uint32_t count = 0;

	if (device->kind->make_channel(device))
		return -ENOMEM;
	if (device->verbs->query_device(device->context, &device->limits))
		goto free_channel;
	device->rq_depth = shunt_group_depth(engine->config.rq_depth, device->limits.max_qp_wr);
	device->sq_depth = shunt_group_depth(engine->config.sq_depth, device->limits.max_qp_wr);
	device->cq_room = entries_of(device) / (device->rq_depth + device->sq_depth);
	shunt_lock_take(&group->lock);
	while (count < engine->config.cqs && add_cq(group, device))
		count++;
	shunt_lock_leave(&group->lock);
	if (device->cq_room && count)
		return 0;
free_channel:
	device->kind->free_channel(device);
	return -ENOMEM;
}

/* --- what is slept on --- */

static int open_devices(const struct shunt_group *group)
{
	int open = 0;

	for (int i = 0; i < SHUNT_DEVICES; i++)
		open += group->devices[i].open;
	return open;
}

static int join(struct shunt_engine *engine, int epfd, const struct shunt_device *device)
{
	struct epoll_event event = { .events = EPOLLIN };

	return engine->sys->epoll_ctl(epfd, EPOLL_CTL_ADD, device->channel->fd, &event) ? -ENOMEM : 0;
}

/* A second device: the channels of both in one. */
static int join_channels(struct shunt_engine *engine, const struct shunt_device *second)
{
	int epfd = shunt_private_make(engine, engine->sys->epoll_create1(EPOLL_CLOEXEC));
	int result = epfd < 0 ? epfd : join(engine, epfd, second);

	for (int i = 0; i < SHUNT_DEVICES && !result; i++)
		if (engine->group.devices[i].open)
			result = join(engine, epfd, &engine->group.devices[i]);
	if (result && epfd >= 0)
		shunt_private_close(engine, epfd);
	return result ? result : epfd;
}

static int make_bell(struct shunt_engine *engine, const struct shunt_device *device)
{
	int result;

	switch (open_devices(&engine->group)) {
	case 0:
		return device->channel->fd;
	case 1:
		return join_channels(engine, device);
	default:
		result = join(engine, engine->group.bell, device);
		return result ? result : engine->group.bell;
	}
}

/* Who fell asleep before sleeps on something else: all are woken to look again. */
static int hang_bell(struct shunt_engine *engine, struct shunt_device *device)
{
	struct shunt_group *group = &engine->group;
	int bell = make_bell(engine, device);

	if (bell < 0)
		return bell;
	shunt_lock_take(&group->lock);
	atomic_store(&group->bell, bell);
	device->open = true;
	group->open = true;
	shunt_fault_attach(device);
	for (struct shunt_sleeper *sleeper = group->sleepers; sleeper; sleeper = sleeper->next)
		shunt_group_kick(engine, sleeper);
	shunt_lock_leave(&group->lock);
	return 0;
}

/* --- devices --- */

/* Nobody tries again before a while has passed. */
static struct shunt_device *no_device(struct shunt_device *device, const char *error)
{
	struct shunt_engine *engine = device->engine;

	shunt_log(SHUNT_LOG_WARN, "connections stay on TCP: %s", error);
	shunt_lock_take(&engine->group.lock);
	snprintf(engine->device_error, sizeof(engine->device_error), "%s", error);
	shunt_lock_leave(&engine->group.lock);
	device->closed_until = shunt_now(engine) + CLOSED_NS;
	return NULL;
}

static struct shunt_device *open_device(struct shunt_engine *engine, enum shunt_which which, const struct shunt_way *way)
{
	struct shunt_group *group = &engine->group;
	struct shunt_device *device = &group->devices[which];
	char error[sizeof(engine->device_error)];

	if (shunt_now(engine) < device->closed_until)
		return NULL;
	device->engine = engine;
	device->kind = which == SHUNT_SOFT ? &shunt_device_soft : &shunt_device_verbs;
	if (device->kind->open(device, engine, way, error, sizeof(error)))
		return no_device(device, error);
	if (prepare(engine, device))
		goto close_device;
	if (hang_bell(engine, device))
		goto destroy_cqs;
	shunt_lock_take(&group->lock);
	engine->device_error[0] = 0;
	shunt_lock_leave(&group->lock);
	return device;

destroy_cqs:
	shunt_lock_take(&group->lock);
	destroy_cqs(group, device);
	shunt_lock_leave(&group->lock);
	device->kind->free_channel(device);
close_device:
	device->kind->close(device);
	return no_device(device, "the device has no queues for us: out of memory or descriptors");
}

struct shunt_device *shunt_group_open(struct shunt_engine *engine, enum shunt_which which)
{
	struct shunt_device *device = &engine->group.devices[which];

	return device->open ? device : open_device(engine, which, NULL);
}

struct shunt_device *shunt_group_open_way(struct shunt_engine *engine, const struct shunt_way *way)
{
	int unused = -1;

	if (engine->device_name && strcmp(engine->device_name, way->device))
		return shunt_group_open(engine, SHUNT_VERBS);	/* whoever names a device means it */
	for (int i = SHUNT_VERBS; i <= SHUNT_VERBS_LAST; i++) {
		struct shunt_device *device = &engine->group.devices[i];

		if (device->open && device->kind->leads(device, way))
			return device;
		if (!device->open && unused < 0)
			unused = i;
	}
	return unused < 0 ? NULL : open_device(engine, unused, way);
}

void shunt_group_close(struct shunt_engine *engine)
{
	struct shunt_group *group = &engine->group;

	if (open_devices(group) > 1)
		shunt_private_close(engine, group->bell);
	group->open = false;
	for (int i = 0; i < SHUNT_DEVICES; i++) {
		struct shunt_device *device = &group->devices[i];

		if (!device->open)
			continue;
		destroy_cqs(group, device);
		device->kind->free_channel(device);
		device->kind->close(device);
		device->open = false;
	}
}

void shunt_group_abandon(struct shunt_engine *engine)
{
	struct shunt_group *group = &engine->group;

	for (int i = 0; i < SHUNT_DEVICES; i++)
		if (group->devices[i].open)
			group->devices[i].kind->abandon(&group->devices[i]);
	if (open_devices(group) > 1)
		shunt_private_close(engine, group->bell);
	memset(group, 0, sizeof(*group));
}

struct ibv_cq *shunt_group_cq(struct shunt_engine *engine, struct shunt_device *device)
{
	struct shunt_group *group = &engine->group;
	uint32_t least = UINT32_MAX;
	bool full;

	for (uint32_t i = 0; i < group->cq_count; i++)
		if (is_of(group->cqs[i], device) && (least == UINT32_MAX || group->cq_lanes[i] < group->cq_lanes[least]))
			least = i;
	if (least != UINT32_MAX && group->cq_lanes[least] < device->cq_room)
		return group->cqs[least];
	shunt_lock_take(&group->lock);
	least = group->cq_count;
	full = !add_cq(group, device);
	shunt_lock_leave(&group->lock);
	return full ? NULL : group->cqs[least];
}

static void count_lane(struct shunt_group *group, const struct shunt_lane *lane, int change)
{
	for (uint32_t i = 0; lane->qp && i < group->cq_count; i++)
		if (group->cqs[i] == lane->qp->send_cq)
			group->cq_lanes[i] += change;
}

void shunt_group_add_lane(struct shunt_engine *engine, struct shunt_lane *lane)
{
	struct shunt_group *group = &engine->group;

	shunt_lock_take(&group->lock);
	lane->serial = engine->fault.lanes++;
	lane->next_in_group = group->lanes;
	group->lanes = lane;
	count_lane(group, lane, 1);
	shunt_lock_leave(&group->lock);
}

void shunt_group_remove_lane(struct shunt_engine *engine, struct shunt_lane *lane)
{
	struct shunt_group *group = &engine->group;

	shunt_lock_take(&group->lock);
	for (struct shunt_lane **p = &group->lanes; *p; p = &(*p)->next_in_group) {
		if (*p == lane) {
			*p = lane->next_in_group;
			shunt_tally_add(&group->ended, lane);
			count_lane(group, lane, -1);
			break;
		}
	}
	for (struct shunt_lane **p = &group->kick_lanes; *p; p = &(*p)->next_kick) {
		if (*p == lane) {
			*p = lane->next_kick;
			break;
		}
	}
	while (!shunt_lock_try(&lane->lock)) {	/* who serves it leaves it with group.lock held (next_kicked) */
		shunt_lock_leave(&group->lock);
		shunt_lock_take(&lane->lock);
		shunt_lock_leave(&lane->lock);
		shunt_lock_take(&group->lock);
	}
	shunt_lock_leave(&lane->lock);
	shunt_lock_leave(&group->lock);
}

/* Each device has numbers of its own: the CQ tells them apart. */
struct shunt_lane *shunt_group_lane(struct shunt_engine *engine, const struct ibv_cq *cq, uint32_t qp_num)
{
	struct shunt_lane *lane = engine->group.lanes;

	while (lane && (lane->qp->qp_num != qp_num || lane->qp->send_cq != cq))
		lane = lane->next_in_group;
	return lane;
}

bool shunt_group_settled(struct shunt_engine *engine)
{
	struct shunt_group *group = &engine->group;
	bool settled = true;

	shunt_lock_take(&group->lock);
	for (struct shunt_lane *lane = group->lanes; lane; lane = lane->next_in_group)
		settled &= atomic_load(&lane->failed) || shunt_lane_arrived(lane);
	shunt_lock_leave(&group->lock);
	return settled;
}

bool shunt_group_idle(struct shunt_engine *engine, bool *served)
{
	struct shunt_group *group = &engine->group;
	bool idle = true;

	*served = false;
	shunt_lock_take(&group->lock);
	for (struct shunt_lane *lane = group->lanes; lane; lane = lane->next_in_group) {
		if (shunt_lock_try(&lane->lock))
			shunt_lock_leave(&lane->lock);
		else
			*served = true;
		idle &= !shunt_lane_stalled(lane);
		shunt_group_kick_lane(engine, lane);	/* also for who has left us a mark meanwhile */
	}
	shunt_lock_leave(&group->lock);
	shunt_group_after(engine, group);
	return idle;
}

/* --- polling --- */

/*
 * All CQs in turn, until each has less than it was asked for, or the limit is reached: one limit for all, so that
 * a poll does not cost more where there are more of them (PF-34).
 */
static int poll_cqs(struct shunt_engine *engine, int limit)
{
	struct shunt_group *group = &engine->group;
	const int batch = shunt_narrow_int(engine->config.poll_batch);
	struct ibv_wc wc[BATCH_MAX];
	uint32_t emptied = 0;	/* CQs in a row */
	int total = 0;

	while (emptied < group->cq_count && total < limit) {
		int room = limit - total < batch ? limit - total : batch;
		struct ibv_cq *cq = group->cqs[group->cq_turn];
		int n = ibv_poll_cq(cq, room, wc);

		for (int i = 0; i < n; i++)
			shunt_arrival_apply(engine, cq, &wc[i]);
		if (n > 0)
			total += n;
		emptied = n < room ? emptied + 1 : 0;
		if (++group->cq_turn >= group->cq_count)
			group->cq_turn = 0;
	}
	group->more = emptied < group->cq_count;
	return total;
}

/* An event was taken from who sleeps on the channel: it needs another. */
static bool rearm(struct shunt_engine *engine)
{
	struct shunt_group *group = &engine->group;

	atomic_store(&group->rearm, false);
	if (!group->leader && !group->service_asleep)
		return false;
	shunt_group_arm(engine);
	return true;
}

/* Who sleeps on the channel will hear nothing of what was there before it was armed. */
static void wake_who_is_armed(struct shunt_engine *engine)
{
	struct shunt_group *group = &engine->group;

	if (group->leader)
		shunt_group_kick(engine, group->leader);
	if (group->service_asleep)
		shunt_service_wake(engine);
}

void shunt_group_repost(struct shunt_engine *engine, struct shunt_lane *lane)
{
	struct shunt_group *group = &engine->group;

	if (lane->repost_due)
		return;
	lane->repost_due = true;
	lane->next_repost = group->repost_lanes;
	group->repost_lanes = lane;
}

static void repost(struct shunt_group *group)
{
	struct shunt_lane *lane;

	while ((lane = group->repost_lanes) != NULL) {
		group->repost_lanes = lane->next_repost;
		lane->repost_due = false;
		shunt_lane_repost(lane);
	}
}

static int poll_some(struct shunt_engine *engine, int limit)
{
	struct shunt_group *group = &engine->group;
	bool rearmed = false;
	int total;

	if (!group->open)
		return 0;
	__atomic_store_n(&group->polls, group->polls + 1, __ATOMIC_RELAXED);	/* senders look at it (tx.c) */
	if (__builtin_expect(atomic_load_explicit(&group->rearm, memory_order_relaxed), 0))
		rearmed = rearm(engine);
	total = poll_cqs(engine, limit);
	if (__builtin_expect(rearmed && group->more, 0))
		wake_who_is_armed(engine);
	if (!total) {
		group->empty_polls++;
		return 0;
	}
	group->completions += total;
	if (__builtin_expect(group->repost_lanes != NULL, 0))
		repost(group);
	return total;
}

int shunt_group_poll_locked(struct shunt_engine *engine)
{
	return poll_some(engine, shunt_narrow_int(engine->config.poll_batch * POLL_ROUNDS));
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
	if (!shunt_lock_try(&stream->rx.lock)) {
		if (shunt_proof_pending(&stream->rx))
			shunt_service_prove(engine);	/* the reader may be about to sleep until it is proven */
		return;
	}
	shunt_track_settle(engine, stream);
	shunt_lock_leave(&stream->rx.lock);
}

/*
 * The next lane to be served, its lock taken, or NULL. What holds a lane that has no seat is its lock, and without that
 * group.lock, under which it is removed. As in shunt_lane_kick(), who does not get the lock leaves a mark instead.
 */
static struct shunt_lane *next_kicked(struct shunt_group *group, struct shunt_lane *served, bool *stalled)
{
	struct shunt_lane *lane;

	if (served) {
		shunt_lock_leave(&served->lock);
		*stalled |= shunt_lane_stalled(served);
		if (atomic_load(&served->dirty) && shunt_lock_try(&served->lock))
			return served;
	}
	while ((lane = group->kick_lanes) != NULL) {
		group->kick_lanes = lane->next_kick;
		lane->kicked = false;
		atomic_store(&lane->dirty, true);
		if (shunt_lock_try(&lane->lock))
			return lane;
	}
	return NULL;
}

void shunt_group_after_slow(struct shunt_engine *engine)
{
	struct shunt_group *group = &engine->group;
	struct shunt_lane *lane = NULL;
	struct shunt_stream *stream;
	bool stalled = false;

	do {
		shunt_lock_take(&group->lock);
		lane = next_kicked(group, lane, &stalled);
		stream = lane ? NULL : group->settle;	/* its locks come before a lane's */
		if (stream) {
			group->settle = stream->next_settle;
			stream->settling = false;
		}
		if (!lane && !stream)
			atomic_store_explicit(&group->after_due, false, memory_order_relaxed);
		shunt_lock_leave(&group->lock);
		if (lane) {
			atomic_store(&lane->dirty, false);
			shunt_lane_serve(lane);
		}
		if (stream)
			settle(engine, stream);
	} while (lane || stream);
	if (stalled)
		shunt_service_watch(engine);
}

/* --- events --- */

/* A lane has work that the completion of a send may make possible; the service thread sleeps for such. */
static bool awaits_sends(struct shunt_group *group)
{
	for (struct shunt_lane *lane = group->lanes; lane; lane = lane->next_in_group)
		if (shunt_lane_stalled(lane))
			return true;
	return group->service_asleep;
}

/* Every chain ends in a solicited WR: who waits for arrivals is not woken by sends (CP-05). */
void shunt_group_arm(struct shunt_engine *engine)
{
	struct shunt_group *group = &engine->group;
	bool arrivals_only = !awaits_sends(group);

	if (!group->open)
		return;
	group->arms++;
	for (uint32_t i = 0; i < group->cq_count; i++)
		ibv_req_notify_cq(group->cqs[i], arrivals_only);
}

/* Any CQ may have one. No lock of ours is held, but the device takes its own. */
static uint32_t take_events(struct shunt_device *device, uint32_t most)
{
	uint32_t taken = 0;
	struct ibv_cq *cq;
	void *context;

	shunt_inside_enter();
	while (taken < most && !device->verbs->get_cq_event(device->channel, &cq, &context)) {
		device->verbs->ack_cq_events(cq, 1);
		taken++;
	}
	shunt_inside_leave();
	return taken;
}

void shunt_group_take_event(struct shunt_engine *engine)
{
	struct shunt_group *group = &engine->group;
	uint32_t taken = 0;

	for (int i = 0; i < SHUNT_DEVICES; i++)
		if (group->devices[i].open)
			taken += take_events(&group->devices[i], group->cq_count);
	if (!taken)
		return;
	__atomic_fetch_add(&group->events, taken, __ATOMIC_RELAXED);
	/* It may have been meant for a leader that sleeps on: the next poll asks for another. */
	atomic_store(&group->rearm, true);
}

/* Some of what a wake-up takes. True: it takes more. */
static bool take_some(struct shunt_engine *engine)
{
	const struct shunt_polling *mode = shunt_polling(engine);
	int n;

	if (mode->bounded) {
		poll_some(engine, shunt_narrow_int(engine->config.poll_batch));
		return false;
	}
	n = shunt_group_poll_locked(engine);
	return mode->drains ? n > 0 : engine->group.more;
}

void shunt_group_hear_locked(struct shunt_engine *engine)
{
	while (take_some(engine))
		;
}

void shunt_group_hear(struct shunt_engine *engine)
{
	struct shunt_group *group = &engine->group;
	bool more;

	shunt_group_take_event(engine);
	do {
		shunt_lock_take(&group->lock);
		more = take_some(engine);
		shunt_lock_leave(&group->lock);
		shunt_group_after(engine, group);
	} while (more);
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
	if (sleeper->kick_fd < 0)
		return;		/* it wakes by itself, soon */
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

void shunt_group_cancelled(struct shunt_engine *engine)
{
	struct shunt_group *group = &engine->group;

	shunt_lock_take(&group->lock);
	for (struct shunt_sleeper *sleeper = group->sleepers; sleeper; sleeper = sleeper->next) {
		if (!sleeper->heeds)
			continue;
		sleeper->told = true;
		shunt_group_kick(engine, sleeper);
	}
	shunt_lock_leave(&group->lock);
}

void shunt_group_sleep_enter(struct shunt_engine *engine, struct shunt_sleeper *sleeper)
{
	struct shunt_group *group = &engine->group;

	sleeper->previous = NULL;
	sleeper->next = group->sleepers;
	if (group->sleepers)
		group->sleepers->previous = sleeper;
	group->sleepers = sleeper;
	sleeper->leader = false;
	shunt_group_sleep_lead(engine, sleeper);
}

void shunt_group_sleep_begin(struct shunt_engine *engine, struct shunt_sleeper *sleeper, bool ready)
{
	struct shunt_group *group = &engine->group;

	sleeper->asleep = !ready && !(group->open && group->more);
	if (sleeper->asleep)
		group->sleeps++;
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

bool shunt_group_sleeps(const struct shunt_engine *engine, const struct shunt_sleeper *sleeper)
{
	return sleeper->forks == engine->forks;
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
