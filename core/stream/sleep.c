/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <pthread.h>
#include "core/base/deadline.h"
#include "core/fd/own_fds.h"
#include "core/fd/thread.h"
#include "core/poll/cancel.h"
#include "core/poll/group.h"
#include "core/stream/sleep.h"
#include "core/stream/stream.h"

/* The last look before it sleeps. group.lock held. */
static void look(struct shunt_sleep *sleep)
{
	struct shunt_group *group = sleep->group;

	if (sleep->sleeper.leader)
		shunt_group_arm(sleep->group);
	group->looker = sleep->sleeper.set;	/* what comes now is its own: it looks before it sleeps */
	shunt_group_poll_locked(sleep->group);
	group->looker = NULL;
	shunt_sleeper_begin(sleep->group, &sleep->sleeper, sleep->ready(sleep->arg));
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
	struct pollfd *waker = fds + fds_count, *bell = waker + 1;
	int n = 0;
	bool asleep;

	*waker = (struct pollfd) { .fd = sleep->sleeper.kick_fd, .events = POLLIN };
	*bell = (struct pollfd) { .fd = -1 };
	shunt_thread.sleep_fd = waker->fd + 1;
	shunt_sleep_fall(sleep);
	asleep = is_asleep(sleep);
	while (asleep) {
		if (sleep->sleeper.leader && group->open)
			*bell = (struct pollfd) { .fd = atomic_load(&group->bell), .events = POLLIN };
		n = wait_in_kernel(sleep, fds, fds_count + SHUNT_SLEEP_FDS, deadline, mask);
		if (n != 1 || !waker->revents || !sleeps_on(sleep))
			break;
	}
	shunt_sleep_rise(sleep, n >= 0 && bell->revents);	/* it may have been meant for another sleeper */
	if (!asleep || waker->revents || shunt_thread.signalled)
		shunt_waker_drain(group->loop->fds, waker->fd);
	return n < 0 ? n : n - !!waker->revents - !!bell->revents;
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
