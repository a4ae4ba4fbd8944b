/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "core/base/lock.h"

#define POLLS 100	/* a holder that is running leaves within this many looks */

static void futex(struct shunt_lock *lock, int operation, uint32_t value)
{
	int saved = errno;

	syscall(SYS_futex, &lock->word, operation | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
	errno = saved;
}

void shunt_lock_wait(struct shunt_lock *lock)
{
	for (int i = 0; i < POLLS; i++) {
		/* Not by attempts: each takes the line from the holder. */
		if (!atomic_load_explicit(&lock->word, memory_order_relaxed) &&
		    shunt_lock_grab(lock))
			return;
		shunt_pause();
	}
	while (atomic_exchange(&lock->word, 2) != 0)
		futex(lock, FUTEX_WAIT, 2);
}

void shunt_lock_wake(struct shunt_lock *lock)
{
	futex(lock, FUTEX_WAKE, 1);
}
