/* SPDX-License-Identifier: MIT */
#include "core/wait/epwait.h"
#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>
#include "core/base/cycles.h"
#include "core/base/deadline.h"
#include "core/engine.h"
#include "core/fd/thread.h"
#include "core/poll/cancel.h"
#include "core/poll/linger.h"
#include "core/poll/polling.h"
#include "core/stream/sleep.h"
#include "core/wait/companion.h"
#include "core/wait/epset.h"
#include "core/wait/epsets.h"
#include "core/wait/nested.h"
#include "core/wait/watch.h"

#define COMPANION_BATCH 32
#define BUSY_TICKS 100000	/* cycles between two looks at the kernel's part while streams are busy, */
#define QUIET_TICKS 30000000	/* if it has had nothing for so many; else there is one in each call */
#define WORTH_A_LOOK 4	/* streams ready at once for whom one more system call does not matter */
#define IDLE_TICKS 4000		/* the same while polling for the first event */

/* Another thread may sleep on in the set, and what has rung for it is taken here. A poll follows. */
static void hear_waiter(struct shunt_engine *engine, const struct shunt_epset *set)
{
	if (!set->waiter)
		return;
	shunt_waiter_hear(&engine->group, set->waiter);
	if (set->sleeping)
		shunt_waiter_arm(&engine->group, set->waiter, true);
}

/* Takes what the companion has to say, completions included. group.lock held. */
static void hear_companion(struct shunt_engine *engine, struct shunt_epset *set)
{
	struct epoll_event events[COMPANION_BATCH];
	int saved = errno;
	bool event = false;
	int n = engine->sys->epoll_pwait(set->companion, events, COMPANION_BATCH, 0, NULL);

	for (int i = n - 1; i >= 0; i--) {	/* each becomes the first of the list */
		if (events[i].data.ptr == set) {
			if (set->plain || set->pollers)
				continue;	/* it is to wake those, too; the last of them takes it back */
			shunt_waker_drain(&engine->fds, set->kick_fd);
			set->kicked = false;
		} else if (events[i].data.ptr == &engine->group) {
			event = true;
		} else if (events[i].data.ptr == &set->waiter) {
			hear_waiter(engine, set);
		} else {
			shunt_watch_heard(engine, events[i].data.ptr, events[i].events);
			set->kernel_active = shunt_cycles();
		}
	}
	if (event) {
		shunt_group_take_event(&engine->group);
		shunt_group_hear_locked(&engine->group);
	} else {
		shunt_group_poll_locked(&engine->group);
	}
	errno = saved;
}

bool shunt_epset_absorb(struct shunt_engine *engine, struct shunt_epset *set)
{
	struct shunt_group *group = &engine->group;
	bool ready;

	shunt_lock_take(&group->lock);
	hear_companion(engine, set);
	shunt_nested_refresh(engine, set);
	ready = shunt_watch_any_ready(engine, set);
	shunt_nested_show(engine, set);
	shunt_lock_leave(&group->lock);
	shunt_group_after(group);
	return ready;
}

/* Events or -errno. Without time it is no cancellation point (core/base/sys.h). */
static inline int kernel_call(const struct shunt_sys *sys, int fd, struct epoll_event *events,
			      int max, const struct timespec *timeout, const sigset_t *mask)
{
	bool now = timeout && !timeout->tv_sec && !timeout->tv_nsec;
	int n = now ? sys->epoll_pwait(fd, events, max, 0, mask) : sys->epoll_pwait2(fd, events, max, timeout, mask);

	return n < 0 ? -errno : n;
}

/* After a real wait. The companion's event is taken out of the result; *heard says that there was one. */
static int kernel_said(struct shunt_epset *set, uint32_t begun, struct epoll_event *events, int max, int n, bool *heard)
{
	int kept = 0;

	if (n < max)
		atomic_store(&set->drained, begun);
	for (int i = 0; i < n; i++) {
		if (events[i].data.ptr != set)
			events[kept++] = events[i];
		else if (set->companion >= 0)	/* not the parent's, seen through an inherited set */
			*heard = true;
	}
	if (kept)
		set->kernel_active = shunt_cycles();
	return kept;
}

