/* SPDX-License-Identifier: MIT */
/* recv() and recvfrom(). */
#include "preload/touch.h"
#include "preload/transfer.h"
#include "preload/young.h"
#include <sys/syscall.h>

ssize_t recv(int fd, void *buffer, size_t bytes, int flags)
{
	struct shunt_young *young = shunt_young_at(fd);
	struct shunt_stream *stream;
	int served = flags;
	ssize_t got;

	if (unlikely(young && !(flags & ~SHUNT_YOUNG_FLAGS)) &&
	    shunt_young_receives(young, &got, SYS_recvfrom, (long)buffer, (long)bytes, flags, 0))
		return got;
	stream = shunt_linked(&fd);
	if (stream && shunt_recv_serves(fd, stream, &served))
		return shunt_recv_one(fd, stream, buffer, bytes, served);
	return real(recv)(fd, buffer, bytes, flags);
}

ssize_t __recv_chk(int fd, void *buffer, size_t bytes, size_t room, int flags)
{
	struct shunt_stream *stream = shunt_linked(&fd);
	int served = flags;

	if (stream && bytes <= room && shunt_recv_serves(fd, stream, &served))
		return shunt_recv_one(fd, stream, buffer, bytes, served);
	return real(__recv_chk)(fd, buffer, bytes, room, flags);
}

/*
 * A connected TCP socket names no sender: the length becomes 0 and the address stays as it is. The
 * kernel looks at the pointers only after it has taken the bytes, so an error loses them.
 */
static ssize_t recv_nameless(int fd, struct shunt_stream *stream, void *buffer, size_t bytes,
			     int flags, const struct sockaddr *address, socklen_t *length)
{
	ssize_t got = shunt_recv_one(fd, stream, buffer, bytes, flags);

	if (got < 0 || likely(!address))
		return got;
	if (shunt_unwritable(length, sizeof(*length)))
		return shunt_fail(EFAULT);
	if ((int)*length < 0)
		return shunt_fail(EINVAL);
	*length = 0;
	return got;
}

ssize_t recvfrom(int fd, void *buffer, size_t bytes, int flags, struct sockaddr *address,
		 socklen_t *length)
{
	struct shunt_stream *stream = shunt_linked(&fd);
	int served = flags;

	if (stream && shunt_recv_serves(fd, stream, &served))
		return recv_nameless(fd, stream, buffer, bytes, served, address, length);
	return real(recvfrom)(fd, buffer, bytes, flags, address, length);
}

ssize_t __recvfrom_chk(int fd, void *buffer, size_t bytes, size_t room, int flags,
		       struct sockaddr *address, socklen_t *length)
{
	struct shunt_stream *stream = shunt_linked(&fd);
	int served = flags;

	if (stream && bytes <= room && shunt_recv_serves(fd, stream, &served))
		return recv_nameless(fd, stream, buffer, bytes, served, address, length);
	return real(__recvfrom_chk)(fd, buffer, bytes, room, flags, address, length);
}
