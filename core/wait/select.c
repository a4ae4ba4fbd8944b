/* SPDX-License-Identifier: MIT */
/*
 * select(): a poll() of what its sets name.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/trace/slow_step.h"
#include "core/wait/poll.h"

#define SELECT_IN (POLLIN | POLLRDNORM | POLLHUP | POLLERR)
#define SELECT_OUT (POLLOUT | POLLWRNORM | POLLERR)

/* fd_set beyond FD_SETSIZE (PF-47): bits in longs, as the kernel sees them. */
static bool bit(const fd_set *set, int fd)
{
	const unsigned long *words = (const unsigned long *)set;

	return set && words[fd / 64] >> (fd % 64) & 1;
}

static void set_bit(fd_set *set, int fd)
{
	((unsigned long *)set)[fd / 64] |= 1ul << (fd % 64);
}

static void clear(fd_set *set, int nfds)
{
	if (set)
		memset(set, 0, (nfds + 63) / 64 * 8);
}

static short select_events(int fd, const fd_set *readable, const fd_set *writable,
			   const fd_set *except)
{
	return (bit(readable, fd) ? POLLIN : 0) | (bit(writable, fd) ? POLLOUT : 0) |
	       (bit(except, fd) ? POLLPRI : 0);
}

static int select_result(struct pollfd *fds, nfds_t count, int nfds, fd_set *readable,
			 fd_set *writable, fd_set *except)
{
	int ready = 0;

	for (nfds_t i = 0; i < count; i++)
		if (fds[i].revents & POLLNVAL)
			return -EBADF;
	clear(readable, nfds);
	clear(writable, nfds);
	clear(except, nfds);
	for (nfds_t i = 0; i < count; i++) {
		short events = fds[i].events, revents = fds[i].revents;

		if (events & POLLIN && revents & SELECT_IN)
			ready++, set_bit(readable, fds[i].fd);
		if (events & POLLOUT && revents & SELECT_OUT)
			ready++, set_bit(writable, fds[i].fd);
		if (events & POLLPRI && revents & POLLPRI)
			ready++, set_bit(except, fds[i].fd);
	}
	return ready;
}

int shunt_wait_select(struct shunt_engine *engine, int nfds, fd_set *readable, fd_set *writable,
		      fd_set *except, const struct timespec *timeout, const sigset_t *mask)
{
	struct pollfd small[SHUNT_POLL_SMALL], *fds = small;
	nfds_t count = 0;
	int result;

	for (int fd = 0; fd < nfds; fd++)
		count += select_events(fd, readable, writable, except) != 0;
	if (count > SHUNT_POLL_SMALL)
		fds = malloc(count * sizeof(*fds));
	if (!fds)
		return -ENOMEM;
	count = 0;
	for (int fd = 0; fd < nfds; fd++) {
		short events = select_events(fd, readable, writable, except);

		if (events)
			fds[count++] = (struct pollfd) { .fd = fd, .events = events };
	}
	result = shunt_poll_all(engine, fds, count, fds == small ? NULL : fds, timeout, mask);
	if (result >= 0)
		result = select_result(fds, count, nfds, readable, writable, except);
	if (fds != small)
		free(fds);
	return result;
}
