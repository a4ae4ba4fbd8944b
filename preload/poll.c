/* SPDX-License-Identifier: MIT */
/* poll() and ppoll(). */
#include "preload/process.h"
#include "preload/timeout.h"
#include "preload/touch.h"
#include "preload/young.h"
#include <sys/resource.h>

/* glibc declares that poll() only writes the array, which misleads this warning. */
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#define FEW 256		/* descriptors that any process may have; the limit may change at any time */

static bool too_many(nfds_t count)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_NOFILE, &limit) && count > limit.rlim_cur;
}

/*
 * Is there anything that the kernel cannot see alone? Arguments that the kernel refuses are left to it. A young
 * connection becomes a stream: a thread that waits for it must see it go over to a link.
 */
static bool poll_concerns(const struct pollfd *fds, nfds_t count)
{
	struct shunt_file *file;
	bool found = false;
	nfds_t i;

	if (likely(!shunt_process.engine) || !count)
		return false;
	if (unlikely(count > FEW) && too_many(count))
		return false;
	if (shunt_unreadable(fds, count * sizeof(*fds)))
		return false;
	shunt_begin_anew();
	for (i = 0; i < count; i++) {
		if (found && likely(!shunt_young_at(fds[i].fd)))
			continue;
		file = shunt_lookup(fds[i].fd);
		found |= file && shunt_wait_concerns(file);
	}
	return found;
}

static int wait_for(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
		    const sigset_t *mask)
{
	shunt_cancellation_point();
	if (!shunt_timeout_valid(timeout))
		return shunt_fail(EINVAL);
	if (shunt_unwritable(fds, count * sizeof(*fds)) ||
	    (mask && shunt_unreadable(mask, SHUNT_SIGNALS)))
		return shunt_fail(EFAULT);
	return (int)shunt_result(shunt_inside_masked(shunt_wait_poll(shunt_process.engine, fds, count, timeout, mask),
						      mask));
}

int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	struct timespec timeout;

	if (poll_concerns(fds, count))
		return wait_for(fds, count, shunt_timeout_ms(timeout_ms, &timeout), NULL);
	return real(poll)(fds, count, timeout_ms);
}
SHUNT_SAME(__poll, poll);

int __poll_chk(struct pollfd *fds, nfds_t count, int timeout_ms, size_t room)
{
	struct timespec timeout;

	if (count <= room / sizeof(*fds) && poll_concerns(fds, count))
		return wait_for(fds, count, shunt_timeout_ms(timeout_ms, &timeout), NULL);
	return real(__poll_chk)(fds, count, timeout_ms, room);
}

int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
	if (poll_concerns(fds, count))
		return wait_for(fds, count, timeout, mask);
	return real(ppoll)(fds, count, timeout, mask);
}

int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
		const sigset_t *mask, size_t room)
{
	if (count <= room / sizeof(*fds) && poll_concerns(fds, count))
		return wait_for(fds, count, timeout, mask);
	return real(__ppoll_chk)(fds, count, timeout, mask, room);
}
