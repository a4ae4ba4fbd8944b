/* SPDX-License-Identifier: MIT */
/*
 * Cancellation of threads, pthread_cancel(3). In a program's call Shunt takes locks and makes
 * system calls, and libc's are cancellation points. So a thread is cancelled in three places and
 * nowhere else.
 *
 * - On entry of a call that is one (shunt_cancel_begin), as libc does.
 * - In a real wait, which knows what to undo (wait.c, poll.c, epwait.c). struct shunt_sys says which calls can be one.
 * - Not at all in a call that has moved bytes already: its wait ends then, and the program is told how many.
 *
 * A thread that may come to a wait with something half done holds cancellation off.
 *
 * struct shunt_sys makes bare system calls (preload/sys.c), and so do read and write on a descriptor of our own, also
 * from an RDMA library. tests/cancellation.sh lists what is left.
 *
 * A call that has taken or sent some bytes is not cancelled. Its wait ends, it returns them, and the thread ends in
 * its next call, as POSIX has it (2.9.5). No call of libc says whether a cancellation is pending, so the last 256 of
 * the process are remembered. pthread_cancel wakes threads that sleep in such a call. Up to glibc 2.40 the kernel's
 * bytes are lost there. A signal handler has the program's own cancellation state, as no call of ours is under way.
 */
#ifndef SHUNT_CORE_POLL_CANCEL_H
#define SHUNT_CORE_POLL_CANCEL_H

#include <pthread.h>
#include <stdbool.h>
#include "core/base/signal_defer.h"

struct shunt_group;

/* After pthread_cancel(thread). engine: NULL if not made yet. */
void shunt_cancel_called(struct shunt_group *group, pthread_t thread);
/* A call begins that is a cancellation point: acts on what is pending, unless the call has moved bytes already. */
void shunt_cancel_begin(void);
/* Has this thread been cancelled since then? */
bool shunt_cancel_pending(void);
/* The calling thread's call has moved bytes from here on, or no longer has. */
void shunt_cancel_moved(bool on);

/* AddressSanitizer does not know of frames that are left so: their stack is soon another thread's. */
#ifdef __SANITIZE_ADDRESS__
void __asan_handle_no_return(void);
#define shunt_cancel_leaves() __asan_handle_no_return()
#else
#define shunt_cancel_leaves() ((void)0)
#endif

/* The last that a cancelled wait does: its thread is no longer in a call of ours. */
static inline void shunt_cancel_unwinds(void)
{
	shunt_cancel_leaves();
	shunt_signal_defer_end();
}

/* Returns the former state, for shunt_cancel_restore(). */
static inline int shunt_cancel_off(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	return state;
}

static inline void shunt_cancel_restore(int state)
{
	pthread_setcancelstate(state, NULL);
}

#endif
