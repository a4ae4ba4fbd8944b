/* SPDX-License-Identifier: MIT */
/*
 * One thread plays several: what it holds as one of them, it does not hold as another. This matters where locks are
 * checked (core/base/lock_check.h).
 */
#ifndef SIM_ROLE_H
#define SIM_ROLE_H

#include "core/base/lock.h"
#include "core/engine.h"
#include "core/link/link.h"
#include "core/peer/hear.h"
#include "core/peer/link_end.h"

/* Another thread takes the lock, and keeps it until role_leave_as_another(). */
static inline void role_take_as_another(struct shunt_lock *lock)
{
	shunt_lock_take(lock);
	shunt_lock_check_left(lock);
}

static inline void role_leave_as_another(struct shunt_lock *lock)
{
	shunt_lock_check_taken(lock);
	shunt_lock_leave(lock);
}

/* Another thread does this while what the present one holds stays held. */
static inline void role_play_another(void (*then)(void))
{
	const struct shunt_engine *before = shunt_service_role_begin(NULL);
	unsigned int paused = shunt_lock_check_pause();

	then();
	shunt_lock_check_resume(paused);
	shunt_service_role_end(before);
}

struct role {
	struct shunt_engine *engine;
	const struct shunt_engine *before;
};

/* Until role_rest(), this thread plays the service thread in its loop. */
static inline struct role role_serve(struct shunt_engine *engine)
{
	struct role role = { engine, shunt_service_role_begin(engine) };

	shunt_lock_take(&engine->group.seats_lock);
	return role;
}

static inline void role_rest(const struct role *role)
{
	shunt_lock_leave(&role->engine->group.seats_lock);
	shunt_service_role_end(role->before);
}

static inline void role_kill_link(struct shunt_link *link, const char *why)
{
	struct role role = role_serve(link->engine);

	shunt_link_kill(link, why);
	role_rest(&role);
}

static inline void role_break_link(struct shunt_link *link, const char *why)
{
	struct role role = role_serve(link->engine);

	shunt_link_break(link, why);
	role_rest(&role);
}

static inline void role_hear(struct shunt_link *link, const struct shunt_message *message,
			     const int *fds, int count)
{
	struct role role = role_serve(link->engine);

	shunt_hear_message(link, message, fds, count);
	role_rest(&role);
}

#endif
