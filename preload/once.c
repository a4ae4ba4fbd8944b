/* SPDX-License-Identifier: MIT */
#include "preload/once.h"
#include <sched.h>
#include <stdatomic.h>
#include "core/poll/cancel.h"

static __thread int making __attribute__((tls_model("initial-exec")));

/* True for the thread that has to do it; false when it is done, or being done by this very thread. */
static bool first(_Atomic int *state)
{
	int none = SHUNT_ONCE_NONE;

	if (atomic_load(state) == SHUNT_ONCE_READY)
		return false;
	if (atomic_compare_exchange_strong(state, &none, SHUNT_ONCE_MAKING))
		return true;
	while (!making && atomic_load(state) != SHUNT_ONCE_READY)
		sched_yield();
	return false;
}

void shunt_once_make(_Atomic int *what, void (*maker)(void))
{
	int state;

	if (!first(what))
		return;
	state = shunt_cancel_off();
	making++;
	maker();
	making--;
	atomic_store(what, SHUNT_ONCE_READY);
	shunt_cancel_restore(state);
}

bool shunt_once_makes(void)
{
	return making;
}
