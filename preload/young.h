/* SPDX-License-Identifier: MIT */
/*
 * Calls on a young connection (core/fd/young.h), which has no stream yet. A call that does not look for one here finds a
 * stream with shunt_lookup(), which makes it.
 */
#ifndef SHUNT_PRELOAD_YOUNG_H
#define SHUNT_PRELOAD_YOUNG_H

#include "core/fd/young.h"
#include "preload/process.h"

/* NULL: not young. */
static SHUNT_INLINE struct shunt_young *shunt_young_at(int fd)
{
	struct shunt_file *file = shunt_files_get(
		__atomic_load_n(&shunt_process.files, __ATOMIC_ACQUIRE), fd);

	return unlikely(file && file->kind == SHUNT_FILE_YOUNG) ? (struct shunt_young *)file : NULL;
}

/*
 * The system call, which receives or sends bytes of the connection. False: it was not made, and the connection has to become
 * a stream first. Sets errno.
 */
bool shunt_young_receives(struct shunt_young *young, ssize_t *got, long number, long a, long b,
			  long c, long d);
bool shunt_young_sends(struct shunt_young *young, ssize_t *sent, long number, long a, long b,
		       long c, long d);

/* Flags that leave a call to the record. */
#define SHUNT_YOUNG_FLAGS (MSG_DONTWAIT | MSG_NOSIGNAL)

#endif
