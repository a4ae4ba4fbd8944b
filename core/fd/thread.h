/* SPDX-License-Identifier: MIT */
/* State of a waiting thread: whether polling has paid lately, what signals came, and the eventfd that wakes it. */
#ifndef SHUNT_CORE_FD_THREAD_H
#define SHUNT_CORE_FD_THREAD_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include "core/base/signal_defer.h"

struct shunt_fds;

/* Tries that are made as long as they pay: after n misses in a row every 2^n-th is. */
struct shunt_backoff {
	uint32_t misses;
	uint32_t skip;	/* tries that will not be made */
};

struct shunt_thread {
	volatile sig_atomic_t signalled;	/* SHUNT_SIGNAL_*: what came since the wait began; its handlers are due */
	volatile sig_atomic_t sleep_fd;		/* eventfd + 1 of the sleep that is about to begin; 0 none */
	uint64_t polls;		/* that it has made */
	uint32_t expired;	/* waits whose time was over while they polled, since something was found */
	struct shunt_backoff spins;	/* of waits */
	struct shunt_backoff looks;	/* that go on: core/poll/linger.h */
	uint64_t vain_at;	/* ns: when one has ended in vain, until the sleep that followed; else 0 */
	uint32_t making;	/* depth of shunt_own_fds_begin() */
	uint32_t closing;	/* and of shunt_numbers_enter() */
	uint32_t loading; /* and of shunt_loading_begin() */
	unsigned int cancels;	/* so many of the process's cancellations do not concern it (cancel.c) */
	bool sleeps_next;	/* a wait without time is its last before it sleeps (core/poll/linger.h) */
	bool moved;		/* inside a call of several messages that has moved some */
	uint8_t cancel_held;	/* the program's cancellation state + 1 while a call that is no cancellation point holds it off */
};

extern __thread struct shunt_thread shunt_thread;

static inline bool shunt_backoff_is_due(struct shunt_backoff *backoff)
{
	if (!backoff->skip)
		return true;
	backoff->skip--;
	return false;
}

/* That was fruitless, as so many in a row. */
static inline void shunt_backoff_miss(struct shunt_backoff *backoff, uint32_t misses)
{
	backoff->misses = misses;
	backoff->skip = (1u << misses) - 1;
}

/*
 * Nanoseconds that this wait may spin before it sleeps, 0: none. That is what is wanted, as long as spinning pays. So on
 * an oversubscribed machine the core goes to the thread we wait for (PF-32).
 */
uint64_t shunt_thread_budget(uint64_t wanted);
enum shunt_spun {
	SHUNT_SPUN_FOUND,	/* what was waited for */
	SHUNT_SPUN_EXPIRED,	/* nothing, for as long as the wait was to last */
	SHUNT_SPUN_IN_VAIN,
};

/* How the spin ended; displaced: somebody else had the core meanwhile. True: the thread gives up polling for a while. */
bool shunt_thread_polled(enum shunt_spun how, bool displaced);

void shunt_thread_hold_cancel(void);	/* core/api.h */
void shunt_thread_let_cancel(void);

/* A handler of the program runs in this thread. It may make calls of its own, or jump away. */
struct shunt_thread shunt_thread_interrupt(void);
/* It has returned; what it interrupted goes on as before. */
void shunt_thread_resume(const struct shunt_thread *before);

/* A wait begins, which signals end: those whose handlers have run are history. */
static inline void shunt_thread_begin(void)
{
	shunt_thread.signalled = (sig_atomic_t)shunt_signal_defer.late;
}

/* A wait that signals do not end. */
static inline void shunt_thread_endure(void)
{
	shunt_thread.signalled = 0;
}

/*
 * An eventfd for a sleeping thread, taken for a sleep, given back after it. Without descriptors it is -1: nobody can
 * end the sleep, and it must be short.
 */
int shunt_waker_take(struct shunt_fds *fds);
/* Until when a thread with this waker, or none, may sleep. */
uint64_t shunt_waker_patience(struct shunt_fds *fds, int fd, uint64_t deadline);
void shunt_waker_give(struct shunt_fds *fds, int fd);
void shunt_waker_drain(struct shunt_fds *fds, int fd);

#endif