/* The real wait, which a descriptor of ours ends where a signal comes just before it. */
static int kernel_wait(struct shunt_engine *engine, struct shunt_epset *set,
		       struct epoll_event *events, int max, const struct timespec *timeout,
		       const sigset_t *mask, bool *heard)
{
	uint32_t begun = atomic_fetch_add(&set->begun, 1) + 1;
	int n;

	shunt_signal_defer.waits = true;
	n = kernel_call(engine->sys, set->fd, events, max, timeout, mask);
	shunt_signal_defer.waits = false;
	return n < 0 ? n : kernel_said(set, begun, events, max, n, heard);
}

/* Nothing has come for the set; perhaps it is behind what the poll has taken. How many events there are then. */
static int look_behind(struct shunt_engine *engine, struct shunt_epset *set,
		       struct epoll_event *events, int max, int *taken)
{
	struct shunt_group *group = &engine->group;
	int64_t left = shunt_group_most(group);
	int n = 0;

	while (!n && group->polled.more && left > 0) {
		int took = shunt_group_poll_locked(&engine->group);

		*taken += took;
		left -= took;
		n = shunt_watch_collect(engine, set, events, max, 0);
	}
	return n;
}

/*
 * Behind `n` events of the kernel. How many there are then. *found: the completions that a polling
 * caller took. If another thread had the core meanwhile, the caller looks at the kernel's part
 * before it takes the streams' events. NULL: from others.
 */
static int look_at_streams(struct shunt_engine *engine, struct shunt_epset *set,
			   struct epoll_event *events, int max, int n, bool heard, int *found)
{
	struct shunt_group *group = &engine->group;
	int taken = 0;

	shunt_lock_take(&group->lock);
	group->looker = set;
	if (heard)
		hear_companion(engine, set);
	else
		taken = shunt_group_poll_locked(&engine->group);
	if (found && set->first && shunt_cycles() - set->kernel_checked >= BUSY_TICKS)
		max = 0;
	if (n < max)
		n += shunt_watch_collect(engine, set, events + n, max - n, n);
	if (!n && max && group->polled.more)
		n = look_behind(engine, set, events, max, &taken);
	group->looker = NULL;
	/* Another thread of the set is for what is left, as the kernel has it: a level that was just reported is. */
	if (__builtin_expect(set->sleeping && shunt_watch_any_ready(engine, set), 0))
		shunt_companion_kick(engine, set);
	if (__builtin_expect(set->outers || set->pollers, 0))
		shunt_nested_show(engine, set);
	if (__builtin_expect(set->inners != NULL, 0))	/* the kernel's part may follow */
		shunt_nested_refresh(engine, set);
	shunt_lock_leave(&group->lock);
	shunt_group_after(group);
	if (found)
		*found = taken;
	return n;
}

/*
 * The kernel's part first, then the streams, whatever the companion told of them included. A stream
 * that goes from the list to the kernel's part meanwhile is in neither: then once more.
 */
static int look_at_both(struct shunt_engine *engine, struct shunt_epset *set,
			struct epoll_event *events, int max)
{
	struct timespec none = { 0, 0 };
	bool heard = false;
	uint32_t returns;
	int n;

	if (__builtin_expect(atomic_load(&set->below), 0)) {
		shunt_lock_take(&engine->group.lock);
		shunt_group_poll_locked(&engine->group);
		shunt_nested_refresh(engine, set);
		shunt_lock_leave(&engine->group.lock);
	}
	do {
		returns = atomic_load(&set->returns);
		n = kernel_wait(engine, set, events, max, &none, NULL, &heard);
		set->kernel_checked = shunt_cycles();
		if (n < 0)
			n = 0;
		set->streams_first = n == max;
		n = look_at_streams(engine, set, events, max, n, heard, NULL);
	} while (__builtin_expect(!n && returns != atomic_load(&set->returns), 0));
	return n;
}

