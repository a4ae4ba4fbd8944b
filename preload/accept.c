/* SPDX-License-Identifier: MIT */
/* accept() and accept4(). */
#include "preload/process.h"

static int accepted(struct shunt_file *file, int listener, int fd, bool nonblocking)
{
	int saved = errno;

	if (fd < 0 || shunt_process_foreign())
		return fd;
	shunt_signal_defer_enter();
	shunt_process_fresh(fd);
	if (shunt_as_stream(file) && !shunt_process_is_stdio(fd) &&
	    !shunt_young_accepted(shunt_process.engine, shunt_as_stream(file), fd, nonblocking))
		shunt_file_accepted(shunt_process.engine, listener, fd, nonblocking);
	shunt_signal_defer_leave();
	errno = saved;
	return fd;
}

/*
 * A listener that this program has not made: inherited by exec, from systemd, or passed by another process. From now
 * on it is known.
 */
static int from_unknown(int listener, int fd, bool nonblocking)
{
	int saved = errno;

	if (fd < 0 || shunt_process_is_stdio(listener) || shunt_process_foreign() ||
	    !shunt_process_is_tcp(listener) || !shunt_process_engine())
		goto leave;
	shunt_inside_do(shunt_file_adopted(shunt_process.engine, listener));
	accepted(shunt_lookup(listener), listener, fd, nonblocking);
leave:
	errno = saved;
	return fd;
}

int accept(int fd, struct sockaddr *address, socklen_t *length)
{
	struct shunt_file *file = shunt_lookup(fd);

	if (unlikely(!file)) {
		shunt_numbers_quiet();
		return from_unknown(fd, real(accept)(fd, address, length), false);
	}
	shunt_begin_anew();
	shunt_inside_do(shunt_file_accepting(shunt_process.engine, file));
	shunt_numbers_quiet();	/* the kernel takes the number before it waits */
	return accepted(file, fd, real(accept)(shunt_is_own_fd(file) ? -1 : fd, address, length), false);
}

int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
	struct shunt_file *file = shunt_lookup(fd);

	if (unlikely(!file)) {
		shunt_numbers_quiet();
		return from_unknown(fd, real(accept4)(fd, address, length, flags), flags & SOCK_NONBLOCK);
	}
	shunt_begin_anew();
	shunt_inside_do(shunt_file_accepting(shunt_process.engine, file));
	shunt_numbers_quiet();	/* the kernel takes the number before it waits */
	return accepted(file, fd, real(accept4)(shunt_is_own_fd(file) ? -1 : fd, address, length, flags),
			flags & SOCK_NONBLOCK);
}
