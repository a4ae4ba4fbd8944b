/* SPDX-License-Identifier: MIT */
/* read() and its vectors. */
#include "preload/transfer.h"
#include "preload/young.h"
#include <sys/syscall.h>

/* Unlike recv(), this asks for all of the room before it asks for less. */
static SHUNT_INLINE ssize_t read_one(int fd, struct shunt_stream *stream, void *buffer, size_t bytes)
{
	if (unlikely(shunt_bad_span(buffer, bytes)))
		return shunt_fail(EFAULT);
	if (likely(bytes))
		return shunt_recv_one(fd, stream, buffer, bytes, 0);
	shunt_cancellation_point();
	return 0;
}

ssize_t read(int fd, void *buffer, size_t bytes)
{
	struct shunt_young *young = shunt_young_at(fd);
	struct shunt_stream *stream;
	ssize_t got;
	bool own;

	if (unlikely(young) &&
	    shunt_young_receives(young, &got, SYS_read, (long)buffer, (long)bytes, 0, 0))
		return got;
	stream = shunt_linked_or_own(&fd, &own);
	if (stream)
		return read_one(fd, stream, buffer, bytes);
	if (unlikely(own))
		return real(syscall)(SYS_read, fd, buffer, bytes);
	return real(read)(fd, buffer, bytes);
}
SHUNT_SAME(__read, read);

ssize_t __read_chk(int fd, void *buffer, size_t bytes, size_t room)
{
	struct shunt_stream *stream = shunt_linked(&fd);

	if (stream && bytes <= room)
		return read_one(fd, stream, buffer, bytes);
	return real(__read_chk)(fd, buffer, bytes, room);
}

static ssize_t read_pieces(int fd, struct shunt_stream *stream, const struct iovec *iov, int count,
			   int flags)
{
	int i;

	if ((unsigned int)count > SHUNT_PIECES_MAX)
		return shunt_fail(EINVAL);
	if (count && shunt_bad_pointer(iov))
		return shunt_fail(EFAULT);
	for (i = 0; i < count; i++)
		if (iov[i].iov_len || shunt_bad_span(iov[i].iov_base, 0))
			return shunt_transfer_recv(fd, stream, iov, count, flags);
	return 0;	/* nothing asked for: unlike recv(), this does not wait */
}

ssize_t readv(int fd, const struct iovec *iov, int count)
{
	struct shunt_young *young = shunt_young_at(fd);
	struct shunt_stream *stream;
	ssize_t got;

	if (unlikely(young) && shunt_young_receives(young, &got, SYS_readv, (long)iov, count, 0, 0))
		return got;
	stream = shunt_linked(&fd);
	if (stream)
		return read_pieces(fd, stream, iov, count, 0);
	return real(readv)(fd, iov, count);
}

/* An offset of -1 means "as a stream". Sockets take the flags, but only RWF_NOWAIT says anything. */
static bool read_serves(off64_t offset, int flags)
{
	return offset == -1 &&
	       !(flags & ~(RWF_NOWAIT | RWF_HIPRI | RWF_DSYNC | RWF_SYNC | RWF_APPEND));
}

ssize_t preadv2(int fd, const struct iovec *iov, int count, off_t offset, int flags)
{
	bool own;
	struct shunt_stream *stream = shunt_linked_or_own(&fd, &own);

	if (stream && read_serves(offset, flags))
		return read_pieces(fd, stream, iov, count, flags & RWF_NOWAIT ? MSG_DONTWAIT : 0);
	if (unlikely(own && offset == -1))	/* the offset is two words, low and high */
		return real(syscall)(SYS_preadv2, fd, iov, count, -1L, -1L, flags);
	return real(preadv2)(fd, iov, count, offset, flags);
}

ssize_t preadv64v2(int fd, const struct iovec *iov, int count, off64_t offset, int flags)
{
	struct shunt_stream *stream = shunt_linked(&fd);

	if (stream && read_serves(offset, flags))
		return read_pieces(fd, stream, iov, count, flags & RWF_NOWAIT ? MSG_DONTWAIT : 0);
	return real(preadv64v2)(fd, iov, count, offset, flags);
}
