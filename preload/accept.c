#include "preload/process.h"

static int accepted(struct shunt_file *listener, int fd, bool nonblocking)
{
	int saved = errno;

	if (fd < 0 || shunt_process_foreign())
		return fd;
	shunt_process_fresh(fd);
	if (shunt_as_stream(listener) && !shunt_process_is_stdio(fd))
		shunt_file_accepted(shunt_process.engine, fd, nonblocking);
	errno = saved;
	return fd;
}

int accept(int fd, struct sockaddr *address, socklen_t *length)
{
	struct shunt_file *file = shunt_lookup(fd);

	if (likely(!file))
		return real(accept)(fd, address, length);
	return accepted(file, real(accept)(shunt_is_private(file) ? -1 : fd, address, length), false);
}

int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
	struct shunt_file *file = shunt_lookup(fd);

	if (likely(!file))
		return real(accept4)(fd, address, length, flags);
	return accepted(file, real(accept4)(shunt_is_private(file) ? -1 : fd, address, length, flags),
			flags & SOCK_NONBLOCK);
}
