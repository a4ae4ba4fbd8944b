/* SPDX-License-Identifier: MIT */
/* socket() and listen(). */
#include <netinet/in.h>
#include "preload/process.h"

static bool is_tcp(int family, int type, int protocol)
{
	return (family == AF_INET || family == AF_INET6) &&
	       (type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) == SOCK_STREAM &&
	       (protocol == 0 || protocol == IPPROTO_TCP);
}

int socket(int family, int type, int protocol)
{
	int fd = shunt_lowest(0, real(socket)(family, type, protocol));
	int saved = errno;

	if (fd >= 0 && is_tcp(family, type, protocol) && shunt_process_engine() &&
	    !shunt_process_foreign()) {
		shunt_signal_defer_enter();
		shunt_process_fresh(fd);
		if (!shunt_process_is_stdio(fd) &&
		    !shunt_young_socket(shunt_process.engine, fd, type & SOCK_NONBLOCK))
			shunt_file_socket(shunt_process.engine, fd, type & SOCK_NONBLOCK);
		shunt_signal_defer_leave();
		errno = saved;
	}
	return fd;
}

int listen(int fd, int backlog)
{
	struct shunt_file *file = shunt_lookup(fd);
	int result = real(listen)(shunt_is_own_fd(file) ? -1 : fd, backlog);
	int saved = errno;

	if (!result && !file && !shunt_process_is_stdio(fd) &&
	    shunt_process_protocol(fd) == IPPROTO_MPTCP && !shunt_process_foreign())
		shunt_accept_adopt(fd);
	else if (!result && shunt_as_stream(file) && !shunt_process_foreign())
		shunt_inside_do(shunt_file_listening(shunt_process.engine, fd));
	errno = saved;
	return result;
}
