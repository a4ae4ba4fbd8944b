/* SPDX-License-Identifier: MIT */
/* The engine is made here, and forgotten in children that it is not for. */
#include "core/stream/uring.h"
#include "preload/gate.h"
#include "preload/once.h"
#include "preload/settings.h"

static _Atomic int state;

static void make_engine(void)
{
	struct shunt_settings_key key = shunt_settings_key();
	struct shunt_engine *engine;

	if (shunt_process_config()->gate != SHUNT_GATE_NAMES)
		shunt_gate_open(true);
	shunt_process_fill_sys();
	engine = shunt_engine_create(shunt_process_config(), &shunt_process_sys);
	if (!engine)
		return;
	shunt_engine_key(engine, key.bytes, key.lacks);
	shunt_signal_watch_faults();
	__atomic_store_n(&shunt_process.engine, engine, __ATOMIC_SEQ_CST);
	__atomic_store_n(&shunt_process.files, shunt_engine_files(engine), __ATOMIC_RELEASE);
	/* In one order with uring_note(): it sees the engine, or this sees its answer. */
	shunt_uring_set(engine, (enum shunt_uring)atomic_load(&shunt_process.uring));
	if (atomic_load(&shunt_process.confined))
		shunt_engine_stay(engine);	/* perhaps another thread has confined the process meanwhile */
}

bool shunt_process_engine(void)
{
	int saved = errno;

	if (unlikely(atomic_load(&state) != SHUNT_ONCE_READY)) {
		if (!shunt_process_enabled() || shunt_process_confined() || shunt_process_foreign())
			return false;
		shunt_inside_do(shunt_once_make(&state, make_engine));
		errno = saved;
	}
	return shunt_process_has_engine();
}

void shunt_process_forget(bool again)
{
	if (shunt_once_makes())
		return;	/* a signal handler forked: the making goes on in the child */
	if (shunt_process_has_engine())
		shunt_own_fds_abandon(shunt_engine_fds(shunt_process.engine));
	shunt_process_no_engine();
	shunt_settings_forget();
	atomic_store(&state, again ? SHUNT_ONCE_NONE : SHUNT_ONCE_READY);
}
