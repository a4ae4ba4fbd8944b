/* SPDX-License-Identifier: MIT */
/* Timeouts of the waiting calls. */
#ifndef SHUNT_PRELOAD_TIMEOUT_H
#define SHUNT_PRELOAD_TIMEOUT_H

#include <stdbool.h>
#include <time.h>

/* Milliseconds as poll() takes them: NULL (for ever) if negative. */
static inline struct timespec *shunt_timeout_ms(int ms, struct timespec *timeout)
{
	if (ms < 0)
		return NULL;
	*timeout = (struct timespec) { ms / 1000, ms % 1000 * 1000000 };
	return timeout;
}

/* The kernel's check of a timeout; otherwise EINVAL. */
static inline bool shunt_timeout_valid(const struct timespec *timeout)
{
	return !timeout ||
	       (timeout->tv_sec >= 0 && timeout->tv_nsec >= 0 && timeout->tv_nsec < 1000000000);
}

#endif
