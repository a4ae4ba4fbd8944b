/* SPDX-License-Identifier: MIT */
/* The calls of epoll. */
#include <limits.h>
#include "preload/rights.h"
#include "preload/timeout.h"
#include "preload/touch.h"
#include "preload/young.h"

/* glibc declares that a wait only writes the array, which misleads this warning. */
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

/*
 * A set may be made before the first socket. It must know of streams from their first registration
 * on, so it makes the engine too.
 */
static int made(int epfd)
{
	if (epfd >= 0 && shunt_process_engine() && !shunt_process_foreign()) {
		int saved = errno;

		shunt_process_fresh(epfd);
		shunt_inside_do(shunt_file_epoll(shunt_process.engine, epfd));
		errno = saved;
	}
	return epfd;
}

int epoll_create(int size)
{
	return made(shunt_lowest(0, real(epoll_create)(size)));
}

int epoll_create1(int flags)
{
	return made(shunt_lowest(0, real(epoll_create1)(flags)));
}

static inline bool is_set(const struct shunt_file *file)
{
	return file && file->kind == SHUNT_FILE_EPOLL;
}

int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	struct shunt_file *set = shunt_lookup(epfd);
	struct shunt_young *young = shunt_young_at(fd);
	struct shunt_file *file;
	int result;

	if (unlikely(young) && is_set(set) &&
	    (op == EPOLL_CTL_DEL || !shunt_unreadable(event, sizeof(*event))) &&
	    shunt_inside(shunt_young_ctl(shunt_process.engine, young, set, epfd, op, event, &result)))
		return (int)shunt_result(result);
	if (shunt_is_own_fd(set))
		epfd = -1;
	file = shunt_lookup(fd);
	if (shunt_is_own_fd(file))
		fd = -1;
	if (is_set(set) && (op == EPOLL_CTL_DEL || !shunt_unreadable(event, sizeof(*event)))) {
		if (file && op == EPOLL_CTL_ADD)
			shunt_inside_do(shunt_file_accepting(shunt_process.engine, file));
		return (int)shunt_result(shunt_inside(shunt_epset_ctl(shunt_process.engine, epfd, op, fd, event)));
	}
	result = real(epoll_ctl)(epfd, op, fd, event);
	/* A set that we never saw being made cannot see what is not in the kernel. */
	if (!result && !set && op != EPOLL_CTL_DEL)
		shunt_rights_retire(fd, SHUNT_CAUSE_UNKNOWN_SET);
	return result;
}

/* The set, if its wait is the engine's. Arguments that the kernel refuses go to the kernel. */
static SHUNT_INLINE bool epoll_serves(int *epfd, const struct epoll_event *events, int max)
{
	struct shunt_file *set = shunt_lookup(*epfd);

	if (shunt_is_own_fd(set))
		*epfd = -1;
	return is_set(set) && max > 0 && max <= INT_MAX / (int)sizeof(*events) &&
	       !shunt_bad_span(events, (size_t)max * sizeof(*events));
}

/* Nowhere to write to: found out only when there is an event. */
static int wait_for_fault(int epfd, const struct timespec *timeout, const sigset_t *mask)
{
	struct epoll_event event;
	ssize_t ready = shunt_result(shunt_inside_masked(shunt_epset_wait(shunt_process.engine, epfd, &event, 1, timeout,
									  mask), mask));

	return ready > 0 ? shunt_fail(EFAULT) : (int)ready;
}

static inline int wait_for(int epfd, struct epoll_event *events, int max,
			   const struct timespec *timeout, const sigset_t *mask)
{
	shunt_cancellation_point();
	shunt_begin_anew();
	if (unlikely(mask && shunt_unreadable(mask, SHUNT_SIGNALS)))
		return shunt_fail(EFAULT);
	if (unlikely(shunt_unwritable(events, sizeof(*events))))
		return wait_for_fault(epfd, timeout, mask);
	return (int)shunt_result(shunt_inside_masked(shunt_epset_wait(shunt_process.engine, epfd, events, max, timeout,
								      mask), mask));
}

int epoll_wait(int epfd, struct epoll_event *events, int max, int timeout_ms)
{
	struct timespec timeout;

	if (epoll_serves(&epfd, events, max))
		return wait_for(epfd, events, max, shunt_timeout_ms(timeout_ms, &timeout), NULL);
	return real(epoll_wait)(epfd, events, max, timeout_ms);
}

int epoll_pwait(int epfd, struct epoll_event *events, int max, int timeout_ms, const sigset_t *mask)
{
	struct timespec timeout;

	if (epoll_serves(&epfd, events, max))
		return wait_for(epfd, events, max, shunt_timeout_ms(timeout_ms, &timeout), mask);
	return real(epoll_pwait)(epfd, events, max, timeout_ms, mask);
}

int epoll_pwait2(int epfd, struct epoll_event *events, int max, const struct timespec *timeout,
		 const sigset_t *mask)
{
	if (!epoll_serves(&epfd, events, max))
		return real(epoll_pwait2)(epfd, events, max, timeout, mask);
	if (timeout && shunt_unreadable(timeout, sizeof(*timeout)))
		return shunt_fail(EFAULT);
	if (!shunt_timeout_valid(timeout))
		return shunt_fail(EINVAL);
	return wait_for(epfd, events, max, timeout, mask);
}
