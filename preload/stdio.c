/* stdio reads and writes with calls inside libc, which nobody can stand for. */
#include "preload/rights.h"

FILE *fdopen(int fd, const char *mode)
{
	shunt_rights_retire(fd, "fdopen");
	return real(fdopen)(shunt_is_private(shunt_lookup(fd)) ? -1 : fd, mode);
}

/* The number is closed inside libc. */
int fclose(FILE *file)
{
	int saved = errno, fd;

	if (shunt_process.engine && file) {
		fd = fileno(file);
		if (fd >= 0 && shunt_lookup(fd) && !shunt_process_foreign()) {
			fflush(file);
			shunt_process_fresh(fd);
		}
		errno = saved;
	}
	return real(fclose)(file);
}

int vdprintf(int fd, const char *format, va_list arguments)
{
	shunt_rights_retire(fd, "dprintf");
	return real(vdprintf)(fd, format, arguments);
}

int __vdprintf_chk(int fd, int flag, const char *format, va_list arguments)
{
	shunt_rights_retire(fd, "dprintf");
	return real(__vdprintf_chk)(fd, flag, format, arguments);
}

int dprintf(int fd, const char *format, ...)
{
	va_list arguments;
	int printed;

	shunt_rights_retire(fd, "dprintf");
	va_start(arguments, format);
	printed = real(vdprintf)(fd, format, arguments);
	va_end(arguments);
	return printed;
}

int __dprintf_chk(int fd, int flag, const char *format, ...)
{
	va_list arguments;
	int printed;

	shunt_rights_retire(fd, "dprintf");
	va_start(arguments, format);
	printed = real(__vdprintf_chk)(fd, flag, format, arguments);
	va_end(arguments);
	return printed;
}
