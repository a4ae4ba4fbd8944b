/* SPDX-License-Identifier: MIT */
/*
 * A lock of one word: one atomic instruction to take, one to leave while nobody waits. Waiters poll briefly, then
 * sleep in futex(2).
 *
 * Order (a thread may take a lock only while holding ones further left):
 *   leave_lock  →  seats_lock  →  young.lock  →  service_lock  →  stream.rx.lock  →  stream.tx.lock  →  lane.lock  →  streams_lock  →
 *   group.lock  →  lane.queue_lock, send_lock, inbox_lock, rendezvous_lock, wakers_lock, porter.lock, arena.lock  →  the device's own
 * (exit() alone tries a tx.lock under streams_lock; it never waits for it.) rx and tx locks of one stream are taken
 * together only as rx, then tx. Taking and leaving are sequentially consistent. A thread that finds a lock held
 * knows: after leaving, its holder will see stores from before the attempt (lane.c builds on that).
 */
#ifndef SHUNT_CORE_BASE_LOCK_H
#define SHUNT_CORE_BASE_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "core/base/signal_defer.h"

/* One turn of a loop that waits for another thread. */
static inline void shunt_pause(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

struct shunt_lock {
	_Atomic uint32_t word;	/* 0 free, 1 held, 2 held and somebody sleeps */
};

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
	if (shunt_lock_grab(lock))
		return true;
	shunt_signal_defer_leave();
	return false;
}

static inline void shunt_lock_take(struct shunt_lock *lock)
{
	shunt_signal_defer_enter();
	if (__builtin_expect(!shunt_lock_grab(lock), 0))
		shunt_lock_wait(lock);
}

static inline void shunt_lock_leave(struct shunt_lock *lock)
{
	if (__builtin_expect(atomic_exchange_explicit(&lock->word, 0, memory_order_seq_cst) == 2, 0))
		shunt_lock_wake(lock);
	shunt_signal_defer_leave();
}

#endif
