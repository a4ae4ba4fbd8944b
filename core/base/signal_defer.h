/* SPDX-License-Identifier: MIT */
/*
 * A thread inside code of ours holds a lock, of ours or of the device's. A signal handler of the program that comes
 * now and uses a socket would wait for that lock for ever. But send, recv, poll and their kind are async-signal-safe
 * (signal-safety(7)), so handlers may use them. Such a handler is put off until the thread has left its last lock.
 *
 * The kernel puts it off: the signal is queued again, with its siginfo, and blocked on return from the handler.
 * Leaving the last lock unblocks it. The program cannot see it, for nothing of its own runs in between.
 */
#ifndef SHUNT_CORE_BASE_SIGNAL_DEFER_H
#define SHUNT_CORE_BASE_SIGNAL_DEFER_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct shunt_signal_defer {
	volatile uint32_t depth;	/* locks that this thread holds or is about to take, calls of a device that takes its own */
	volatile uint32_t late;		/* handlers have been put off */
	uint64_t blocked;		/* their signals, as the kernel's mask has them: bit 0 is signal 1 */
};

extern __thread struct shunt_signal_defer shunt_signal_defer;

/* In a handler that has come inside, with what it was given (info: NULL without SA_SIGINFO): true if it shall come later. */
bool shunt_signal_defer_put_off(int number, siginfo_t *info, void *context);
/* Unblocks the signals that were put off. */
void shunt_signal_defer_catch_up(void);

static inline void shunt_signal_defer_enter(void)
{
	shunt_signal_defer.depth = shunt_signal_defer.depth + 1;
}

static inline void shunt_signal_defer_leave(void)
{
	uint32_t depth = shunt_signal_defer.depth - 1;

	shunt_signal_defer.depth = depth;
	if (__builtin_expect(!depth && shunt_signal_defer.late, 0))
		shunt_signal_defer_catch_up();
}

#endif
