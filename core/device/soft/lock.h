/* SPDX-License-Identifier: MIT */
/*
 * A spin lock for sections of some tens of nanoseconds that are almost never contended. A waiter spins briefly, then
 * yields. With two cores and many threads the holder may be preempted, and a waiter that keeps its core would only
 * delay it.
 *
 * Lock order of the soft device (take from left to right, skip freely):
 *
 *   channel.lock → context.list_lock → cq.lock → qp.sq_lock → qp.rq_lock → cq.ring_lock → leaves
 *
 * Leaves, held around nothing: pd.lock, context.async_lock, context.nic.lock. No two locks of one kind are ever held
 * together. One exception: a reset holds the locks of a QP's two CQs in address order.
 *
 * Memory order. x86 reorders a store with a later load and nothing else; aarch64 reorders whatever no barrier keeps.
 * The device is built on these handshakes. tests/soft/litmus.c stresses each, and the code names the other side:
 *
 *   payload → arrival          a release (arrival_write), an acquire (arrival_is_there)
 *   word by a plain WRITE      a release (execute.c, copy), the engine's acquire of its control lines
 *   receive → slot free again  a release (soft_post_recv), an acquire (arrival_is_free)
 *   arrival | arming           a full fence on each side (soft_send_ring, soft_req_notify_cq)
 *   own completion | arming    the same (ring_put, soft_req_notify_cq)
 *   success | break            the same (is_certain, soft_qp_break)
 *   posted receive | break     rq_lock on both sides (soft_post_recv, soft_qp_break)
 *   region's fields | its key  releases (slot_publish), acquires (soft_region_find)
 *   settled | who asks         sequentially consistent words (pending.c, qp_work)
 */
#ifndef SHUNT_CORE_DEVICE_SOFT_LOCK_H
#define SHUNT_CORE_DEVICE_SOFT_LOCK_H

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>

#if defined(SOFT_TSAN)	/* a build that instruments as ThreadSanitizer does, and is not it, says 0 */
#elif defined(__SANITIZE_THREAD__)
#define SOFT_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SOFT_TSAN 1
#endif
#endif
#ifndef SOFT_TSAN
#define SOFT_TSAN 0
#endif

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

struct soft_lock {
	_Atomic uint32_t held;
};

static inline void soft_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield" ::: "memory");
#endif
}

/*
 * Orders what was stored before (an arrival) against what is loaded after (the peer's arming). The alternative is a
 * membarrier(2) by the side that arms, with no fence here. Measured, it saves 5 ns a post, and costs 6 µs an arming
 * while the peer runs. Not worth it, because an arming thread is about to sleep and be woken. ThreadSanitizer does
 * not follow fences: it is shown an operation on a word instead.
 */
static inline void soft_fence(void)
{
#if SOFT_TSAN
	static _Atomic int word;

	atomic_fetch_add(&word, 1);
#else
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

/*
 * The same, right behind an atomic exchange. That is a full barrier itself on x86. On aarch64 it
 * may be a pair of exclusive instructions, and a later load goes ahead of the pair's store.
 */
static inline void soft_fence_after_exchange(void)
{
#if defined(__x86_64__) || defined(__i386__)
	atomic_signal_fence(memory_order_seq_cst);
#else
	soft_fence();
#endif
}

/* Acquires what soft_unlock() of the former holder releases: without it, a read here could be of before the lock. */
static inline int soft_trylock(struct soft_lock *lock)
{
	return !atomic_exchange_explicit(&lock->held, 1, memory_order_acquire);
}

static __attribute__((unused, noinline)) void soft_lock_contended(struct soft_lock *lock)
{
	do {
		for (int i = 0; i < 64; i++) {
			if (!atomic_load_explicit(&lock->held, memory_order_relaxed))
				break;
			soft_relax();
		}
		if (atomic_load_explicit(&lock->held, memory_order_relaxed))
			sched_yield();
	} while (!soft_trylock(lock));
}

static inline void soft_lock(struct soft_lock *lock)
{
	if (unlikely(!soft_trylock(lock)))
		soft_lock_contended(lock);
}

/* Releases: without it, a store of the section could be seen after the next holder's read (soft_trylock). */
static inline void soft_unlock(struct soft_lock *lock)
{
	atomic_store_explicit(&lock->held, 0, memory_order_release);
}

#endif
