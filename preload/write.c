/* SPDX-License-Identifier: MIT */
/* write() and its vectors. */
#include "preload/transfer.h"
#include "preload/young.h"
#include <sys/syscall.h>

ssize_t write(int fd, const void *buffer, size_t bytes)
{
	struct shunt_young *young = shunt_young_at(fd);
	struct shunt_stream *stream;
	ssize_t sent;
	bool own;

	if (unlikely(young) &&
	    shunt_young_sends(young, &sent, SYS_write, (long)buffer, (long)bytes, 0, 0))
		return sent;
	stream = shunt_linked_or_own(&fd, &own);
	if (stream && unlikely(shunt_bad_span(buffer, bytes)))
		return shunt_fail(EFAULT);
	if (stream)
		return shunt_send_one(fd, stream, buffer, bytes, 0);
	if (unlikely(own))
		return real(syscall)(SYS_write, fd, buffer, bytes);
	return real(write)(fd, buffer, bytes);
}
SHUNT_SAME(__write, write);

static ssize_t write_pieces(int fd, struct shunt_stream *stream, const struct iovec *iov, int count,
			    int flags)
{
	int i;

	if ((unsigned int)count > SHUNT_PIECES_MAX)
		return shunt_fail(EINVAL);
	if (count && shunt_bad_pointer(iov))
		return shunt_fail(EFAULT);
	for (i = 0; i < count; i++)
		if (iov[i].iov_len || shunt_bad_span(iov[i].iov_base, 0))
			return shunt_transfer_send(fd, stream, iov, count, flags);
	return 0;	/* nothing to send: TCP is not asked, not even whether it still may */
}

ssize_t writev(int fd, const struct iovec *iov, int count)
{
	struct shunt_young *young = shunt_young_at(fd);
	struct shunt_stream *stream;
	ssize_t sent;

	if (unlikely(young) && shunt_young_sends(young, &sent, SYS_writev, (long)iov, count, 0, 0))
		return sent;
	stream = shunt_linked(&fd);
	if (stream)
		return write_pieces(fd, stream, iov, count, 0);
	return real(writev)(fd, iov, count);
}

/* As in read.c. */
static bool write_serves(off64_t offset, int flags)
{
	return offset == -1 &&
	       !(flags & ~(RWF_NOWAIT | RWF_HIPRI | RWF_DSYNC | RWF_SYNC | RWF_APPEND));
}

ssize_t pwritev2(int fd, const struct iovec *iov, int count, off_t offset, int flags)
{
	struct shunt_stream *stream = shunt_linked(&fd);

	if (stream && write_serves(offset, flags))
		return write_pieces(fd, stream, iov, count, flags & RWF_NOWAIT ? MSG_DONTWAIT : 0);
	return real(pwritev2)(fd, iov, count, offset, flags);
}

ssize_t pwritev64v2(int fd, const struct iovec *iov, int count, off64_t offset, int flags)
{
	struct shunt_stream *stream = shunt_linked(&fd);

	if (stream && write_serves(offset, flags))
		return write_pieces(fd, stream, iov, count, flags & RWF_NOWAIT ? MSG_DONTWAIT : 0);
	return real(pwritev64v2)(fd, iov, count, offset, flags);
}
