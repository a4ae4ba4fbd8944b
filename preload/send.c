/* SPDX-License-Identifier: MIT */
/* send() and sendto(). */
#include "preload/connect.h"
#include "preload/touch.h"
#include "preload/transfer.h"
#include "preload/young.h"
#include <sys/syscall.h>

static bool send_connects(int fd, const void *buffer, size_t bytes, int *flags,
			  const struct sockaddr *address, socklen_t length, ssize_t *sent)
{
	struct iovec piece = { .iov_base = (void *)buffer, .iov_len = bytes };
	struct msghdr message = { .msg_name = (void *)address,
				  .msg_namelen = length,
				  .msg_iov = &piece,
				  .msg_iovlen = 1 };

	return length <= sizeof(struct sockaddr_storage) &&
	       shunt_connect_sends(fd, &message, flags, sent);
}

ssize_t send(int fd, const void *buffer, size_t bytes, int flags)
{
	struct shunt_young *young = shunt_young_at(fd);
	struct shunt_stream *stream;
	ssize_t sent;
	int served;

	if (unlikely(young && !(flags & ~SHUNT_YOUNG_FLAGS)) &&
	    shunt_young_sends(young, &sent, SYS_sendto, (long)buffer, (long)bytes, flags, 0))
		return sent;
	if (unlikely(flags & MSG_FASTOPEN) &&
	    send_connects(fd, buffer, bytes, &flags, NULL, 0, &sent))
		return sent;
	served = flags;
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
	struct shunt_stream *stream;
	int served;
	ssize_t sent;

	if (unlikely(flags & MSG_FASTOPEN) &&
	    send_connects(fd, buffer, bytes, &flags, address, length, &sent))
		return sent;
	served = flags;
	stream = shunt_linked(&fd);
	if (!stream || !shunt_send_serves(fd, stream, &served))
		return real(sendto)(fd, buffer, bytes, flags, address, length);
	if (unlikely(address && length > sizeof(struct sockaddr_storage)))
		return shunt_fail(EINVAL);
	if (unlikely(address && length && shunt_unreadable(address, length)))
		return shunt_fail(EFAULT);
	return shunt_send_one(fd, stream, buffer, bytes, served);
}
