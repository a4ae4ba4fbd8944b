/* SPDX-License-Identifier: MIT */
#include "core/base/deadline.h"
#include "core/fd/thread.h"
#include "core/loop/request.h"
#include "core/poll/polling.h"
#include "core/poll/sleeper.h"
#include "core/poll/group.h"
#include "core/base/config.h"
#include "core/base/narrow.h"
#include "core/loop/loop.h"
#include "core/base/sys.h"

#define BATCH_MAX 64	/* of poll_batch: completions taken with one ibv_poll_cq (RB-17) */
#define POLL_ROUNDS 8	/* at most, so that one poll is bounded */

/*
 * Polls all CQs in turn, until each has less than it was asked for, or the limit is reached. The limit is for all, so
 * that a poll does not cost more with more CQs (PF-34). Bytes among them are told of once if they are `late`.
 */
static inline __attribute__((always_inline)) int poll_cqs(struct shunt_group *group, int limit,
							  uint64_t late)
{
	const int batch = shunt_narrow_int(shunt_config_live(&group->config->poll_batch));
	struct ibv_wc wc[BATCH_MAX];
	const struct shunt_hooks *hooks = group->hooks;
	uint32_t emptied = 0;	/* CQs in a row */
	int total = 0;

	while (emptied < group->cqs.count && total < limit) {
		int room = limit - total < batch ? limit - total : batch;
		struct ibv_cq *cq = group->cqs.of[group->polled.turn];
		int n = ibv_poll_cq(cq, room, wc);

		for (int i = 0; i < n; i++)
			hooks->apply(group, cq, &wc[i]);
		if (n > 0)
			total += n;
		if (late && shunt_gap_found(group, wc, n, late))
			late = 0;
		emptied = n < room ? emptied + 1 : 0;
		if (++group->polled.turn >= group->cqs.count)
			group->polled.turn = 0;
	}
	group->polled.more = emptied < group->cqs.count;
	return total;
}

/* An event was taken from the channel's sleeper, which needs another. */
static bool rearm(struct shunt_group *group)
{
	atomic_store(&group->polled.rearm, false);
	if (!group->leader && !group->polled.service_asleep)
		return false;
	shunt_group_arm(group);
	return true;
}

/* A sleeper on the channel hears nothing of completions from before the arming. */
static void wake_who_is_armed(struct shunt_group *group)
{
	if (group->leader)
		shunt_sleeper_kick(group, group->leader);
	if (group->polled.service_asleep)
		shunt_loop_wake(group->loop);
}

/* Polls may be late, or completions: the clock is read. */
static int poll_timed(struct shunt_group *group, int limit, uint64_t now)
{
	int total = poll_cqs(group, limit, shunt_gap_begin(group, now));

	shunt_gap_end(group, now);
	return total;
}

/*
 * The steps that most polls skip: an event was taken, polls are timed, or arrivals are counted. If
 * nothing is left, everything from before the poll has been taken.
 */
static __attribute__((noinline)) int poll_and_tell(struct shunt_group *group, int limit)
{
	bool rearmed = atomic_load(&group->polled.rearm) && rearm(group);
	bool timed = shunt_gap_is_timed(group);
	uint64_t begun = group->polled.metered || timed ? group->sys->now() : 0;
	int total = timed ? poll_timed(group, limit, begun) : poll_cqs(group, limit, 0);

	if (begun && !group->polled.more)
		group->emptied_at = begun;
	if (rearmed && group->polled.more)
		wake_who_is_armed(group);
	return total;
}

/* Receives that have been taken are posted again by the caller. */
static int poll_some(struct shunt_group *group, int limit)
{
	int total;

	if (!group->open)
		return 0;
	group->polls++;
	shunt_thread.polls++;	/* the thread's next send looks at it (tx.c) */
	if (__builtin_expect(atomic_load_explicit(&group->polled.rearm, memory_order_relaxed) ||
				     group->polled.metered || shunt_gap_is_timed(group),
			     0))
		total = poll_and_tell(group, limit);
	else
		total = poll_cqs(group, limit, 0);
	if (!total) {
		group->empty_polls++;
		return 0;
	}
	group->completions += total;
	return total;
}

static void post_again(struct shunt_group *group)
{
	if (__builtin_expect(group->polled.repost_lanes != NULL, 0))
		group->hooks->repost(group);
}

static int batch_of(struct shunt_group *group)
{
	return shunt_narrow_int(shunt_config_live(&group->config->poll_batch));
}

int shunt_group_poll_locked(struct shunt_group *group)
{
	int n;

	shunt_assert_held(&group->lock);
	n = poll_some(group, batch_of(group) * POLL_ROUNDS);
	post_again(group);
	return n;
}

