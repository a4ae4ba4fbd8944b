/* SPDX-License-Identifier: MIT */
#include "core/fd/loading.h"
#include <sched.h>
#include "core/engine.h"
#include "core/fd/thread.h"

#define PATIENCE 10000000000ull /* ns */

/* False: it took too long. */
static bool none_left(struct shunt_engine *engine, const _Atomic unsigned int *threads,
		      uint64_t until)
{
	while (atomic_load((_Atomic unsigned int *)threads)) {
		if (shunt_now(engine) >= until)
			return false;
		sched_yield();
	}
	return true;
}

/* It gives way to a fork that has begun to wait. */
void shunt_loading_begin(struct shunt_engine *engine)
{
	struct shunt_loading *loading = &engine->loading;
	uint64_t until;

	shunt_signal_defer_enter();
	if (shunt_thread.loading++)
		return;
	atomic_fetch_add(&loading->inside, 1);
	if (!atomic_load(&loading->forking))
		return;
	until = shunt_now(engine) + PATIENCE;
	do {
		atomic_fetch_sub(&loading->inside, 1);
		none_left(engine, &loading->forking, until);
		atomic_fetch_add(&loading->inside, 1);
	} while (atomic_load(&loading->forking) && shunt_now(engine) < until);
}

void shunt_loading_end(struct shunt_engine *engine)
{
	if (!--shunt_thread.loading)
		atomic_fetch_sub(&engine->loading.inside, 1);
	shunt_signal_defer_leave();
}

/* A library that forks itself waits for no other thread: its own is inside. */
void shunt_loading_wait(struct shunt_engine *engine)
{
	atomic_fetch_add(&engine->loading.forking, 1);
	if (!shunt_thread.loading)
		none_left(engine, &engine->loading.inside, shunt_now(engine) + PATIENCE);
}

void shunt_loading_parted(struct shunt_engine *engine)
{
	atomic_fetch_sub(&engine->loading.forking, 1);
}

void shunt_loading_forget(struct shunt_engine *engine)
{
	atomic_store(&engine->loading.inside, shunt_thread.loading ? 1 : 0);
	atomic_store(&engine->loading.forking, 0);
}