/* Of `more` events behind `n` those that the first `n` tell of already become part of them. How many there are then. */
static int tell_once(struct epoll_event *events, int n, int more)
{
	int kept = n, i;

	for (int k = n; k < n + more; k++) {
		for (i = 0; i < n && events[i].data.u64 != events[k].data.u64; i++)
			;
		if (i < n)
			events[i].events |= events[k].events;
		else
			events[kept++] = events[k];
	}
	return kept;
}

/* The streams first, then, if there are `worth` of them at least, the kernel's part beside them. */
static int look_at_streams_first(struct shunt_engine *engine, struct shunt_epset *set,
				 struct epoll_event *events, int max, int worth)
{
	uint32_t returns = atomic_load(&set->returns);
	int n = look_at_streams(engine, set, events, max, 0, false, NULL), more;
	struct timespec none = { 0, 0 };
	bool heard = false;	/* the companion will say it again */

	if (n < worth || n == max)
		return n;
	more = kernel_wait(engine, set, events + n, max - n, &none, NULL, &heard);
	set->kernel_checked = shunt_cycles();
	if (more <= 0)
		return n;
	/* A stream that went to the kernel's part meanwhile may be in both. */
	return __builtin_expect(returns != atomic_load(&set->returns), 0) ? tell_once(events, n, more) : n + more;
}

/*
 * An event of the kernel's part since the last look may be older than those of streams, from the
 * same peer. A program that sees the later alone could not explain it.
 */
static bool is_stale(const struct shunt_epset *set)
{
	uint64_t now = shunt_cycles();

	return now - set->kernel_checked >= BUSY_TICKS || now - set->kernel_active < QUIET_TICKS;
}

/* A first look, at the kernel's part too unless that was looked at just now. */
static int look_first(struct shunt_engine *engine, struct shunt_epset *set,
		      struct epoll_event *events, int max)
{
	int n = 0;

	if (__builtin_expect(set->streams_first, 0)) {	/* streams must not wait either */
		set->streams_first = false;
		return look_at_streams_first(engine, set, events, max, 0);
	}
	/* Busy streams must not keep the kernel's descriptors waiting (PF-46), least of all busy ones. */
	if (!is_stale(set))
		n = look_at_streams_first(engine, set, events, max, WORTH_A_LOOK);
	return n ? n : look_at_both(engine, set, events, max);
}

/* Goes on polling. Events, or 0 when that is over. */
static int spin_awhile(struct shunt_engine *engine, struct shunt_epset *set,
		       struct epoll_event *events, int max, struct shunt_spin *spin)
{
	int n = 0, found = 0;

	while (!n && !shunt_thread.signalled && shunt_spin_on(&engine->group, spin, found)) {
		uint64_t age = shunt_cycles() - set->kernel_checked;

		if (age >= BUSY_TICKS || (age > IDLE_TICKS && !(spin->turns & 15)))
			n = look_at_both(engine, set, events, max);
		if (!n)
			n = look_at_streams(engine, set, events, max, 0, false, &found);
		shunt_pause();
	}
	return n;
}

/* Events, or 0 when polling is over. *stay: do not sleep, look again. */
static int epwait_spin(struct shunt_engine *engine, struct shunt_epset *set,
		       struct epoll_event *events, int max, uint64_t deadline, bool *stay)
{
	struct shunt_spin spin;
	int n;

	*stay = false;
	if (!atomic_load_explicit(&set->linked, memory_order_relaxed) ||
	    !shunt_spin_begin(&engine->group, &spin, deadline))
		return 0;
	n = spin_awhile(engine, set, events, max, &spin);
	*stay = shunt_spin_end(&engine->group, &spin, n > 0 || shunt_thread.signalled);
	return n;
}

