/* SPDX-License-Identifier: MIT */
/* stdio reads and writes with calls inside libc, which no name leads to. */
#include "preload/rights.h"
#include "preload/gate.h"

static ssize_t read_cookie(void *fd, char *buffer, size_t bytes)
{
	return read((int)(intptr_t)fd, buffer, bytes);
}

static ssize_t write_cookie(void *fd, const char *buffer, size_t bytes)
{
	ssize_t written = write((int)(intptr_t)fd, buffer, bytes);

	return written < 0 ? 0 : written;
}

static int seek_cookie(void *fd, off64_t *offset, int from)
{
	(void)fd, (void)offset, (void)from;
	return shunt_fail(ESPIPE);
}

static int close_cookie(void *fd)
{
	return close((int)(intptr_t)fd);
}

/* A stream that has ended and cannot go back to the kernel: the calls are made here. */
static FILE *with_our_calls(int fd, const char *mode)
{
	cookie_io_functions_t calls = { read_cookie, write_cookie, seek_cookie, close_cookie };
	FILE *file = fopencookie((void *)(intptr_t)fd, mode, calls);

	if (file)
		file->_fileno = fd;
	return file;
}

FILE *fdopen(int fd, const char *mode)
{
	struct shunt_stream *stream = shunt_linked(&fd);

	if (stream) {
		shunt_rights_retire(fd, SHUNT_CAUSE_FDOPEN);
		if (!shunt_stream_is_plain(stream))
			return with_our_calls(fd, mode);
	}
	return real(fdopen)(shunt_is_own_fd(shunt_lookup(fd)) ? -1 : fd, mode);
}

/* The number is closed inside libc. */
int fclose(FILE *file)
{
	int saved = errno, fd = -1, result;

	if (shunt_process.engine && file) {
		fd = fileno(file);
		if (fd >= 0 && shunt_lookup(fd) && !shunt_process_foreign()) {
			fflush(file);
			shunt_process_fresh(fd);
		}
		errno = saved;
	}
	result = real(fclose)(file);
	if (fd >= 0 && !result)
		shunt_numbers_have_closed(fd);
	return result;
}

/* If calls inside libc are seen, too (gate.h), they are made as they are. Otherwise the stream goes back first. */
static const struct shunt_calls *printing(int fd)
{
	if (shunt_gate_is_open())
		return shunt_gate_behind();
	shunt_rights_retire(fd, SHUNT_CAUSE_DPRINTF);
	(void)real(vdprintf);
	return &shunt_real;
}

int vdprintf(int fd, const char *format, va_list arguments)
{
	return printing(fd)->vdprintf(fd, format, arguments);
}

int __vdprintf_chk(int fd, int flag, const char *format, va_list arguments)
{
	return printing(fd)->__vdprintf_chk(fd, flag, format, arguments);
}

int dprintf(int fd, const char *format, ...)
{
	va_list arguments;
	int printed;

	va_start(arguments, format);
	printed = printing(fd)->vdprintf(fd, format, arguments);
	va_end(arguments);
	return printed;
}

int __dprintf_chk(int fd, int flag, const char *format, ...)
{
	va_list arguments;
	int printed;

	va_start(arguments, format);
	printed = printing(fd)->__vdprintf_chk(fd, flag, format, arguments);
	va_end(arguments);
	return printed;
}
