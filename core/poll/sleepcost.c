/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "core/poll/sleepcost.h"
#include "core/base/sys.h"
#include "core/base/lock.h"

#define ROUNDS 8
#define PATIENCE 800000		/* ns that the program may lose in all */
#define SETTLE 20000		/* ns that a thread needs at most to fall asleep */
#define OVER UINT32_MAX		/* no more turns; odd */

/* True: it slept and was woken. */
static bool wait_while(struct shunt_sleepcost *cost, uint32_t turn, uint64_t patience)
{
	struct timespec timeout = { 0, patience };

	return !syscall(SYS_futex, &cost->turn, FUTEX_WAIT_PRIVATE, turn, patience ? &timeout : NULL, NULL, 0);
}

/* True: somebody slept. */
static bool wake(struct shunt_sleepcost *cost)
{
	return syscall(SYS_futex, &cost->turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) == 1;
}

void shunt_sleepcost_partner(struct shunt_sleepcost *cost)
{
	uint32_t turn;

	while ((turn = atomic_load(&cost->turn)) != OVER) {
		if (!(turn & 1)) {
			wait_while(cost, turn, 0);
			continue;
		}
		atomic_store(&cost->cpu, sched_getcpu());
		if (atomic_compare_exchange_strong(&cost->turn, &turn, turn + 1))
			wake(cost);
	}
}

/* Until the partner has had its turn, or time is up. True: in time, and this thread has slept meanwhile. */
static bool await_turn(const struct shunt_sys *sys, struct shunt_sleepcost *cost, uint32_t turn,
		       uint64_t until)
{
	bool slept = false;
	uint64_t now;

	while (atomic_load(&cost->turn) == turn) {
		now = sys->now();
		if (now >= until)
			return false;
		slept = wait_while(cost, turn, until - now);
	}
	return slept;
}

/* One round trip; 0 where it does not count: both must have slept, on two cores. */
static uint64_t round_trip(const struct shunt_sys *sys, struct shunt_sleepcost *cost, uint32_t turn,
			   uint64_t until)
{
	uint64_t start = sys->now();
	bool slept;

	atomic_store(&cost->turn, turn);
	slept = wake(cost);
	slept &= await_turn(sys, cost, turn, until);
	return slept && atomic_load(&cost->cpu) != sched_getcpu() ? sys->now() - start : 0;
}

/* The partner falls asleep meanwhile. */
static void pass(const struct shunt_sys *sys)
{
	uint64_t until = sys->now() + SETTLE;

	while (sys->now() < until)
		shunt_pause();
}

uint64_t shunt_sleepcost_measure(const struct shunt_sys *sys, struct shunt_sleepcost *cost)
{
	uint64_t until = sys->now() + PATIENCE, shortest = 0;
	int saved = errno;

	for (uint32_t turn = 1; turn < 2 * ROUNDS && sys->now() < until; turn += 2) {
		uint64_t took;

		pass(sys);
		took = round_trip(sys, cost, turn, until);
		if (took && (!shortest || took < shortest))
			shortest = took;
	}
	atomic_store(&cost->turn, OVER);
	wake(cost);
	errno = saved;
	return shortest;
}
