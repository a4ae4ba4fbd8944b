/* SPDX-License-Identifier: MIT */
/* dup() and its like: a second number for a stream or a set. */
#include <fcntl.h>
#include "preload/dup.h"
#include "preload/rights.h"

/* A child of vfork() makes it for the program that it will become. */
void shunt_dup_stream(int fd)
{
	if (shunt_process_foreign())
		shunt_rights_retire(fd, SHUNT_CAUSE_INHERITED);
}

int shunt_dup_made(int fd, struct shunt_file *file, int made)
{
	int saved = errno;

	if (made < 0 || (likely(!file) && likely(!shunt_lookup(made))) || shunt_process_foreign())
		return made;
	shunt_signal_defer_enter();
	shunt_process_fresh(made);
	if (file && file->kind != SHUNT_FILE_PRIVATE) {
		shunt_file_duplicated(shunt_process.engine, fd, made);
		if (shunt_process_is_stdio(made))
			shunt_rights_retire(made, SHUNT_CAUSE_STANDARD);
	}
	shunt_signal_defer_leave();
	errno = saved;
	return made;
}

int dup(int fd)
{
	struct shunt_file *file = shunt_lookup(fd);

	return shunt_dup_made(fd, file, shunt_lowest(0, real(dup)(shunt_dup_from(fd, file))));
}

/*
 * `other` is about to be replaced. If the call will succeed, its entry in the table ends first.
 * False: EBADF, because one of the two is our own. Ours are numbered high (core/fd/own_fds.c),
 * where a program that puts descriptors at chosen numbers does not come.
 */
static SHUNT_INLINE bool make_room(int fd, int other)
{
	struct shunt_file *file = shunt_lookup(other);

	shunt_numbers_quiet();
	if (unlikely(file && file->kind == SHUNT_FILE_CLOSED))
		return fd != other;
	if (likely(!file) || fd == other)
		return !shunt_is_own_fd(file);
	if (file->kind == SHUNT_FILE_PRIVATE)
		return !shunt_is_own_fd(file) || shunt_process_foreign();
	if (real(fcntl)(fd, F_GETFD) >= 0 && !shunt_process_foreign())
		shunt_process_drop(other);
	return true;
}

int dup2(int fd, int other)
{
	struct shunt_file *file = shunt_lookup(fd);

	fd = shunt_dup_from(fd, file);
	if (!make_room(fd, other))
		return shunt_fail(EBADF);
	if (fd == other)
		return real(dup2)(fd, other);
	return shunt_dup_made(fd, file, real(dup2)(fd, other));
}
SHUNT_SAME(__dup2, dup2);

int dup3(int fd, int other, int flags)
{
	struct shunt_file *file = shunt_lookup(fd);

	if (fd == other || flags & ~O_CLOEXEC)
		return real(dup3)(fd, other, flags);
	fd = shunt_dup_from(fd, file);
	if (!make_room(fd, other))
		return shunt_fail(EBADF);
	return shunt_dup_made(fd, file, real(dup3)(fd, other, flags));
}
