/* SPDX-License-Identifier: MIT */
#include "core/fd/loading.h"
#include <sched.h>
#include "core/fd/own_fds.h"
#include "core/fd/thread.h"

#define PATIENCE 10000000000ull /* ns */

/* False: it took too long. */
static bool none_left(struct shunt_fds *fds, const _Atomic unsigned int *threads,
		      uint64_t until)
{
	while (atomic_load((_Atomic unsigned int *)threads)) {
		if (fds->sys->now() >= until)
			return false;
		sched_yield();
	}
	return true;
}

/* It gives way to a fork that has begun to wait. */
void shunt_loading_begin(struct shunt_fds *fds)
{
	struct shunt_loading *loading = &fds->loading;
	uint64_t until;

	shunt_signal_defer_enter();
	if (shunt_thread.loading++)
		return;
	atomic_fetch_add(&loading->inside, 1);
	if (!atomic_load(&loading->forking))
		return;
	until = fds->sys->now() + PATIENCE;
	do {
		atomic_fetch_sub(&loading->inside, 1);
		none_left(fds, &loading->forking, until);
		atomic_fetch_add(&loading->inside, 1);
	} while (atomic_load(&loading->forking) && fds->sys->now() < until);
}

void shunt_loading_end(struct shunt_fds *fds)
{
	if (!--shunt_thread.loading)
		atomic_fetch_sub(&fds->loading.inside, 1);
	shunt_signal_defer_leave();
}

/* A library that forks itself waits for no other thread: its own is inside. */
void shunt_loading_wait(struct shunt_fds *fds)
{
	atomic_fetch_add(&fds->loading.forking, 1);
	if (!shunt_thread.loading)
		none_left(fds, &fds->loading.inside, fds->sys->now() + PATIENCE);
}

void shunt_loading_parted(struct shunt_fds *fds)
{
	atomic_fetch_sub(&fds->loading.forking, 1);
}

void shunt_loading_forget(struct shunt_fds *fds)
{
	atomic_store(&fds->loading.inside, shunt_thread.loading ? 1 : 0);
	atomic_store(&fds->loading.forking, 0);
}
