/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include "core/poll/sleeper.h"
#include "core/poll/group.h"
#include "core/loop/loop.h"
#include "core/fd/own_fds.h"
#include "core/base/log.h"
#include "core/base/sys.h"

#define HEIRS 16	/* sleepers that are looked at for the next leader */

static void ring(struct shunt_group *group, const struct shunt_sleeper *sleeper)
{
	uint64_t one = 1;
	int saved = errno;

	group->kicks++;
	if (sleeper->kick_fd < 0)
		return;		/* it wakes by itself, soon */
	if (group->sys->write(sleeper->kick_fd, &one, sizeof(one)) < 0)
		shunt_log(SHUNT_LOG_ERROR, "cannot wake a thread: error %d", errno);
	errno = saved;
}

void shunt_sleeper_kick(struct shunt_group *group, struct shunt_sleeper *sleeper)
{
	if (!sleeper->asleep)
		return;
	sleeper->asleep = false;
	ring(group, sleeper);
}

void shunt_sleeper_recall(struct shunt_group *group, struct shunt_sleeper *sleeper)
{
	sleeper->apart = false;
	if (sleeper->asleep)
		ring(group, sleeper);
}

void shunt_sleeper_cancelled(struct shunt_group *group)
{
	shunt_lock_take(&group->lock);
	for (struct shunt_sleeper *sleeper = group->sleepers; sleeper; sleeper = sleeper->next) {
		if (!sleeper->heeds)
			continue;
		sleeper->told = true;
		shunt_sleeper_kick(group, sleeper);
	}
	shunt_lock_leave(&group->lock);
}

void shunt_sleeper_enter(struct shunt_group *group, struct shunt_sleeper *sleeper)
{
	shunt_assert_held(&group->lock);
	sleeper->previous = NULL;
	sleeper->next = group->sleepers;
	if (group->sleepers)
		group->sleepers->previous = sleeper;
	group->sleepers = sleeper;
	sleeper->leader = false;
	shunt_sleeper_lead(group, sleeper);
}

void shunt_sleeper_begin(struct shunt_group *group, struct shunt_sleeper *sleeper, bool ready)
{
	shunt_assert_held(&group->lock);
	sleeper->asleep = !ready && !(group->open && group->polled.more);
	if (sleeper->asleep)
		group->sleeps++;
}

/* A thread that has nothing to hear of completions would be woken for nothing. */
static void wake_a_leader(struct shunt_group *group)
{
	struct shunt_sleeper *sleeper = group->sleepers;

	while (sleeper && sleeper->apart)
		sleeper = sleeper->next;
	if (sleeper)
		shunt_sleeper_kick(group, sleeper);
}

/* A thread asleep in an epoll set, best in that of the last leader. Others would not wake by what a leader sleeps on. */
static struct shunt_sleeper *in_a_set(const struct shunt_group *group,
				      const struct shunt_sleeper *last)
{
	struct shunt_sleeper *sleeper = group->sleepers, *found = NULL;

	for (int i = 0; sleeper && i < HEIRS && !(found && found->set == last->set); i++) {
		if (sleeper->set && sleeper->asleep && (!found || sleeper->set == last->set))
			found = sleeper;
		sleeper = sleeper->next;
	}
	return found;
}

/*
 * A thread that sleeps in an epoll set leads next, and is not woken for that. The channel moves to the set, if it is
 * not there already. Nothing is lost. The CQs are still armed, or the last leader has taken their event, and
 * armed them again (rearm() in group.c). An event that it has not taken wakes the next.
 */
static bool leads_asleep(struct shunt_group *group, const struct shunt_sleeper *last)
{
	struct shunt_sleeper *next = in_a_set(group, last);

	if (!next || !group->hooks->ring_in(group, next->set))
		return false;
	next->leader = true;
	group->leader = next;
	return true;
}

/*
 * Without a leader, whoever leaves wakes the next to become it: also one that was woken to lead and does not
 * come back.
 */
void shunt_sleeper_leave(struct shunt_group *group, struct shunt_sleeper *sleeper)
{
	shunt_assert_held(&group->lock);
	if (sleeper->previous)
		sleeper->previous->next = sleeper->next;
	else
		group->sleepers = sleeper->next;
	if (sleeper->next)
		sleeper->next->previous = sleeper->previous;
	if (group->leader == sleeper) {
		group->leader = NULL;
		shunt_gap_woke(group);
		if (group->open && !group->waiters.served && leads_asleep(group, sleeper))
			return;
	}
	if (group->open && !group->leader && !group->waiters.served)
		wake_a_leader(group);
}

bool shunt_sleeper_lead(struct shunt_group *group, struct shunt_sleeper *sleeper)
{
	if (!group->open || sleeper->apart)
		return false;
	if (__builtin_expect(group->waiters.served, 0))
		return false;
	if (group->leader) {
		shunt_waiters_begin(group);
		return false;
	}
	sleeper->leader = true;
	group->leader = sleeper;
	return true;
}