/* A look without time that has found nothing, and after which the thread sleeps. The set is the number's. */
static int linger(struct shunt_engine *engine, struct shunt_epset *set, struct epoll_event *events,
		  int max)
{
	struct shunt_linger linger;
	bool yielded = false;
	int n = 0;

	if (!atomic_load_explicit(&set->linked, memory_order_relaxed) ||
	    !shunt_linger_begin(&engine->group, &linger))
		return 0;
	while (!n && !shunt_thread.signalled &&
	       shunt_linger_on(&engine->group, &linger, &yielded)) {
		shunt_pause();
		n = yielded ? look_at_both(engine, set, events, max) :
			      look_at_streams(engine, set, events, max, 0, false, NULL);
	}
	if (n)
		shunt_linger_found(&engine->group);
	return n;
}

struct asleep {	/* what a sleep must undo, also when its thread is cancelled in it */
	struct shunt_epset *set;
	struct shunt_sleep sleep;
	bool heard;		/* the companion has something to say */
	volatile bool over;	/* it has come to its end: its thread was not cancelled */
};

/* With something on the list, or in a set inside, it is not to sleep, but to look again. */
static bool is_ready(void *arg)
{
	struct asleep *asleep = arg;

	asleep->set->sleeping++;
	if (asleep->sleep.sleeper.leader)
		shunt_companion_lead(shunt_engine_of(asleep->sleep.group, group), asleep->set);
	else if (__builtin_expect(asleep->sleep.sleeper.apart, 0) &&
		 asleep->sleep.group->channel_set == asleep->set)
		shunt_companion_silence(shunt_engine_of(asleep->sleep.group, group));
	return asleep->set->first ||
	       shunt_nested_refresh(shunt_engine_of(asleep->sleep.group, group), asleep->set);
}

/* *apart: all that a completion can tell the set is of streams that name it. */
static uint32_t waiter_of(void *arg, bool *apart)
{
	struct asleep *asleep = arg;
	const struct shunt_epset *set = asleep->set;

	if (!shunt_epset_is_numbered(set, asleep->sleep.group))
		return 0;
	*apart = set->named == atomic_load(&set->linked);
	return set->waiter;
}

static void cancelled(struct asleep *asleep)
{
	if (asleep->over)
		return;
	shunt_signal_defer.waits = false;
	shunt_epset_let_go(shunt_engine_of(asleep->sleep.group, group), asleep->set);
	shunt_cancel_unwinds();
}

static void epwait_leave(void *arg)
{
	struct asleep *asleep = arg;

	atomic_fetch_sub(&asleep->set->sleeping, 1);
	shunt_sleep_rise(&asleep->sleep,
			 asleep->heard &&
				 shunt_companion_rings(shunt_engine_of(asleep->sleep.group, group),
						       asleep->set));
	cancelled(asleep);
}

/* One real sleep. Events, 0 for none yet, or -errno. */
static int sleep_once(struct shunt_engine *engine, struct shunt_epset *set,
		      struct epoll_event *events, int max, uint64_t deadline, const sigset_t *mask)
{
	struct asleep asleep = { .set = set, .sleep = { .group = &engine->group, .ready = is_ready, .waiter = waiter_of, .arg = &asleep,
							.sleeper = { .kick_fd = set->kick_fd, .set = set } } };
	struct timespec left;
	volatile int n = 0;
	bool sleeps;

	shunt_thread.sleep_fd = set->kick_fd + 1;
	shunt_sleep_fall(&asleep.sleep);
	sleeps = asleep.sleep.sleeper.asleep;	/* no more, once it is kicked: what the kernel has told it by then counts */
	pthread_cleanup_push(epwait_leave, &asleep);
	if (sleeps && !shunt_thread.signalled)
		n = kernel_wait(engine, set, events, max,
				shunt_deadline_left(engine->sys, deadline, &left), mask, &asleep.heard);
	asleep.over = true;
	pthread_cleanup_pop(1);
	if (!sleeps)
		n = look_at_both(engine, set, events, max);
	else if (n >= 0)
		n = look_at_streams(engine, set, events, max, n, asleep.heard, NULL);
	return n;
}

/* --- the kernel's alone --- */

