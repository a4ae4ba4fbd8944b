/* SPDX-License-Identifier: MIT */
/* close(), and closing many. Descriptors of our own do not exist for the program: they survive. */
#include <limits.h>
#include <linux/close_range.h>
#include <sys/syscall.h>
#include "preload/young.h"

/* From here on no thread is cancelled, and no handler leaves it by a jump. */
static int close_now(int fd, bool drops)
{
	int result;

	if (drops)
		shunt_process_drop(fd);
	result = (int)real(syscall)(SYS_close, fd);
	if (drops)
		shunt_numbers_closed(shunt_engine_fds(shunt_process.engine), fd);	/* another thread may have found it open after the drop */
	return result;
}

static SHUNT_INLINE int close_known(int fd, struct shunt_file *file)
{
	bool drops = file->kind != SHUNT_FILE_PRIVATE;

	if (shunt_is_own_fd(file))
		return shunt_fail(EBADF);
	if (drops)
		shunt_cancellation_point();
	return shunt_inside(close_now(fd, drops && !shunt_process_foreign()));
}

/* False: another thread has made it a stream, or closed it. */
static bool close_young_now(int fd, struct shunt_young *young, int *result)
{
	bool drops = !shunt_process_foreign();

	if (drops && !shunt_young_closing(shunt_process.engine, young))
		return false;
	*result = (int)real(syscall)(SYS_close, fd);
	if (drops)
		shunt_numbers_closed(shunt_engine_fds(shunt_process.engine), fd);
	return true;
}

static int close_young(int fd, struct shunt_young *young)
{
	int result = -1;

	shunt_cancellation_point();
	return shunt_inside(close_young_now(fd, young, &result)) ? result : close(fd);
}

/* One that the program has opened there since, or none: only while nobody makes one of ours is it certain to be none of those. */
static int close_again(int fd)
{
	int result;

	shunt_cancellation_point();
	shunt_numbers_enter(shunt_engine_fds(shunt_process.engine));	/* no handler runs before that is left */
	result = (int)real(syscall)(SYS_close, fd);
	shunt_numbers_leave(shunt_engine_fds(shunt_process.engine));
	return result;
}

int close(int fd)
{
	struct shunt_file *file = shunt_files_get(shunt_process.files, fd);
	int result;

	if (unlikely(file && file->kind == SHUNT_FILE_YOUNG))
		return close_young(fd, (struct shunt_young *)file);
	if (unlikely(file && shunt_process_gone(fd)))
		return close_again(fd);
	file = shunt_lookup(fd);
	if (unlikely(file))
		return close_known(fd, file);
	shunt_numbers_quiet();
	result = real(close)(fd);
	if (!result)
		shunt_numbers_have_closed(fd);
	return result;
}
SHUNT_SAME(__close, close);

static bool valid(unsigned int first, unsigned int last, int flags)
{
	return first <= last && !(flags & ~(CLOSE_RANGE_UNSHARE | CLOSE_RANGE_CLOEXEC));
}

/*
 * The range in pieces, around our own descriptors. With CLOSE_RANGE_UNSHARE only this thread's table changes, so the
 * streams stay the other threads' and are not dropped. The first piece unshares; the flag means nothing after it.
 */
static int close_around(unsigned int first, unsigned int last, int flags)
{
	struct shunt_files *files = shunt_process.files;
	unsigned int fd;

	/* -1, for no more descriptors, is above the limit. */
	for (fd = (unsigned int)shunt_files_next(files, (int)first);
	     fd <= last && fd < files->limit;
	     fd = (unsigned int)shunt_files_next(files, (int)fd + 1)) {
		struct shunt_file *file = shunt_files_get(files, (int)fd);

		if (!file)	/* another thread has closed it */
			continue;
		if (file->kind != SHUNT_FILE_PRIVATE) {
			if (!(flags & CLOSE_RANGE_UNSHARE))
				shunt_process_drop((int)fd);
			continue;
		}
		if (fd > first && real(close_range)(first, fd - 1, flags))
			return -1;
		first = fd + 1;
	}
	return first <= last ? real(close_range)(first, last, flags) : 0;
}

static int close_all(unsigned int first, unsigned int last, int flags)
{
	int result;

	/* Our own descriptors are close-on-exec already, and a copy of the table may lose them. */
	if (!valid(first, last, flags) || flags & CLOSE_RANGE_CLOEXEC ||
	    first >= shunt_process.files->limit || shunt_process_foreign())
		return real(close_range)(first, last, flags);
	shunt_numbers_enter(shunt_engine_fds(shunt_process.engine));
	result = close_around(first, last, flags);
	shunt_numbers_leave(shunt_engine_fds(shunt_process.engine));
	return result;
}

int close_range(unsigned int first, unsigned int last, int flags)
{
	return close_all(first, last, flags);
}

void closefrom(int first)
{
	int saved = errno;

	if (first < 0)
		first = 0;
	if (!shunt_process.engine || close_all((unsigned int)first, UINT_MAX, 0))
		real(closefrom)(first);
	errno = saved;
}
