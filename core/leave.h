/* SPDX-License-Identifier: MIT */
/*
 * A call of the program confines its thread or changes who it is (preload/confine.c). The service
 * thread has a user, capabilities and filters of its own, so it would stay outside. It ends before
 * such a call: every stream goes back to TCP, the links end, the names are closed.
 *
 * The service's wake-up eventfd and its epoll descriptor stay open, and devices as long as other
 * threads or unread bytes may need them. None of them leads to another process.
 */
#ifndef SHUNT_CORE_LEAVE_H
#define SHUNT_CORE_LEAVE_H

#include "core/engine.h"

/* Such a call is under way, or was made for good: no service thread is started. Any thread. */
static inline bool shunt_leave_is_due(struct shunt_engine *engine)
{
	return atomic_load(&engine->leaving) || atomic_load(&engine->stays);
}

/* Why a connection that is used then stays on TCP. */
static inline enum shunt_reason shunt_leave_reason(struct shunt_engine *engine)
{
	enum shunt_reason stays = atomic_load(&engine->stays);

	return stays ? stays : SHUNT_REASON_CHANGES;
}

/* The service thread's part. */
void shunt_leave_run(struct shunt_task *task);
/* A thread that hangs up on strangers has ended, or else has set no_new_privs; or a message says that it stays outside. */
void shunt_leave_await_porter(struct shunt_engine *engine, bool ends);

#endif