int shunt_group_poll(struct shunt_group *group)
{
	int n;

	if (!shunt_lock_try(&group->lock))
		return 0;
	n = shunt_group_poll_locked(group);
	shunt_lock_leave(&group->lock);
	shunt_group_after(group);
	return n;
}

int64_t shunt_group_most(const struct shunt_group *group)
{
	int64_t most = 0;

	shunt_assert_held(&group->lock);
	for (uint32_t i = 0; i < group->cqs.count; i++)
		most += group->cqs.of[i]->cqe;
	return most;
}

/*
 * Receives are not posted again before the end. So a peer that floods us is heard no more often than it had receives when
 * we began.
 */
void shunt_group_poll_fully(struct shunt_group *group)
{
	int64_t left = INT64_MAX;
	int n;

	do {
		shunt_lock_take(&group->lock);
		if (left == INT64_MAX)
			left = shunt_group_most(group);
		n = poll_some(group, batch_of(group) * POLL_ROUNDS);
		left -= n;
		if (!n || left <= 0)
			post_again(group);
		shunt_lock_leave(&group->lock);
		shunt_group_after(group);
	} while (n && left > 0);
}

/* --- events --- */

/* Every chain ends in a solicited WR: a waiter for arrivals is not woken by sends (CP-05). */
void shunt_group_arm(struct shunt_group *group)
{
	bool arrivals_only;

	shunt_assert_held(&group->lock);
	if (!group->open)
		return;
	arrivals_only = !(group->polled.service_asleep && group->polled.service_sends) &&
			!group->hooks->stalls(group);
	group->arms++;
	for (uint32_t i = 0; i < group->cqs.count; i++)
		ibv_req_notify_cq(group->cqs.of[i], arrivals_only);
}

/* Any CQ may have one. No lock of ours is held, but the device takes its own. */
static uint32_t take_events(struct shunt_device *device, uint32_t most)
{
	uint32_t taken = 0;
	struct ibv_cq *cq;
	void *context;

	shunt_signal_defer_enter();
	while (taken < most && !device->verbs->get_cq_event(device->channel, &cq, &context)) {
		device->verbs->ack_cq_events(cq, 1);
		taken++;
	}
	shunt_signal_defer_leave();
	return taken;
}

void shunt_group_take_event(struct shunt_group *group)
{
	uint32_t taken = 0;

	for (int i = 0; i < SHUNT_DEVICES; i++)
		if (group->devices[i].open)
			taken += take_events(&group->devices[i], group->cqs.count);
	if (!taken)
		return;
	__atomic_fetch_add(&group->events, taken, __ATOMIC_RELAXED);
	/* It may have been meant for a leader that sleeps on: the next poll asks for another. */
	atomic_store(&group->polled.rearm, true);
}

/* Some of what a wake-up takes, which is *left at most. True: it takes more. */
static bool take_some(struct shunt_group *group, int64_t *left)
{
	const struct shunt_polling *mode = shunt_polling(group);
	int n;

	if (mode->bounded) {
		poll_some(group, batch_of(group));
		post_again(group);
		return false;
	}
	n = shunt_group_poll_locked(group);
	*left -= n;
	return *left > 0 && (mode->drains ? n > 0 : group->polled.more);
}

void shunt_group_hear_locked(struct shunt_group *group)
{
	int64_t left = shunt_group_most(group);

	while (take_some(group, &left))
		;
}

void shunt_group_hear(struct shunt_group *group)
{
	int64_t left = INT64_MAX;
	bool more;

	shunt_group_take_event(group);
	do {
		shunt_lock_take(&group->lock);
		if (left == INT64_MAX)
			left = shunt_group_most(group);
		more = take_some(group, &left);
		shunt_lock_leave(&group->lock);
		shunt_group_after(group);
	} while (more);
}

bool shunt_group_rest(struct shunt_group *group, struct shunt_rest *rest)
{
	struct pollfd fds[2] = { { .fd = atomic_load(&group->bell), .events = POLLIN },
				 { .fd = rest->fd, .events = POLLIN } };
	struct timespec left;

	shunt_lock_take(&group->lock);
	shunt_group_arm(group);
	shunt_lock_leave(&group->lock);
	shunt_group_poll_fully(group);
	if (rest->over(group, rest->arg))
		return true;
	if (group->sys->ppoll(fds, 2, shunt_deadline_left(group->sys, rest->until, &left), NULL) >
		    0 &&
	    fds[0].revents)
		shunt_group_take_event(group);
	return false;
}
