#include "preload/rights.h"
#include <sys/syscall.h>

/*
 * The kernel's answer stands, also for a second connect() on the same socket, which is how hiredis
 * learns the outcome of the first. AF_UNSPEC dissolves the connection: that is the kernel's to do.
 */
static int connect_stream(int fd, const struct sockaddr *address, socklen_t length)
{
	int result, error;

	if (!shunt_bad_pointer(address) && length >= sizeof(address->sa_family) &&
	    address->sa_family == AF_UNSPEC) {
		shunt_cancellation_point();
		shunt_file_dissolving(shunt_process.engine, fd);
		return (int)real(syscall)(SYS_connect, fd, address, length);
	}
	result = real(connect)(fd, address, length);
	error = errno;
	shunt_file_connected(shunt_process.engine, fd, result ? -error : 0, address, length);
	errno = error;
	return result;
}

int connect(int fd, const struct sockaddr *address, socklen_t length)
{
	struct shunt_file *file = shunt_lookup(fd);

	if (shunt_as_stream(file))
		return connect_stream(fd, address, length);
	return real(connect)(shunt_is_private(file) ? -1 : fd, address, length);
}
SHUNT_SAME(__connect, connect);
