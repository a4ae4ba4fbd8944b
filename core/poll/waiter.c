/* SPDX-License-Identifier: MIT */
#include "core/poll/waiter.h"
#include "core/base/narrow.h"
#include "core/loop/loop.h"
#include "core/poll/group.h"
#include "core/poll/sleeper.h"
#include "shunt/wire.h"

static struct shunt_device *device_of(struct shunt_group *group)
{
	return &group->devices[SHUNT_SOFT];
}

void shunt_waiters_begin(struct shunt_group *group)
{
	const struct shunt_device *device = device_of(group);

	if (group->waiters.begun || !device->open || !device->kind->waiters ||
	    group->loop->manual || device->kind->waiter_fd(device->context, SHUNT_WAITERS) < 0)
		return;
	group->waiters.begun = true;
	shunt_loop_wake(group->loop);
}

void shunt_waiters_serve(struct shunt_group *group)
{
	group->waiters.served = group->waiters.begun && !group->waiters.deaf;
}

static void stop_serving(struct shunt_group *group)
{
	if (!group->waiters.served)
		return;
	group->waiters.served = false;
	for (struct shunt_sleeper *sleeper = group->sleepers; sleeper; sleeper = sleeper->next)
		shunt_sleeper_recall(group, sleeper);
}

void shunt_waiters_deaf(struct shunt_group *group, int change)
{
	shunt_lock_take(&group->lock);
	atomic_fetch_add(&group->waiters.deaf, (uint32_t)change);
	if (change > 0)
		stop_serving(group);
	shunt_lock_leave(&group->lock);
}

void shunt_waiters_end(struct shunt_group *group)
{
	stop_serving(group);
	group->waiters.begun = false;
	group->waiters.generation++;
}

#define ALL (((1u << SHUNT_WAITERS) - 1) << 1)

bool shunt_waiter_is_free(const struct shunt_group *group)
{
	return (group->waiters.taken & ALL) != ALL;
}

uint32_t shunt_waiter_take(struct shunt_group *group, uint32_t wanted)
{
	uint32_t unused = ~group->waiters.taken & ALL;

	if (!group->waiters.begun || !unused)
		return 0;
	if (!wanted || !(unused >> wanted & 1))
		wanted = shunt_narrow_u32(__builtin_ctz(unused));
	group->waiters.taken |= 1u << wanted;
	return wanted;
}

void shunt_waiter_give(struct shunt_group *group, uint32_t waiter)
{
	group->waiters.taken &= ~(1u << waiter);
}

int shunt_waiter_fd(struct shunt_group *group, uint32_t waiter)
{
	const struct shunt_device *device = device_of(group);

	return device->open ? device->kind->waiter_fd(device->context, waiter) : -1;
}

void shunt_waiter_arm(struct shunt_group *group, uint32_t waiter, bool asleep)
{
	const struct shunt_device *device = device_of(group);

	if (device->open)
		device->kind->arm_waiter(device->context, waiter, asleep);
}

void shunt_waiter_hear(struct shunt_group *group, uint32_t waiter)
{
	const struct shunt_device *device = device_of(group);

	if (device->open)
		device->kind->hear_waiter(device->context, waiter);
}
