/* SPDX-License-Identifier: MIT */
/* ioctl() of sockets: FIONREAD, FIONBIO, SIOCOUTQ and their like. */
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include "preload/rights.h"
#include "preload/touch.h"
#include "preload/young.h"

static int value_tell(ssize_t bytes, int *value)
{
	if (bytes < 0)
		return shunt_fail((int)-bytes);
	if (shunt_unwritable(value, sizeof(*value)))
		return shunt_fail(EFAULT);
	*value = (int)bytes;
	return 0;
}

static int set_flag(int fd, struct shunt_stream *stream, unsigned long request, int *value)
{
	int result;

	if (request == FIOASYNC)
		shunt_rights_retire(fd, SHUNT_CAUSE_ASYNC);
	result = real(ioctl)(fd, request, value);
	if (!result && request == FIONBIO)
		shunt_stream_set_nonblocking(stream, *value);
	return result;
}

static int ioctl_control(int fd, struct shunt_stream *stream, unsigned long request, void *argument)
{
	switch (request) {
	case FIONBIO:
	case FIOASYNC:
		return set_flag(fd, stream, request, argument);
	case FIONREAD:	/* also SIOCINQ */
		if (!shunt_stream_is_plain(stream))
			return value_tell(shunt_inside(shunt_stream_inq(shunt_process.engine, fd, stream)),
					  argument);
		break;
	case SIOCATMARK:
		if (!shunt_stream_is_plain(stream))
			return value_tell(shunt_inside(shunt_stream_at_mark(shunt_process.engine, fd, stream)),
					  argument);
		break;
	case SIOCOUTQ:
		if (!shunt_stream_is_plain(stream))
			return value_tell(shunt_inside(shunt_stream_outq(shunt_process.engine, fd, stream)),
					  argument);
		break;
	}
	return real(ioctl)(fd, request, argument);
}

static int control_young(struct shunt_young *young, unsigned long request, void *argument)
{
	int fd = young->fd, result = real(ioctl)(fd, request, argument), saved = errno;
	struct shunt_stream *stream;

	if (result || request != FIONBIO)
		return result;
	if (!shunt_young_set_nonblocking(shunt_process.engine, young, *(int *)argument)) {
		stream = shunt_as_stream(shunt_lookup(fd));
		if (stream)
			shunt_stream_set_nonblocking(stream, *(int *)argument);
	}
	errno = saved;
	return result;
}

int ioctl(int fd, unsigned long request, ...)
{
	struct shunt_young *young = shunt_young_at(fd);
	struct shunt_file *file;
	va_list arguments;
	void *argument;

	va_start(arguments, request);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	if (unlikely(young) && request != FIOASYNC)
		return control_young(young, request, argument);
	file = shunt_lookup(fd);
	if (unlikely(file) && shunt_as_stream(file))
		return ioctl_control(fd, shunt_as_stream(file), request, argument);
	return real(ioctl)(shunt_is_own_fd(file) ? -1 : fd, request, argument);
}

/* Asks the kernel from inside libc. */
int sockatmark(int fd)
{
	int mark;

	return shunt_linked(&fd) ? (ioctl(fd, SIOCATMARK, &mark) ? -1 : mark) : real(sockatmark)(fd);
}
