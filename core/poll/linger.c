/* SPDX-License-Identifier: MIT */
#include "core/poll/linger.h"
#include "core/base/sys.h"
#include "core/fd/thread.h"
#include "core/poll/group.h"
#include "core/poll/polling.h"

#define SLICE 2000	/* ns between two yields */
#define AS_LONG 3	/* times as long as a spin: so many threads would sleep and wake (measured: 1 and 2 are slower, 4 no faster) */
#define MISSES_MAX 4	/* at worst every 16th look goes on */

bool shunt_linger_begin(struct shunt_group *group, struct shunt_linger *linger)
{
	const struct shunt_polling *mode = shunt_polling(group);
	uint64_t most = mode->spins || mode->stays ? shunt_polling_most(group) : 0, now;

	if (!most || !shunt_backoff_is_due(&shunt_thread.looks))
		return false;
	now = group->sys->now();
	linger->until = now + AS_LONG * most;
	linger->yield = now + SLICE;
	return true;
}

static void count_vain(struct shunt_group *group, uint64_t now)
{
	struct shunt_backoff *looks = &shunt_thread.looks;

	__atomic_fetch_add(&group->spins, 1, __ATOMIC_RELAXED);
	shunt_backoff_miss(looks, looks->misses < MISSES_MAX ? looks->misses + 1 : looks->misses);
	shunt_thread.vain_at = now;
}

bool shunt_linger_on(struct shunt_group *group, struct shunt_linger *linger, bool *yielded)
{
	uint64_t now = group->sys->now(), then;

	*yielded = false;
	if (!linger->until)
		return false;
	if (now >= linger->until) {
		count_vain(group, now);
		return false;
	}
	if (now < linger->yield)
		return true;
	group->sys->yield();
	then = group->sys->now();
	*yielded = true;
	linger->yield = then + SLICE;
	if (then - now > SHUNT_YIELD_SHARED)
		linger->until = 0;
	return true;
}

void shunt_linger_found(struct shunt_group *group)
{
	__atomic_fetch_add(&group->spin_hits, 1, __ATOMIC_RELAXED);
	shunt_thread.looks.misses = 0;
}

void shunt_linger_slept(struct shunt_group *group)
{
	if (shunt_thread.vain_at &&
	    group->sys->now() - shunt_thread.vain_at < AS_LONG * shunt_polling_most(group))
		shunt_thread.looks = (struct shunt_backoff) { 0 };
	shunt_thread.vain_at = 0;
}
