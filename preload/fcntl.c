/* SPDX-License-Identifier: MIT */
/* fcntl(): O_NONBLOCK, and copies of a number. */
#include <fcntl.h>
#include "preload/dup.h"
#include "preload/rights.h"
#include "preload/young.h"

typedef int fcntl_call(int fd, int command, ...);

/* O_ASYNC asks for signals, which only the kernel can send. */
static int set_flags(fcntl_call *call, int fd, struct shunt_stream *stream, void *argument)
{
	int flags = (int)(long)argument, result;

	if (flags & O_ASYNC)
		shunt_rights_retire(fd, SHUNT_CAUSE_ASYNC);
	result = call(fd, F_SETFL, argument);
	if (!result)
		shunt_stream_set_nonblocking(stream, flags & O_NONBLOCK);
	return result;
}

static int set_young_flags(fcntl_call *call, struct shunt_young *young, void *argument)
{
	int result = call(young->fd, F_SETFL, argument), saved = errno;
	struct shunt_stream *stream;

	if (result)
		return result;
	if (!shunt_young_set_nonblocking(shunt_process.engine, young,
					 (long)argument & O_NONBLOCK)) {
		stream = shunt_as_stream(shunt_lookup(young->fd));
		if (stream)
			shunt_stream_set_nonblocking(stream, (long)argument & O_NONBLOCK);
	}
	errno = saved;
	return 0;
}

static SHUNT_INLINE int fcntl_control(fcntl_call *call, int fd, int command, void *argument)
{
	struct shunt_young *young = shunt_young_at(fd);
	struct shunt_file *file;

	if (unlikely(young)) {
		if (command == F_GETFL || command == F_GETFD || command == F_SETFD)
			return call(fd, command, argument);
		if (command == F_SETFL && !((long)argument & O_ASYNC))
			return set_young_flags(call, young, argument);
	}
	file = shunt_lookup(fd);
	if (command == F_DUPFD || command == F_DUPFD_CLOEXEC)
		return shunt_dup_made(fd, file, shunt_lowest((int)(intptr_t)argument,
							     call(shunt_dup_from(fd, file), command, argument)));
	if (shunt_is_own_fd(file))
		return shunt_fail(EBADF);
	if (command == F_SETFL && shunt_as_stream(file))
		return set_flags(call, fd, shunt_as_stream(file), argument);
	return call(fd, command, argument);
}

/* The argument is missing, an int or a pointer; passing on a pointer's worth of bits serves all. */
int fcntl(int fd, int command, ...)
{
	va_list arguments;
	void *argument;

	va_start(arguments, command);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	return fcntl_control(&real(fcntl), fd, command, argument);
}
SHUNT_SAME(__fcntl, fcntl);

int fcntl64(int fd, int command, ...)
{
	va_list arguments;
	void *argument;

	va_start(arguments, command);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	return fcntl_control(&real(fcntl64), fd, command, argument);
}
