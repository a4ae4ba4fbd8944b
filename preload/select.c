/* SPDX-License-Identifier: MIT */
/* select() and pselect(). */
#include "core/base/kernel_clock.h"
#include "preload/process.h"
#include "preload/timeout.h"
#include "preload/touch.h"

#define WORD_BITS (8 * (int)sizeof(unsigned long))

/*
 * The sets are looked at as words, not as fd_set: a program may have more descriptors than
 * FD_SETSIZE and give arrays of its own.
 */
static unsigned long word(const fd_set *set, int first, int nfds)
{
	unsigned long bits;

	if (!set)
		return 0;
	bits = ((const unsigned long *)set)[first / WORD_BITS];
	return nfds - first < WORD_BITS ? bits & ((1UL << (nfds - first)) - 1) : bits;
}

static bool word_concerns(unsigned long bits, int first)
{
	struct shunt_file *file;
	bool found = false;

	for (; bits; bits &= bits - 1) {
		file = shunt_lookup(first +
				    __builtin_ctzl(bits));	/* a young connection becomes a stream */
		found |= file && shunt_wait_concerns(file);
	}
	return found;
}

/* So many bytes of a set are looked at. */
static size_t set_room(int nfds)
{
	size_t words = ((size_t)(nfds > 0 ? nfds : 0) + WORD_BITS - 1) / WORD_BITS;

	return words * sizeof(unsigned long);
}

static bool bad(const fd_set *set, size_t bytes)
{
	return set && bytes && shunt_unreadable(set, bytes);
}

/* Its answer cannot be written. Where that concerns us it is told before the wait. */
static bool fixed(int nfds, fd_set *readable, fd_set *writable, fd_set *except)
{
	size_t bytes = set_room(nfds);

	return (readable && shunt_unwritable(readable, bytes)) ||
	       (writable && shunt_unwritable(writable, bytes)) ||
	       (except && shunt_unwritable(except, bytes));
}

/* Arguments that the kernel refuses are left to it. */
static bool select_concerns(int nfds, const fd_set *readable, const fd_set *writable,
			    const fd_set *except)
{
	size_t bytes;
	bool found = false;
	int first;

	if (likely(!shunt_process.engine))
		return false;
	shunt_begin_anew();
	if ((size_t)nfds > shunt_process.files->limit)
		nfds = nfds < 0 ? 0 : (int)shunt_process.files->limit;
	bytes = set_room(nfds);
	if (bad(readable, bytes) || bad(writable, bytes) || bad(except, bytes))
		return false;
	for (first = 0; first < nfds; first += WORD_BITS)
		found |= word_concerns(word(readable, first, nfds) | word(writable, first, nfds) |
					       word(except, first, nfds),
				       first);
	return found;
}

/* Linux says how much of the timeout was left, whatever the outcome; never all of it. */
static void count_down(const struct timespec *end, struct timeval *timeout)
{
	struct timespec now;
	long long seconds, left;

	shunt_kernel_clock(CLOCK_MONOTONIC, &now);
	seconds = end->tv_sec - now.tv_sec;
	left = end->tv_nsec - now.tv_nsec;
	while (left < 0) {
		left += 1000000000;
		seconds--;
	}
	*timeout = (struct timeval) { 0 };
	if (seconds >= 0)
		*timeout = (struct timeval) { seconds + left / 1000000000, left % 1000000000 / 1000 };
}

static int select_until(int nfds, fd_set *readable, fd_set *writable, fd_set *except,
			struct timeval *timeout)
{
	struct timespec span = { timeout->tv_sec + timeout->tv_usec / 1000000,
				 timeout->tv_usec % 1000000 * 1000 };
	struct timespec end;
	int ready;

	if (timeout->tv_sec < 0 || timeout->tv_usec < 0)
		return shunt_fail(EINVAL);
	shunt_kernel_clock(CLOCK_MONOTONIC, &end);
	end.tv_sec += span.tv_sec;
	end.tv_nsec += span.tv_nsec;
	shunt_signal_defer_enter();
	ready = (int)shunt_result(shunt_wait_select(shunt_process.engine, nfds, readable, writable,
						    except, &span, NULL));
	if (span.tv_sec || span.tv_nsec)
		count_down(&end, timeout);
	shunt_signal_defer_leave();
	return ready;
}

int select(int nfds, fd_set *readable, fd_set *writable, fd_set *except, struct timeval *timeout)
{
	if (!select_concerns(nfds, readable, writable, except))
		return real(select)(nfds, readable, writable, except, timeout);
	shunt_cancellation_point();
	if (fixed(nfds, readable, writable, except))
		return shunt_fail(EFAULT);
	if (timeout)
		return select_until(nfds, readable, writable, except, timeout);
	return (int)shunt_result(shunt_inside(shunt_wait_select(shunt_process.engine, nfds, readable, writable,
								except, NULL, NULL)));
}
SHUNT_SAME(__select, select);

int pselect(int nfds, fd_set *readable, fd_set *writable, fd_set *except,
	    const struct timespec *timeout, const sigset_t *mask)
{
	if (!select_concerns(nfds, readable, writable, except))
		return real(pselect)(nfds, readable, writable, except, timeout, mask);
	shunt_cancellation_point();
	if (!shunt_timeout_valid(timeout))
		return shunt_fail(EINVAL);
	if (fixed(nfds, readable, writable, except) ||
	    (mask && shunt_unreadable(mask, SHUNT_SIGNALS)))
		return shunt_fail(EFAULT);
	return (int)shunt_result(shunt_inside_masked(shunt_wait_select(shunt_process.engine, nfds, readable, writable,
								       except, timeout, mask), mask));
}
