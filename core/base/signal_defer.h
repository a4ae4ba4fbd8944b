/* SPDX-License-Identifier: MIT */
/*
 * A thread inside a call of ours holds locks, counts, descriptors and memory. A signal handler of the program may use a
 * socket then (signal-safety(7)), and would deadlock on a lock of its own thread. Or it leaves by a jump (siglongjmp, a
 * C++ exception, pthread_exit), and what the call holds is never released. So a handler is put off until the thread is at
 * the end of its call. A wait ends then, or its call begins anew after the handler (-ERESTART), as a system call does.
 *
 * The kernel puts it off: the signal is queued again, with its siginfo, and blocked on return from the handler.
 * The end of the call unblocks it. The program cannot see it, for nothing of its own runs in between.
 *
 * A handler runs all the same in three places:
 *
 * - in a call that is the kernel's: accept, connect, a stream on TCP: the call holds nothing.
 * - in epoll_wait on a set without streams on a link: the set is let go of before the handler, and held again after
 *   it (shunt_epwait_interrupt).
 * - in any call, if the thread has raised the signal itself (SIGSEGV and its kind): it may not: what the call held
 *   stays held.
 *
 * A wait that nothing but time ends (a handback, asking a relative) puts handlers off until it is over, some seconds
 * at most. No call that waits in the kernel may be made inside, unless a waker of ours is among its descriptors. With
 * SA_RESTART the kernel would begin it again, and the handler would wait for ever. Handlers installed inside libc or
 * by raw system calls are not seen.
 */
#ifndef SHUNT_CORE_BASE_SIGNAL_DEFER_H
#define SHUNT_CORE_BASE_SIGNAL_DEFER_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { SHUNT_SIGNAL_BREAKS = 1, SHUNT_SIGNAL_RESTARTS = 2 };

struct shunt_signal_defer {
	uint32_t depth;			/* calls of ours that this thread is in, locks that it holds or is about to take */
	volatile uint32_t late;		/* SHUNT_SIGNAL_*: kinds of the handlers that have been put off */
	volatile bool waits;		/* in a system call that waits: no signal is the thread's own */
	uint64_t blocked;		/* their signals, as the kernel's mask has them: bit 0 is signal 1 */
	uint64_t masked;		/* those that only the mask of a wait (ppoll, pselect) had let through */
};

extern __thread struct shunt_signal_defer shunt_signal_defer;

/*
 * In a handler that has come inside, with what it was given (info: NULL without SA_SIGINFO), and its SHUNT_SIGNAL_*:
 * true if it shall come later.
 */
bool shunt_signal_defer_put_off(int number, siginfo_t *info, void *context, uint32_t kind);
/* Unblocks the signals that were put off; `mask`: of the wait that has ended, or NULL. Handlers may not return. */
void shunt_signal_defer_catch_up(const sigset_t *mask);
/* The thread leaves its call without returning from it: it is cancelled, or the child of a fork in it. */
void shunt_signal_defer_end(void);

/*
 * Only the thread itself and its handlers look at the depth. So barriers of the compiler are enough, and a change is one
 * instruction of the processor. A leave reads `late` after it, when handlers run at once again.
 */
static inline void shunt_signal_defer_enter(void)
{
	shunt_signal_defer.depth++;
	atomic_signal_fence(memory_order_seq_cst);
}

/* True: the thread is outside again, and handlers are late. */
static inline bool shunt_signal_defer_step_out(void)
{
	atomic_signal_fence(memory_order_seq_cst);
	if (--shunt_signal_defer.depth)
		return false;
	atomic_signal_fence(memory_order_seq_cst);
	return __builtin_expect(shunt_signal_defer.late, 0);
}

static inline void shunt_signal_defer_leave(void)
{
	if (shunt_signal_defer_step_out())
		shunt_signal_defer_catch_up(NULL);
}

/* Ends a call that has waited with another signal mask, as ppoll() does; handlers that are late run with that mask. */
static inline void shunt_signal_defer_leave_masked(const sigset_t *mask)
{
	if (shunt_signal_defer_step_out())
		shunt_signal_defer_catch_up(mask);
}

#endif
