/* SPDX-License-Identifier: MIT */
/*
 * A call of the program confines its thread or changes who it is (preload/confine.c). The service
 * thread has a user, capabilities and filters of its own, so it would stay outside. It ends before
 * such a call: every stream goes back to TCP, the links end, the names are closed.
 *
 * The service's wake-up eventfd and its epoll descriptor stay open, and devices as long as other
 * threads or unread bytes may need them. None of them leads to another process.
 *
 * The service thread ends in this order:
 *
 * 1. No claim is answered or made any more; the names are closed.
 * 2. Every stream is retired: the kernel gets what is unread and unsent, at a byte. At most 2 seconds.
 * 3. The links end by a failover. That covers streams which cannot be retired, because their peer has ended its
 *    direction and bytes are unread. Those are read from memory, on no link. At most 3 seconds; a connection whose
 *    peer takes nothing by then is reset.
 * 4. The service thread is joined, and waited for until the kernel does not count it any more.
 * 5. The call is made.
 *
 * A process without a service thread pays one look at a word. So daemons that change their user before they listen,
 * and children of a fork, lose nothing. The wake-up eventfd stays open, the service's epoll descriptor too, and
 * devices while other threads may be about to use them. With a cost model (SHUNT_SOFT_MODEL) that includes the
 * device's thread. A label that is set by writing to /proc (SELinux, AppArmor) is not seen. The same goes for a call
 * that is made by an instruction of the program's own. tests/calls/sandbox.sh has each of these calls, by name and by
 * number.
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
static inline enum shunt_cause shunt_leave_reason(struct shunt_engine *engine)
{
	enum shunt_cause stays = atomic_load(&engine->stays);

	return stays ? stays : SHUNT_CAUSE_CHANGES;
}

/* The service thread's part. */
void shunt_leave_run(struct shunt_task *task);
/* A thread that hangs up on strangers has ended, or else has set no_new_privs; or a message says that it stays outside. */
void shunt_leave_await_porter(struct shunt_engine *engine, bool ends);

#endif