/* Of the set that this thread waits in while handlers of the program may run: it is held, and counts a sleeper. */
static __thread struct shunt_plain_wait plain;

static void plain_begin(const struct shunt_plain_wait *wait)
{
	plain = *wait;
	atomic_fetch_add(&wait->set->plain, 1);
	atomic_fetch_add(&wait->set->sleeping, 1);
}

static void plain_end(struct shunt_epset *set)
{
	plain.set = NULL;
	atomic_fetch_sub(&set->plain, 1);
	atomic_fetch_sub(&set->sleeping, 1);
}

struct shunt_plain_wait shunt_epwait_interrupt(void)
{
	struct shunt_plain_wait wait = plain;

	if (!wait.set)
		return wait;
	shunt_signal_defer_enter();
	plain_end(wait.set);
	shunt_epset_let_go(wait.engine, wait.set);
	shunt_signal_defer_leave();
	return wait;
}

void shunt_epwait_resume(const struct shunt_plain_wait *wait)
{
	struct shunt_epset *set = wait->set;

	if (!set)
		return;
	shunt_signal_defer_enter();
	if (shunt_epset_hold(wait->engine, set, wait->fd)) {
		plain_begin(wait);
		shunt_lock_take(&wait->engine->group.lock);
		if (!shunt_epset_is_plain(set))	/* since the handler began: the wait may not have */
			shunt_companion_kick(wait->engine, set);
		shunt_lock_leave(&wait->engine->group.lock);
	}
	shunt_signal_defer_leave();
}

static void plain_cancelled(void *arg)
{
	(void)arg;
	shunt_signal_defer_enter();
	shunt_epwait_interrupt();
	shunt_cancel_unwinds();
}

/*
 * The set has no stream on a link now; one that comes to a link during the wait must wake us. Either it sees us sleep, or
 * we see the companion, or the stream counted: no lock is needed. Other threads leave that kick in place until we are up.
 * They may go with an event of the stream's, and then nobody polls for the next.
 *
 * No descriptor of ours would end the wait for a signal that has come just before it. So handlers run here as they
 * come, and find nothing held: the set is let go of first, and held again when they return. *held: it is.
 */
static int wait_plain(struct shunt_engine *engine, struct shunt_epset *set, struct epoll_event *events, int max,
		      const struct timespec *left, const sigset_t *mask, bool *held)
{
	uint32_t begun = atomic_fetch_add(&set->begun, 1) + 1;
	int fd = set->fd;
	volatile int n = 0;
	bool heard = false;

	plain_begin(&(struct shunt_plain_wait) { engine, set, fd });
	shunt_companion_rest(engine, set);
	pthread_cleanup_push(plain_cancelled, NULL);
	if (shunt_epset_is_plain(set)) {
		shunt_signal_defer_leave();
		n = kernel_call(engine->sys, fd, events, max, left, mask);
		shunt_signal_defer_enter();
	}
	pthread_cleanup_pop(0);
	*held = plain.set;
	if (!*held)	/* a handler has closed it */
		return n;
	plain_end(set);
	if (n >= 0)
		n = kernel_said(set, begun, events, max, n, &heard);
	/* A stream may have left the kernel's part just before that was looked at, and be in neither then. */
	if (n >= 0 && (heard || (!n && set->companion >= 0)))
		n = look_at_streams(engine, set, events, max, n, heard, NULL);
	return n;
}

static void leave_spin(void *arg)
{
	cancelled(arg);
}

static void look_cancelled(struct shunt_engine *engine, struct shunt_epset *set)
{
	struct asleep asleep = { .set = set, .sleep.group = &engine->group };

	pthread_cleanup_push(leave_spin, &asleep);
	pthread_testcancel();
	pthread_cleanup_pop(0);
}

/*
 * One turn of a wait. Events, 0 for none yet, or -errno. `whole`: nothing of the time has gone by yet, and this is all of it.
 * *held: the set still is.
 */
