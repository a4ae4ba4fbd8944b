/* SPDX-License-Identifier: MIT */
#include <linux/futex.h>
#include <sys/syscall.h>
#include "preload/process.h"
#include "preload/touch.h"

#define PAGE ((uintptr_t)4096)	/* the smallest; larger ones are asked about more often */
#define ALIGNED ((uintptr_t)8)

#define SPANS 16	/* a server waits with an array of the heap, and accepts with addresses of the stack or of a pool */

/*
 * Spans that were good last, by their first pages: the address of that, and how many more there are. Each is one word, for a
 * signal handler may store its own between two uses.
 */
static __thread uintptr_t readable[SPANS] __attribute__((tls_model("initial-exec")));
static __thread uintptr_t writable[SPANS] __attribute__((tls_model("initial-exec")));

/* The kernel copies the mask before it refuses what shall be done with it. */
static bool read_word(uintptr_t at)
{
	real(syscall)(SYS_rt_sigprocmask, -1, at & -ALIGNED, NULL, SHUNT_SIGNALS);
	return errno != EFAULT;
}

/* The kernel ORs 0 to a word, atomically, and wakes the waiters at `nobody`. */
static bool write_word(uintptr_t at)
{
	unsigned int nobody = 0;
	int nothing = FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_LT, 0);

	return real(syscall)(SYS_futex, &nobody, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, NULL,
			     at & -ALIGNED, nothing) >= 0 || errno != EFAULT;
}

static bool page_ask(uintptr_t *known, uintptr_t first, uintptr_t last, bool (*touch)(uintptr_t at))
{
	uintptr_t more = last / PAGE - first / PAGE;
	int saved = errno;
	bool good = touch(first) && (!more || touch(last));

	errno = saved;
	if (good && more < PAGE)
		*known = (first & -PAGE) | more;
	return good;
}

static inline bool touch_ends(uintptr_t *spans, const void *from, size_t bytes,
			      bool (*touch)(uintptr_t at))
{
	uintptr_t first = (uintptr_t)from, last = first + bytes - 1;
	uintptr_t *known = &spans[first / PAGE % SPANS], span = *known;

	if (shunt_bad_pointer(from) || last < first)
		return false;
	if (likely(first >= (span & -PAGE) && last / PAGE <= span / PAGE + span % PAGE))
		return true;
	return page_ask(known, first, last, touch);
}

bool shunt_touch_read(const void *from, size_t bytes)
{
	return touch_ends(readable, from, bytes, read_word);
}

bool shunt_touch_write(void *from, size_t bytes)
{
	return touch_ends(writable, from, bytes, write_word);
}
