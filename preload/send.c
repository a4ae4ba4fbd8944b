/* SPDX-License-Identifier: MIT */
/* send() and sendto(). */
#include "preload/touch.h"
#include "preload/transfer.h"
#include "preload/young.h"
#include <sys/syscall.h>

ssize_t send(int fd, const void *buffer, size_t bytes, int flags)
{
	struct shunt_young *young = shunt_young_at(fd);
	struct shunt_stream *stream;
	int served = flags;
	ssize_t sent;

	if (unlikely(young && !(flags & ~SHUNT_YOUNG_FLAGS)) &&
	    shunt_young_sends(young, &sent, SYS_sendto, (long)buffer, (long)bytes, flags, 0))
		return sent;
	stream = shunt_linked(&fd);
	if (stream && shunt_send_serves(fd, stream, &served))
		return shunt_send_one(fd, stream, buffer, bytes, served);
	return real(send)(fd, buffer, bytes, flags);
}
SHUNT_SAME(__send, send);

/* A connected TCP socket does not look at the address, but the kernel copies it first. */
ssize_t sendto(int fd, const void *buffer, size_t bytes, int flags, const struct sockaddr *address,
	       socklen_t length)
{
	struct shunt_stream *stream = shunt_linked(&fd);
	int served = flags;

	if (!stream || !shunt_send_serves(fd, stream, &served))
		return real(sendto)(fd, buffer, bytes, flags, address, length);
	if (unlikely(address && length > sizeof(struct sockaddr_storage)))
		return shunt_fail(EINVAL);
	if (unlikely(address && length && shunt_unreadable(address, length)))
		return shunt_fail(EFAULT);
	return shunt_send_one(fd, stream, buffer, bytes, served);
}
