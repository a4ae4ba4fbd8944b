/*
 * The store→load ordering between "arrival written, is the owner armed?" and "armed, has anything
 * arrived?". One side can pay for both: an owner that calls membarrier(2) after arming makes every
 * running thread of the registered processes order its stores, so that their posts need no fence.
 * Arming precedes sleeping and is rare; posting is what the product is made of.
 *
 * A registered poster skips its fence only towards queues that promise the barrier. A program may
 * forbid itself the call later (seccomp): then the promise is withdrawn, see cq.c.
 */
#ifndef SHUNT_CORE_SOFT_BARRIER_H
#define SHUNT_CORE_SOFT_BARRIER_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ThreadSanitizer follows neither fences nor membarriers: it is shown operations on words instead. */
#if defined(__SANITIZE_THREAD__)
#define SOFT_BARRIER 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SOFT_BARRIER 0
#endif
#endif
#ifndef SOFT_BARRIER
#define SOFT_BARRIER 1
#endif

enum {
	SOFT_MEMBARRIER_GLOBAL_EXPEDITED = 1 << 1,
	SOFT_MEMBARRIER_REGISTER = 1 << 2,
};

static inline bool soft_barrier_register(void)
{
	int saved = errno;
	bool done = SOFT_BARRIER && syscall(SYS_membarrier, SOFT_MEMBARRIER_REGISTER, 0, 0) == 0 &&
		    syscall(SYS_membarrier, SOFT_MEMBARRIER_GLOBAL_EXPEDITED, 0, 0) == 0;

	errno = saved;
	return done;
}

static inline bool soft_barrier_others(void)
{
	int saved = errno;
	bool done = syscall(SYS_membarrier, SOFT_MEMBARRIER_GLOBAL_EXPEDITED, 0, 0) == 0;

	errno = saved;
	return done;
}

/* Orders an atomic store before this against every later load, for a poster without the promise. */
static inline void soft_fence(void)
{
#if SOFT_BARRIER
	atomic_thread_fence(memory_order_seq_cst);
#else
	static _Atomic int word;

	atomic_fetch_add(&word, 1);
#endif
}

#endif
