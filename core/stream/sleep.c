/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <pthread.h>
#include "core/base/deadline.h"
#include "core/fd/own_fds.h"
#include "core/fd/thread.h"
#include "core/poll/cancel.h"
#include "core/poll/group.h"
#include "core/stream/named.h"
#include "core/stream/sleep.h"
#include "core/stream/stream.h"
#include "core/stream/wait.h"

/* The last look before it sleeps. group.lock held. */
static void look(struct shunt_sleep *sleep)
{
	struct shunt_group *group = sleep->group;

	if (sleep->sleeper.leader)
		shunt_group_arm(sleep->group);
	if (__builtin_expect(sleep->sleeper.waiter, 0))
		shunt_waiter_arm(group, sleep->sleeper.waiter, true);
	else if (__builtin_expect(group->waiters.begun, 0))
		atomic_thread_fence(memory_order_seq_cst);	/* between the entries of its streams and the poll */
	group->looker = sleep->sleeper.set;	/* what comes now is its own: it looks before it sleeps */
	shunt_group_poll_locked(sleep->group);
	group->looker = NULL;
	shunt_sleeper_begin(sleep->group, &sleep->sleeper, sleep->ready(sleep->arg));
}

/* All that it waits for is told to the waiter. Streams that others wait for, too, are told to whoever polls. */
static bool name_all(struct shunt_sleep *sleep, uint32_t waiter)
{
	bool all = true;

	for (size_t i = 0; i < sleep->count; i++)
		if (sleep->on[i].stream)
			all &= shunt_named_by(sleep->on[i].stream, &sleep->on[i], waiter);
		else
			all &= !sleep->on[i].set;
	return all && sleep->count;
}

static uint32_t former(const struct shunt_sleep *sleep)
{
	return sleep->count && sleep->on[0].stream ? sleep->on[0].stream->named : 0;
}

static void choose_waiter(struct shunt_sleep *sleep)
{
	struct shunt_sleeper *sleeper = &sleep->sleeper;

	if (sleep->waiter) {
		sleeper->waiter = sleep->waiter(sleep->arg, &sleeper->apart);
		sleeper->apart &= sleep->group->waiters.served;
		return;
	}
	if (sleeper->apart)
		return;
	sleeper->waiter = shunt_waiter_take(sleep->group, former(sleep));
	if (name_all(sleep, sleeper->waiter) && sleeper->waiter) {
		sleeper->apart = sleep->group->waiters.served;
		return;
	}
	if (sleeper->waiter) {
		shunt_waiter_give(sleep->group, sleeper->waiter);
		name_all(sleep, 0);
	}
	sleeper->waiter = 0;
}

static bool another_sleeps(const struct shunt_group *group, const struct shunt_sleeper *sleeper)
{
	const struct shunt_sleeper *other = group->sleepers;

	while (other && (other == sleeper ||
			 (other->waiter != sleeper->waiter && other->set != sleeper->set)))
		other = other->next;
	return other;
}

/* A set's number is the set's, and others may sleep in it. */
static void leave_waiter(struct shunt_sleep *sleep)
{
	struct shunt_sleeper *sleeper = &sleep->sleeper;

	if (__builtin_expect(!sleeper->waiter, 1))
		return;
	shunt_waiter_arm(sleep->group, sleeper->waiter,
			 sleeper->set && another_sleeps(sleep->group, sleeper));
	if (!sleeper->set)
		shunt_waiter_give(sleep->group, sleeper->waiter);
}

void shunt_sleep_fall(struct shunt_sleep *sleep)
{
	struct shunt_group *group = sleep->group;

	shunt_lock_take(&group->lock);
	for (size_t i = 0; i < sleep->count; i++) {
		struct shunt_sleep_on *on = &sleep->on[i];

		if (!on->stream)
			continue;
		on->sleeper = &sleep->sleeper;
		on->next = on->stream->sleepers;
		on->stream->sleepers = on;
	}
	if (__builtin_expect(group->waiters.begun, 0))
		choose_waiter(sleep);
	shunt_sleeper_enter(group, &sleep->sleeper);
	look(sleep);
	shunt_lock_leave(&group->lock);
	shunt_group_after(group);
}

void shunt_sleep_rise(struct shunt_sleep *sleep, bool rung)
{
	struct shunt_group *group = sleep->group;

	shunt_thread.sleep_fd = 0;
	if (rung)	/* at once: it wakes more threads where several sleep in one set */
		shunt_group_take_event(sleep->group);
	shunt_lock_take(&group->lock);
	for (size_t i = 0; i < sleep->count; i++) {
		struct shunt_sleep_on **p;

		if (!sleep->on[i].stream)
			continue;
		for (p = &sleep->on[i].stream->sleepers; *p != &sleep->on[i]; p = &(*p)->next)
			;
		*p = sleep->on[i].next;
	}
	sleep->sleeper.asleep = false;	/* it need not be kicked for what it finds itself */
	leave_waiter(sleep);
	shunt_sleeper_leave(sleep->group, &sleep->sleeper);
	if (rung) {	/* armed anew if another leads by now */
		group->looker = sleep->sleeper.set;
		shunt_group_hear_locked(sleep->group);
		group->looker = NULL;
	}
	shunt_lock_leave(&group->lock);
	if (rung)
		shunt_group_after(group);
}

