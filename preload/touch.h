/* SPDX-License-Identifier: MIT */
/*
 * May a pointer of the program be used? For calls that need not be as quick as send() and recv(). A
 * pointer into the caller's stack counts as good, as do the pages that this thread has asked about
 * last. About others the kernel is asked, by a system call that changes nothing. A wrong "yes" leads
 * to SIGSEGV where the kernel says EFAULT, and to nothing else.
 */
#ifndef SHUNT_PRELOAD_TOUCH_H
#define SHUNT_PRELOAD_TOUCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHUNT_TOUCH_NEAR 65536
#define SHUNT_SIGNALS ((size_t)8)	/* bytes of a signal mask that the kernel looks at */

/* Asks about the first byte and the last. Async-signal-safe; errno is kept. */
bool shunt_touch_read(const void *from, size_t bytes);
bool shunt_touch_write(void *from, size_t bytes);

static inline bool shunt_touch_near(const void *from, size_t bytes)
{
	uintptr_t above = (uintptr_t)from - (uintptr_t)__builtin_frame_address(0);

	return above < SHUNT_TOUCH_NEAR && bytes < SHUNT_TOUCH_NEAR;
}

/* There is at least one byte. */
static inline bool shunt_unreadable(const void *from, size_t bytes)
{
	return !shunt_touch_near(from, bytes) && !shunt_touch_read(from, bytes);
}

static inline bool shunt_unwritable(void *from, size_t bytes)
{
	return !shunt_touch_near(from, bytes) && !shunt_touch_write(from, bytes);
}

#endif
