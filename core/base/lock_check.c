/* SPDX-License-Identifier: MIT */
#include "core/base/lock_check.h"
#include "core/base/lock.h"

#ifdef SHUNT_LOCK_CHECKS

#include <execinfo.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MOST 16 /* locks that a thread may hold */
#define FRAMES 32 /* of the stack that is shown */

static __thread struct {
	unsigned int from,
		count; /* those before `from` are another thread's, which a test pauses */
	const struct shunt_lock *of[MOST];
} held;

static __thread const struct shunt_engine *serves; /* NULL: this thread is not a service thread */

static const char *name_of(const struct shunt_lock *lock)
{
	static const char *const names[SHUNT_RANKS] = { [SHUNT_RANK_NONE] = "a lock without a rank",
#define SHUNT_RANK_ROW(name, text) [SHUNT_RANK_##name] = text,
							SHUNT_LOCK_RANKS(SHUNT_RANK_ROW)
#undef SHUNT_RANK_ROW
	};

	return lock->rank < SHUNT_RANKS ? names[lock->rank] : "no lock at all";
}

__attribute__((noreturn, format(printf, 1, 2))) static void refuse(const char *format, ...)
{
	void *frames[FRAMES];
	va_list args;

	fputs("shunt: locks: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputs("\n", stderr);
	for (unsigned int i = held.from; i < held.count; i++)
		fprintf(stderr, "shunt: locks: held: %s (%p)\n", name_of(held.of[i]),
			(const void *)held.of[i]);
	backtrace_symbols_fd(frames, backtrace(frames, FRAMES), STDERR_FILENO);
	abort();
}

void shunt_refuse_turn(const char *where, uint32_t state, uint32_t event)
{
	refuse("event %u cannot come in state %#x (%s)", event, state, where);
}

static bool holds(const struct shunt_lock *lock)
{
	for (unsigned int i = held.from; i < held.count; i++)
		if (held.of[i] == lock)
			return true;
	return false;
}

void shunt_lock_check_wanted(const struct shunt_lock *lock)
{
	if (lock->rank == SHUNT_RANK_NONE || lock->rank >= SHUNT_RANKS)
		refuse("%s is wanted (%p)", name_of(lock), (const void *)lock);
	if (holds(lock))
		refuse("%s is wanted and held already", name_of(lock));
	for (unsigned int i = held.from; i < held.count; i++)
		if (held.of[i]->rank >= lock->rank || held.of[i]->rank >= SHUNT_RANK_INNERMOST)
			refuse("%s is wanted while %s is held", name_of(lock), name_of(held.of[i]));
}

void shunt_lock_check_taken(const struct shunt_lock *lock)
{
	if (held.count == MOST)
		refuse("%s is taken beside %d others", name_of(lock), MOST);
	held.of[held.count++] = lock;
}

void shunt_lock_check_left(const struct shunt_lock *lock)
{
	unsigned int i = held.count;

	while (i > held.from && held.of[i - 1] != lock)
		i--;
	if (i == held.from)
		refuse("%s is left and not held", name_of(lock));
	for (held.count--; i <= held.count; i++)
		held.of[i - 1] = held.of[i];
}

void shunt_assert_held(const struct shunt_lock *lock)
{
	if (!holds(lock))
		refuse("%s should be held", name_of(lock));
}

unsigned int shunt_lock_check_pause(void)
{
	unsigned int from = held.from;

	held.from = held.count;
	return from;
}

void shunt_lock_check_resume(unsigned int paused)
{
	held.from = paused;
}

const struct shunt_engine *shunt_service_role_begin(const struct shunt_engine *engine)
{
	const struct shunt_engine *before = serves;

	serves = engine;
	return before;
}

void shunt_service_role_end(const struct shunt_engine *before)
{
	serves = before;
}

void shunt_assert_service_thread(const struct shunt_engine *engine)
{
	if (serves != engine)
		refuse("%s is not the service thread",
		       serves ? "the service thread of another engine" : "this thread");
}

#else
typedef int shunt_lock_check_is_empty; /* ISO C wants a declaration */
#endif
