/* SPDX-License-Identifier: MIT */
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include "preload/rights.h"
#include "preload/touch.h"

static int tell(ssize_t bytes, int *value)
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
		shunt_rights_retire(fd, SHUNT_REASON_ASYNC);
	result = real(ioctl)(fd, request, value);
	if (!result && request == FIONBIO)
		shunt_stream_set_nonblocking(stream, *value);
	return result;
}

static int control(int fd, struct shunt_stream *stream, unsigned long request, void *argument)
{
	switch (request) {
	case FIONBIO:
	case FIOASYNC:
		return set_flag(fd, stream, request, argument);
	case FIONREAD:	/* also SIOCINQ */
		if (!shunt_stream_is_plain(stream))
			return tell(shunt_stream_inq(shunt_process.engine, fd, stream), argument);
		break;
	case SIOCATMARK:
		if (!shunt_stream_is_plain(stream))
			return tell(shunt_stream_at_mark(shunt_process.engine, fd, stream), argument);
		break;
	case SIOCOUTQ:
		if (!shunt_stream_is_plain(stream))
			return tell(shunt_stream_outq(shunt_process.engine, fd, stream), argument);
		break;
	}
	return real(ioctl)(fd, request, argument);
}

int ioctl(int fd, unsigned long request, ...)
{
	struct shunt_file *file = shunt_lookup(fd);
	va_list arguments;
	void *argument;

	va_start(arguments, request);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	if (unlikely(file) && shunt_as_stream(file))
		return control(fd, shunt_as_stream(file), request, argument);
	return real(ioctl)(shunt_is_own_fd(file) ? -1 : fd, request, argument);
}

/* Asks the kernel from inside libc. */
int sockatmark(int fd)
{
	int mark;

	return shunt_linked(&fd) ? (ioctl(fd, SIOCATMARK, &mark) ? -1 : mark) : real(sockatmark)(fd);
}
