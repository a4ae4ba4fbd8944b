/* SPDX-License-Identifier: MIT */
/*
 * One sleep of a thread that waits for streams, descriptors of the kernel's, or both. It falls asleep only after a last poll
 * that has found nothing of what it waits for, so nothing is slept over.
 */
#ifndef SHUNT_CORE_STREAM_SLEEP_H
#define SHUNT_CORE_STREAM_SLEEP_H

#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include "core/poll/sleeper.h"

#define SHUNT_SLEEP_FDS 3	/* beside the caller's: the waker, what the leader sleeps on, and its waiter's */

struct shunt_sleep {
	struct shunt_group *group;
	struct shunt_sleeper sleeper;
	struct shunt_sleep_on *on;	/* the streams; `stream` may be NULL */
	size_t count;			/* of them */
	bool (*ready)(void *arg);	/* it need not sleep; group.lock held, after a poll */
	/*
	 * The number of its set, or 0. *apart is true where all that the set waits for names it. group.lock held, before the
	 * poll. NULL where the sleeper has no set.
	 */
	uint32_t (*waiter)(void *arg, bool *apart);
	void (*cancelled)(void *arg);	/* the thread is, in its sleep, which is undone */
	void *arg;			/* of both */
};

/*
 * Falls asleep, unless it is ready: sleeper.asleep says so until somebody wakes it. The sleep itself is the caller's, who
 * has set kick_fd, and begun with shunt_thread.sleep_fd. No lock held.
 */
void shunt_sleep_fall(struct shunt_sleep *sleep);
/*
 * It is over. `rung`: the leader may have been woken by an event. That is taken, and what has come with it, so that nothing
 * rings for the next leader. No lock held.
 */
void shunt_sleep_rise(struct shunt_sleep *sleep, bool rung);
/*
 * All of it, on a waker: until one of the descriptors is ready, somebody tells of a stream, or a signal comes. `fds` has
 * room for SHUNT_SLEEP_FDS behind `fds_count`. How many of those are ready, by what ppoll() has left in them; 0 also where
 * there was no sleep; or its -errno. No lock held.
 */
int shunt_sleep(struct shunt_sleep *sleep, struct pollfd *fds, nfds_t fds_count, uint64_t deadline, const sigset_t *mask);

/*
 * Something changed on the stream (poll bits in `what`): epoll sets list it, its sleepers wake.
 * group.lock held.
 */
void shunt_sleep_notify(struct shunt_stream *stream, uint32_t what);
/* The same from outside the lock. */
void shunt_sleep_tell(struct shunt_stream *stream, uint32_t what);

#endif
