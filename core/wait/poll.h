/* SPDX-License-Identifier: MIT */
/*
 * poll() over any mix of descriptors, for the calls that are a kind of it.
 *
 * - poll and select: the program's set, with the streams' entries cut down to what is on TCP, plus waker and channel.
 */
#ifndef SHUNT_CORE_WAIT_POLL_H
#define SHUNT_CORE_WAIT_POLL_H

#include <poll.h>
#include <signal.h>
#include <time.h>

struct shunt_engine;

#define SHUNT_POLL_SMALL 32	/* sets up to this size need no allocation */

/*
 * Waits until one of `fds` is ready, a signal comes, or `timeout` (NULL: none) is over. How many are, or -errno. `made` is
 * freed if the thread is cancelled meanwhile; NULL: nothing is to be.
 */
int shunt_poll_all(struct shunt_engine *engine, struct pollfd *fds, nfds_t count, struct pollfd *made,
		   const struct timespec *timeout, const sigset_t *mask);

#endif
