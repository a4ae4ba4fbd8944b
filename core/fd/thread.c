/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "core/fd/own_fds.h"
#include "core/fd/thread.h"

#define MISSES_MAX 6	/* at worst every 64th wait spins */
#define MISSES_DISPLACED 10	/* every 1024th where there are more runnable threads than cores */
#define EXPIRED_MOST 16	/* in a row say nothing: between them a program does what it waits for the time of */
#define DISPLACED_COUNTS 3	/* one displacement tells as much as so many misses: an interrupt is one, too */

#define UNPARKED 1000000	/* ns that a thread without a waker sleeps at most */

__thread struct shunt_thread shunt_thread;

uint64_t shunt_thread_budget(uint64_t wanted)
{
	return shunt_backoff_is_due(&shunt_thread.spins) ? wanted : 0;
}

static uint32_t next_misses(uint32_t misses, bool displaced)
{
	if (displaced)
		return misses + DISPLACED_COUNTS < MISSES_DISPLACED ? misses + DISPLACED_COUNTS : MISSES_DISPLACED;
	return misses < MISSES_MAX ? misses + 1 : misses;
}

/*
 * A displaced spin that succeeds does not count for spinning: the core was needed, perhaps by the thread we waited
 * for. A wait that was shorter than its spin might have been says nothing against it: a sleep would have been longer.
 * But a program that waits for such short times alone, and finds nothing, does that for hours perhaps.
 */
bool shunt_thread_polled(enum shunt_spun how, bool displaced)
{
	if (how == SHUNT_SPUN_FOUND && !displaced) {
		shunt_thread.spins.misses = shunt_thread.expired = 0;
		return false;
	}
	if (how == SHUNT_SPUN_EXPIRED && !displaced && shunt_thread.expired < EXPIRED_MOST) {
		shunt_thread.expired++;
		return false;
	}
	shunt_backoff_miss(&shunt_thread.spins, next_misses(shunt_thread.spins.misses, displaced));
	return true;
}

/* Runs in a signal handler: the wait it interrupts must not fall asleep after it. */
void shunt_thread_signalled(bool restart)
{
	int fd = shunt_thread.sleep_fd - 1;
	uint64_t one = 1;
	int saved = errno;

	shunt_thread.signalled |= restart ? SHUNT_SIGNAL_RESTARTS : SHUNT_SIGNAL_BREAKS;
	if (fd >= 0 && write(fd, &one, sizeof(one)) < 0)
		errno = saved;	/* the counter is full: readable all the same */
	errno = saved;
}

void shunt_thread_sleeps_next(bool next)
{
	shunt_thread.sleeps_next = next;
}

/* No handler runs between the two: one that jumps away must find what to undo. */
void shunt_thread_hold_cancel(void)
{
	int state;

	shunt_signal_defer_enter();
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	shunt_thread.cancel_held = (uint8_t)(state + 1);
	shunt_signal_defer_leave();
}

void shunt_thread_let_cancel(void)
{
	int state = shunt_thread.cancel_held - 1;

	shunt_signal_defer_enter();
	shunt_thread.cancel_held = 0;
	pthread_setcancelstate(state, NULL);
	shunt_signal_defer_leave();
}

struct shunt_thread shunt_thread_interrupt(void)
{
	struct shunt_thread before = shunt_thread;

	shunt_thread.moved = false;
	if (before.cancel_held)
		shunt_thread_let_cancel();
	return before;
}

void shunt_thread_resume(const struct shunt_thread *before)
{
	shunt_thread.sleep_fd = before->sleep_fd;
	shunt_thread.moved = before->moved;
	shunt_thread.signalled = before->signalled;
	if (before->cancel_held)
		shunt_thread_hold_cancel();
}

int shunt_waker_take(struct shunt_fds *fds)
{
	int fd = -1;

	shunt_lock_take(&fds->wakers.lock);
	if (fds->wakers.count)
		fd = fds->wakers.fd[--fds->wakers.count];
	shunt_lock_leave(&fds->wakers.lock);
	if (fd < 0)
		fd = shunt_own_fds_make(fds, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	return fd < 0 ? -1 : fd;
}

uint64_t shunt_waker_patience(struct shunt_fds *fds, int fd, uint64_t deadline)
{
	uint64_t soon;

	if (fd >= 0)
		return deadline;
	soon = fds->sys->now() + UNPARKED;
	return soon < deadline ? soon : deadline;
}

void shunt_waker_give(struct shunt_fds *fds, int fd)
{
	const int room = sizeof(fds->wakers.fd) / sizeof(fds->wakers.fd[0]);

	if (fd < 0)
		return;
	shunt_lock_take(&fds->wakers.lock);
	if (fds->wakers.count < room) {
		fds->wakers.fd[fds->wakers.count++] = fd;
		fd = -1;
	}
	shunt_lock_leave(&fds->wakers.lock);
	if (fd >= 0)
		shunt_own_fds_close(fds, fd);
}

void shunt_waker_drain(struct shunt_fds *fds, int fd)
{
	uint64_t count;
	int saved = errno;

	if (fds->sys->read(fd, &count, sizeof(count)) < 0)
		errno = saved;
}