static int wait_once(struct shunt_engine *engine, struct shunt_epset *set, struct epoll_event *events, int max,
		     const struct timespec *whole, uint64_t deadline, const sigset_t *mask, bool *held)
{
	struct timespec left;
	bool stay = false;
	int n = 0;

	if (shunt_epset_is_plain(set))
		return wait_plain(engine, set, events, max,
				  whole ? whole : shunt_deadline_left(engine->sys, deadline, &left), mask, held);
	/* With a signal mask only the kernel can wait: it changes it and looks in one step. */
	if (!mask)
		n = epwait_spin(engine, set, events, max, deadline, &stay);
	if (shunt_thread.signalled)
		return n ? n : -EINTR;
	if (stay)
		look_cancelled(engine, set);
	if (n || stay)
		return n;
	return sleep_once(engine, set, events, max, deadline, mask);
}

/* The wait itself, which lets go of the set; *closed: it has lost its number, and had nothing to tell. */
static int wait_held(struct shunt_engine *engine, struct shunt_epset *set, struct epoll_event *events, int max,
		     const struct timespec *timeout, uint64_t deadline, const sigset_t *mask, bool *closed)
{
	bool held = true;
	int n = 0;

	*closed = false;
	do {
		n = shunt_thread.signalled ? -EINTR :
					     wait_once(engine, set, events, max, timeout, deadline, mask, &held);
		timeout = NULL;
		if (!held)
			return n;
		*closed = !n && atomic_load(&set->closed);
	} while (!n && !*closed && (deadline == SHUNT_NEVER || shunt_now(engine) < deadline));
	shunt_epset_let_go(engine, set);
	return n;
}

static bool never(void *arg)
{
	(void)arg;
	return false;
}

/* No more events can come, but a waiter goes on until its timeout. */
static int wait_closed(struct shunt_engine *engine, uint64_t deadline, const sigset_t *mask)
{
	struct pollfd fds[SHUNT_SLEEP_FDS];
	int n = 0;

	while (!n && !shunt_thread.signalled && (deadline == SHUNT_NEVER || shunt_now(engine) < deadline)) {
		struct shunt_sleep sleep = { .group = &engine->group, .sleeper.apart = true, .ready = never };

		n = shunt_sleep(&sleep, fds, 0, deadline, mask);
	}
	return shunt_thread.signalled ? -EINTR : n;
}

int shunt_epset_wait(struct shunt_engine *engine, int epfd, struct epoll_event *events, int max,
		     const struct timespec *timeout, const sigset_t *mask)
{
	struct shunt_epset *set = (struct shunt_epset *)shunt_file(engine, epfd);
	bool now = timeout && !timeout->tv_sec && !timeout->tv_nsec, closed;
	uint64_t deadline = 0;
	int n;

	if (!set || set->file.kind != SHUNT_FILE_EPOLL)
		return -EBADF;
	shunt_thread_begin();
	if (__builtin_expect(set->inherited, 0))
		shunt_epset_ask(engine, set);
	if (!shunt_epset_is_plain(set)) {
		n = look_first(engine, set, events, max);
		if (n || (now && !shunt_thread.sleeps_next))
			return n;
	}
	if (__builtin_expect(engine->group.waiters.begun && !set->unnumbered && set->companion >= 0,
			     0) &&
	    (set->waiter ? set->waiter_of != engine->group.waiters.generation + 1 :
			   shunt_waiter_is_free(&engine->group)))
		shunt_epset_number(engine, set);
	if (!now)
		deadline = shunt_deadline_in(engine->sys, timeout);
	if (!shunt_epset_hold(engine, set, epfd))
		return -EBADF;
	if (now && !mask && !shunt_epset_is_plain(set)) {
		n = linger(engine, set, events, max);
		shunt_epset_let_go(engine, set);
		return n;
	}
	n = wait_held(engine, set, events, max, timeout, deadline, mask, &closed);
	if (__builtin_expect(n > 0 && shunt_thread.vain_at, 0))
		shunt_linger_slept(&engine->group);
	return closed ? wait_closed(engine, deadline, mask) : n;
}
