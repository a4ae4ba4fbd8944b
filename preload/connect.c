/* SPDX-License-Identifier: MIT */
/* connect(), and sends that open a connection (MSG_FASTOPEN). */
#include "preload/connect.h"
#include <fcntl.h>
#include "preload/rights.h"
#include "preload/touch.h"
#include "preload/young.h"
#include <sys/syscall.h>

static bool dissolves(const struct sockaddr *address, socklen_t length)
{
	return length >= sizeof(address->sa_family) &&
	       !shunt_unreadable(address, sizeof(address->sa_family)) &&
	       address->sa_family == AF_UNSPEC;
}

static long dissolve(int fd, const struct sockaddr *address, socklen_t length)
{
	shunt_file_dissolving(shunt_process.engine, fd);
	return real(syscall)(SYS_connect, fd, address, length);
}

/*
 * The kernel looks at the address first, unless there is a connection that it might dissolve. Its
 * answer stands, also for a second connect() on the same socket, which is how hiredis learns the
 * outcome of the first. AF_UNSPEC dissolves the connection: that is the kernel's to do.
 */
static int connect_stream(int fd, struct shunt_stream *stream, const struct sockaddr *address,
			  socklen_t length)
{
	int result, error;

	if (!shunt_stream_is_plain(stream) && dissolves(address, length)) {
		shunt_cancellation_point();
		return (int)shunt_inside(dissolve(fd, address, length));
	}
	result = real(connect)(fd, address, length);
	error = errno;
	if (result || address->sa_family != AF_UNSPEC)
		shunt_inside_do(shunt_file_connected(shunt_process.engine, fd, result ? -error : 0, address, length));
	errno = error;
	return result;
}

/* Only the kernel dissolves a connection at once: of a young one it has not been told whether it is one by now. */
static int connect_young(int fd, const struct sockaddr *address, socklen_t length)
{
	int result = real(connect)(fd, address, length), error = errno;

	shunt_inside_do(shunt_young_connected(shunt_process.engine, fd, result ? -error : 0, address, length));
	errno = error;
	return result;
}

/* Where the bytes were refused after the connection had been made, only the kernel says that there is one. */
static bool is_connected(int fd)
{
	struct sockaddr_storage peer;
	socklen_t length = sizeof(peer);

	return !getpeername(fd, (struct sockaddr *)&peer, &length);
}

static ssize_t open_by_send(int fd, const struct msghdr *message, int flags)
{
	ssize_t sent = real(sendmsg)(fd, message, flags);
	int error = errno;

	shunt_inside_do(shunt_file_opened(shunt_process.engine, fd,
					  sent >= 0	   ? sent :
					  is_connected(fd) ? 0 :
							     -error,
					  message));
	errno = error;
	return sent;
}

static bool waits(int fd, int flags)
{
	return !(flags & MSG_DONTWAIT) && !(real(fcntl)(fd, F_GETFL) & O_NONBLOCK);
}

/*
 * On a socket that has a connection, or is making one, the kernel is asked without bytes. It refuses; or it has just become
 * connected, and the bytes go like all others. False: it has refused.
 */
static bool may_go_on(int fd, const struct msghdr *message, int flags)
{
	struct msghdr empty = { .msg_name = message->msg_name,
				.msg_namelen = message->msg_namelen };

	if (!real(sendmsg)(fd, &empty, MSG_FASTOPEN | MSG_DONTWAIT | MSG_NOSIGNAL) ||
	    errno == EPIPE)
		return true;
	return (errno == EALREADY || errno == EINPROGRESS) && waits(fd, flags);
}

bool shunt_connect_sends(int fd, const struct msghdr *message, int *flags, ssize_t *sent)
{
	struct shunt_stream *stream = shunt_as_stream(shunt_lookup(fd));
	int saved = errno;

	if (!stream)
		return false;
	if (shunt_stream_is_plain(stream)) {
		*sent = open_by_send(fd, message, *flags);
		return true;
	}
	if (!may_go_on(fd, message, *flags)) {
		*sent = -1;
		return true;
	}
	errno = saved;
	*flags &= ~MSG_FASTOPEN;
	return false;
}

/* Sets errno. False: the kernel is to connect it. */
static bool connect_spare(int fd, const struct sockaddr *address, socklen_t length, int *result)
{
	bool done = false;

	if (!shunt_born_any(shunt_process.engine) || length < sizeof(address->sa_family) ||
	    shunt_unreadable(address, length) ||
	    (address->sa_family != AF_INET && address->sa_family != AF_INET6))
		return false;
	shunt_cancellation_point();
	shunt_inside_do(
		done = shunt_born_connect(shunt_process.engine, fd, address, length, result));
	if (done)
		*result = (int)shunt_result(*result);
	return done;
}

int connect(int fd, const struct sockaddr *address, socklen_t length)
{
	int result;
	bool young = shunt_young_at(fd) && !dissolves(address, length);
	struct shunt_file *file = young ? NULL : shunt_lookup(fd);
	struct shunt_stream *stream = shunt_as_stream(file);

	if ((young || stream) && !shunt_process_foreign() &&
	    connect_spare(fd, address, length, &result))
		return result;
	if (young)
		return connect_young(fd, address, length);
	if (stream)
		return connect_stream(fd, stream, address, length);
	return real(connect)(shunt_is_own_fd(file) ? -1 : fd, address, length);
}
SHUNT_SAME(__connect, connect);
