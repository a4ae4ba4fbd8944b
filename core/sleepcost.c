#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "core/engine.h"
#include "core/sleepcost.h"

#define ROUNDS 8
#define PATIENCE 800000		/* ns that the program may lose in all */
#define OVER UINT32_MAX		/* no more turns; odd */

static void wait_while(struct shunt_sleepcost *cost, uint32_t turn, uint64_t patience)
{
	struct timespec timeout = { 0, patience };

	syscall(SYS_futex, &cost->turn, FUTEX_WAIT_PRIVATE, turn, patience ? &timeout : NULL, NULL, 0);
}

static void wake(struct shunt_sleepcost *cost)
{
	syscall(SYS_futex, &cost->turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
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

/* False: time is up. */
static bool await_turn(struct shunt_engine *engine, struct shunt_sleepcost *cost, uint32_t turn,
		       uint64_t until)
{
	uint64_t now;

	while (atomic_load(&cost->turn) == turn) {
		now = shunt_now(engine);
		if (now >= until)
			return false;
		wait_while(cost, turn, until - now);
	}
	return true;
}

uint64_t shunt_sleepcost_measure(struct shunt_engine *engine, struct shunt_sleepcost *cost)
{
	uint64_t until = shunt_now(engine) + PATIENCE, shortest = 0;
	int saved = errno;

	for (uint32_t turn = 1; turn < 2 * ROUNDS; turn += 2) {
		uint64_t start = shunt_now(engine), took;

		atomic_store(&cost->turn, turn);
		wake(cost);
		if (!await_turn(engine, cost, turn, until))
			break;
		took = shunt_now(engine) - start;
		if (atomic_load(&cost->cpu) != sched_getcpu() && (!shortest || took < shortest))
			shortest = took;
	}
	atomic_store(&cost->turn, OVER);
	wake(cost);
	errno = saved;
	return shortest;
}