static void cancelled(void *arg)
{
	struct shunt_sleep *sleep = arg;

	shunt_signal_defer.waits = false;
	shunt_sleep_rise(sleep, false);
	shunt_own_fds_close(sleep->group->loop->fds, sleep->sleeper.kick_fd);
	if (sleep->cancelled)
		sleep->cancelled(sleep->arg);
}

static bool is_asleep(struct shunt_sleep *sleep)
{
	return atomic_load(&sleep->sleeper.asleep) && !shunt_thread.signalled &&
	       !(sleep->sleeper.heeds && shunt_cancel_pending());
}

/* Woken with nothing to do because nobody leads: does so, without getting up. */
static bool sleeps_on(struct shunt_sleep *sleep)
{
	struct shunt_group *group = sleep->group;
	bool leads;

	if (shunt_thread.signalled)
		return false;
	shunt_waker_drain(group->loop->fds, sleep->sleeper.kick_fd);
	shunt_lock_take(&group->lock);
	leads = !sleep->sleeper.told && shunt_sleeper_lead(group, &sleep->sleeper);
	if (leads)
		look(sleep);
	shunt_lock_leave(&group->lock);
	shunt_group_after(group);
	return leads && is_asleep(sleep);
}

/* How many descriptors are ready, or -errno. */
static int wait_in_kernel(struct shunt_sleep *sleep, struct pollfd *fds, nfds_t count, uint64_t deadline, const sigset_t *mask)
{
	struct timespec left;
	volatile int n;

	pthread_cleanup_push(cancelled, sleep);
	shunt_signal_defer.waits = true;
	n = sleep->group->sys->ppoll(fds, count,
				     shunt_deadline_left(sleep->group->sys, deadline, &left), mask);
	shunt_signal_defer.waits = false;
	pthread_cleanup_pop(0);
	return n < 0 ? -errno : n;
}

static int sleep_once(struct shunt_sleep *sleep, struct pollfd *fds, nfds_t fds_count, uint64_t deadline, const sigset_t *mask)
{
	struct shunt_group *group = sleep->group;
	struct pollfd *waker = fds + fds_count, *bell = waker + 1, *own = bell + 1;
	int n = 0;
	bool asleep;

	*waker = (struct pollfd) { .fd = sleep->sleeper.kick_fd, .events = POLLIN };
	*own = *bell = (struct pollfd) { .fd = -1 };
	shunt_thread.sleep_fd = waker->fd + 1;
	shunt_sleep_fall(sleep);
	asleep = is_asleep(sleep);
	if (__builtin_expect(sleep->sleeper.waiter && asleep, 0))
		*own = (struct pollfd) { .fd = shunt_waiter_fd(group, sleep->sleeper.waiter), .events = POLLIN };
	while (asleep) {
		if (sleep->sleeper.leader && group->open)
			*bell = (struct pollfd) { .fd = atomic_load(&group->bell), .events = POLLIN };
		n = wait_in_kernel(sleep, fds, fds_count + SHUNT_SLEEP_FDS, deadline, mask);
		if (n != 1 || !waker->revents || !sleeps_on(sleep))
			break;
	}
	if (__builtin_expect(own->revents, 0))
		shunt_waiter_hear(group, sleep->sleeper.waiter);
	shunt_sleep_rise(sleep, n >= 0 && bell->revents);	/* it may have been meant for another sleeper */
	if (!asleep || waker->revents || shunt_thread.signalled)
		shunt_waker_drain(group->loop->fds, waker->fd);
	return n < 0 ? n : n - !!waker->revents - !!bell->revents - !!own->revents;
}

int shunt_sleep(struct shunt_sleep *sleep, struct pollfd *fds, nfds_t fds_count, uint64_t deadline, const sigset_t *mask)
{
	int waker = shunt_waker_take(sleep->group->loop->fds), result;

	sleep->sleeper.kick_fd = waker;
	result = sleep_once(sleep, fds, fds_count,
			    shunt_waker_patience(sleep->group->loop->fds, waker, deadline), mask);
	shunt_waker_give(sleep->group->loop->fds, waker);
	return result;
}

/* --- who is told --- */

void shunt_sleep_notify(struct shunt_stream *stream, uint32_t what)
{
	struct shunt_group *group = stream->group;

	shunt_assert_held(&group->lock);
	if (stream->watches)
		group->hooks->notify(group, stream, what);
	for (struct shunt_sleep_on *on = stream->sleepers; on; on = on->next) {
		if (!(what & on->events))
			continue;
		on->sleeper->told = true;
		if (!shunt_named_rings(stream, on->sleeper->waiter, what))
			shunt_sleeper_kick(group, on->sleeper);
	}
}

void shunt_sleep_tell(struct shunt_stream *stream, uint32_t what)
{
	struct shunt_group *group = stream->group;

	shunt_lock_take(&group->lock);
	shunt_sleep_notify(stream, what);
	shunt_lock_leave(&group->lock);
}
