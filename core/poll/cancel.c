/* SPDX-License-Identifier: MIT */
#include "core/poll/cancel.h"
#include <stdatomic.h>
#include "core/base/lock.h"
#include "core/fd/thread.h"
#include "core/poll/sleeper.h"
#include "core/poll/group.h"

#define LAST 256	/* cancellations that are remembered: between two looks of a thread there are fewer */

/*
 * libc does not say whether a cancellation is pending; it only acts on it. So the last ones of this process are
 * remembered, and each thread knows up to where they do not concern it.
 */
static struct {
	struct shunt_lock lock;
	_Atomic unsigned int count;
	_Atomic pthread_t of[LAST];
} cancels = { .lock = SHUNT_LOCK(CANCELS) };

void shunt_cancel_called(struct shunt_group *group, pthread_t thread)
{
	unsigned int n;

	shunt_lock_take(&cancels.lock);
	n = atomic_load(&cancels.count);
	atomic_store(&cancels.of[n % LAST], thread);
	atomic_store(&cancels.count, n + 1);
	shunt_lock_leave(&cancels.lock);
	if (group)
		shunt_sleeper_cancelled(group);
}

void shunt_cancel_begin(void)
{
	if (shunt_thread.moved || shunt_signal_defer.depth)
		return;	/* one of several messages */
	shunt_thread.cancels = atomic_load(&cancels.count);	/* all that are counted are pending by now */
	shunt_signal_defer_enter();	/* AddressSanitizer's takes memory, and a handler has cancellation points */
	shunt_cancel_leaves();
	shunt_signal_defer_leave();
	pthread_testcancel();
}

bool shunt_cancel_pending(void)
{
	unsigned int n = atomic_load(&cancels.count), i = shunt_thread.cancels;

	if (n - i > LAST)
		return true;	/* perhaps: the call is short, once */
	for (; i != n; i++)
		if (pthread_equal(atomic_load(&cancels.of[i % LAST]), pthread_self()))
			return true;
	shunt_thread.cancels = n;
	return false;
}

void shunt_cancel_moved(bool on)
{
	shunt_thread.moved = on;
}
