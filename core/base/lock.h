/* SPDX-License-Identifier: MIT */
/*
 * A lock of one word: one atomic instruction to take, one to leave while nobody waits. Waiters poll briefly, then
 * sleep in futex(2).
 *
 * lock_rank.h has the order of all locks. Taking and leaving are sequentially consistent. A thread that finds a lock
 * held knows: after leaving, its holder will see stores from before the attempt (lane.c builds on that).
 */
#ifndef SHUNT_CORE_BASE_LOCK_H
#define SHUNT_CORE_BASE_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "core/base/capability.h"
#include "core/base/lock_check.h"
#include "core/base/lock_rank.h"
#include "core/base/signal_defer.h"

/* One turn of a loop that waits for another thread. */
static inline void shunt_pause(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

struct SHUNT_CAPABILITY("mutex") shunt_lock {
	_Atomic uint32_t word;	/* 0 free, 1 held, 2 held and somebody sleeps */
#ifdef SHUNT_LOCK_CHECKS
	uint32_t rank; /* enum shunt_lock_rank */
#endif
};

/* Zeroes with a rank. */
#ifdef SHUNT_LOCK_CHECKS
#define SHUNT_LOCK(name)                                                                           \
	{                                                                                          \
		.rank = SHUNT_RANK_##name                                                          \
	}
#else
#define SHUNT_LOCK(name)                                                                           \
	{                                                                                          \
		.word = 0                                                                          \
	}
#endif

/* `lock` is zeroes, and free; from now on it may be used. */
static inline void shunt_lock_rank(struct shunt_lock *lock, enum shunt_lock_rank rank)
{
#ifdef SHUNT_LOCK_CHECKS
	lock->rank = rank;
#else
	(void)lock, (void)rank;
#endif
}

/* In a fork's child: threads that it does not have held the lock. */
static inline void shunt_lock_free(struct shunt_lock *lock)
{
	atomic_store_explicit(&lock->word, 0, memory_order_relaxed);
}

/* The analysis takes these at their word. */
static inline bool shunt_lock_try(struct shunt_lock *lock)
	SHUNT_TRY_ACQUIRE(true, *lock) SHUNT_NO_LOCK_ANALYSIS;
static inline void shunt_lock_take(struct shunt_lock *lock)
	SHUNT_ACQUIRE(*lock) SHUNT_NO_LOCK_ANALYSIS;
static inline void shunt_lock_leave(struct shunt_lock *lock)
	SHUNT_RELEASE(*lock) SHUNT_NO_LOCK_ANALYSIS;

#ifdef SHUNT_LOCK_CHECKS
void shunt_assert_held(const struct shunt_lock *lock) SHUNT_ASSERTS(*lock);
#else
static inline void shunt_assert_held(const struct shunt_lock *lock) SHUNT_ASSERTS(*lock);
static inline void shunt_assert_held(const struct shunt_lock *lock)
{
	(void)lock;
}
#endif

void shunt_lock_wait(struct shunt_lock *lock);
void shunt_lock_wake(struct shunt_lock *lock);

/* The word alone. */
static inline bool shunt_lock_grab(struct shunt_lock *lock)
{
	uint32_t free = 0;

	return atomic_compare_exchange_strong_explicit(&lock->word, &free, 1, memory_order_seq_cst,
						       memory_order_seq_cst);
}

static inline bool shunt_lock_try(struct shunt_lock *lock)
{
	shunt_signal_defer_enter();
	if (shunt_lock_grab(lock)) {
		shunt_lock_check_taken(lock);
		return true;
	}
	shunt_signal_defer_leave();
	return false;
}

static inline void shunt_lock_take(struct shunt_lock *lock)
{
	shunt_signal_defer_enter();
	shunt_lock_check_wanted(lock);
	if (__builtin_expect(!shunt_lock_grab(lock), 0))
		shunt_lock_wait(lock);
	shunt_lock_check_taken(lock);
}

static inline void shunt_lock_leave(struct shunt_lock *lock)
{
	shunt_lock_check_left(lock);
	if (__builtin_expect(atomic_exchange_explicit(&lock->word, 0, memory_order_seq_cst) == 2, 0))
		shunt_lock_wake(lock);
	shunt_signal_defer_leave();
}

#endif
