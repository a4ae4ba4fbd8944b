/* SPDX-License-Identifier: MIT */
/*
 * Bytes into and out of a stream that the engine serves: what the kernel does with sizes, flags and
 * pointers before TCP sees them. All set errno.
 */
#ifndef SHUNT_PRELOAD_TRANSFER_H
#define SHUNT_PRELOAD_TRANSFER_H

#include "preload/process.h"

#define SHUNT_TRANSFER_MAX 0x7ffff000	/* MAX_RW_COUNT of the kernel */
#define SHUNT_PIECES_MAX 1024		/* UIO_MAXIOV */

#define SHUNT_SEND_FLAGS (MSG_DONTWAIT | MSG_NOSIGNAL | MSG_MORE)
#define SHUNT_RECV_FLAGS (MSG_DONTWAIT | MSG_NOSIGNAL | MSG_PEEK | MSG_WAITALL | MSG_TRUNC |	\
			  MSG_CMSG_CLOEXEC)

/* `count` > SHUNT_PIECES_MAX or < 0 is the caller's to refuse: the calls differ in the error. */
ssize_t shunt_transfer_recv(int fd, struct shunt_stream *stream, const struct iovec *iov, int count,
			    int flags);
ssize_t shunt_transfer_send(int fd, struct shunt_stream *stream, const struct iovec *iov, int count,
			    int flags);

/*
 * Takes away the flags that mean nothing for TCP. False: one is left that the engine does not serve;
 * the stream has gone back to the kernel, make the real call.
 */
bool shunt_transfer_odd_send(int fd, struct shunt_stream *stream, int *flags);
bool shunt_transfer_odd_recv(int fd, struct shunt_stream *stream, int *flags);

/*
 * The engine's receive, or send, with every handler that has come meanwhile at its end. It begins anew after them where
 * that is the kernel's way, with whatever the number means by then: perhaps the kernel's call. Bytes or -errno;
 * -ERESTART only inside a call of several messages (shunt_inside).
 */
ssize_t shunt_transfer_again(bool receives, int fd, const struct iovec *iov, int count, int flags);

static inline ssize_t shunt_transfer_receive(int fd, struct shunt_stream *stream, const struct iovec *iov, int count,
					     int flags)
{
	ssize_t got = shunt_inside(shunt_stream_recv(shunt_process.engine, fd, stream, iov, count, flags));

	if (likely(got != -ERESTART))
		return got;
	return shunt_transfer_again(true, fd, iov, count, flags);
}

static inline ssize_t shunt_transfer_transmit(int fd, struct shunt_stream *stream, const struct iovec *iov, int count,
					      int flags)
{
	ssize_t sent = shunt_inside(shunt_stream_send(shunt_process.engine, fd, stream, iov, count, flags));

	if (likely(sent != -ERESTART))
		return sent;
	return shunt_transfer_again(false, fd, iov, count, flags);
}

/* The buffer has no room at all. Waits and fails as any other, and then returns 0, or EFAULT for a bad pointer. */
ssize_t shunt_transfer_recv_nothing(int fd, struct shunt_stream *stream, int flags, bool fault);
/* SIGPIPE to this thread, as the kernel does it. Returns -EPIPE. */
ssize_t shunt_transfer_sigpipe(void);

static inline ssize_t shunt_transfer_broken(ssize_t sent, int flags)
{
	if (likely(sent != -EPIPE || flags & MSG_NOSIGNAL))
		return sent;
	return shunt_transfer_sigpipe();
}

static inline bool shunt_send_serves(int fd, struct shunt_stream *stream, int *flags)
{
	return likely(!(*flags & ~SHUNT_SEND_FLAGS)) || shunt_transfer_odd_send(fd, stream, flags);
}

static inline bool shunt_recv_serves(int fd, struct shunt_stream *stream, int *flags)
{
	return likely(!(*flags & ~(SHUNT_RECV_FLAGS & ~MSG_PEEK))) || shunt_transfer_odd_recv(fd, stream, flags);
}

static inline size_t shunt_clip(size_t bytes)
{
	return likely(bytes <= SHUNT_TRANSFER_MAX) ? bytes : SHUNT_TRANSFER_MAX;
}

static inline ssize_t shunt_recv_one(int fd, struct shunt_stream *stream, void *buffer, size_t bytes,
				     int flags)
{
	struct iovec piece = { .iov_base = buffer, .iov_len = shunt_clip(bytes) };

	shunt_cancellation_point();
	if (unlikely(!bytes || (shunt_bad_pointer(buffer) && !(flags & MSG_TRUNC))))
		return shunt_transfer_recv_nothing(fd, stream, flags, bytes);
	return shunt_result(shunt_transfer_receive(fd, stream, &piece, 1, flags));
}

static inline ssize_t shunt_send_one(int fd, struct shunt_stream *stream, const void *buffer,
				     size_t bytes, int flags)
{
	struct iovec piece = { .iov_base = (void *)buffer, .iov_len = shunt_clip(bytes) };

	shunt_cancellation_point();
	if (unlikely(shunt_bad_pointer(buffer) && bytes))
		return shunt_fail(EFAULT);
	return shunt_result(shunt_transfer_broken(shunt_transfer_transmit(fd, stream, &piece, 1, flags), flags));
}

#endif
