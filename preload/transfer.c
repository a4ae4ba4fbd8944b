/* SPDX-License-Identifier: MIT */
#include "preload/transfer.h"

/* For TCP the kernel takes these and does nothing. */
#define SEND_NOTHING (MSG_CONFIRM | MSG_DONTROUTE | MSG_EOR | MSG_PEEK | MSG_TRUNC | MSG_WAITALL | \
		      MSG_CMSG_CLOEXEC | MSG_WAITFORONE)
#define RECV_NOTHING (MSG_CONFIRM | MSG_DONTROUTE | MSG_EOR | MSG_MORE | MSG_WAITFORONE)

static bool go_back(int fd, struct shunt_stream *stream)
{
	int saved = errno, result;

	result = shunt_inside(
		shunt_stream_retire(shunt_process.engine, fd, stream, SHUNT_CAUSE_FLAG));
	errno = saved;
	return !result;
}

bool shunt_transfer_odd_send(int fd, struct shunt_stream *stream, int *flags)
{
	*flags &= ~SEND_NOTHING;
	if (!(*flags & ~SHUNT_SEND_FLAGS))
		return true;
	go_back(fd, stream);
	return false;
}

/*
 * Waiting without taking (PEEK and WAITALL) is for the kernel: its queue is one, whatever was switched. Where the
 * stream cannot go back it has ended, and there is nothing to wait for.
 */
bool shunt_transfer_odd_recv(int fd, struct shunt_stream *stream, int *flags)
{
	bool peeks_all = (*flags & (MSG_PEEK | MSG_WAITALL | MSG_DONTWAIT)) == (MSG_PEEK | MSG_WAITALL);
	bool odd;

	*flags &= ~RECV_NOTHING;
	odd = *flags & ~SHUNT_RECV_FLAGS;
	if (!peeks_all && !odd)
		return true;
	return !go_back(fd, stream) && !odd;
}

/* The kernel's call, with what the number means now: not one of our own. */
static ssize_t by_kernel(bool receives, int fd, const struct iovec *iov, int count, int flags)
{
	struct msghdr message = { .msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)count };
	struct shunt_file *file = shunt_lookup(fd);
	ssize_t moved;

	if (file && (file->kind == SHUNT_FILE_PRIVATE || file->kind == SHUNT_FILE_CLOSED))
		return -EBADF;
	moved = receives ? real(recvmsg)(fd, &message, flags) : real(sendmsg)(fd, &message, flags | MSG_NOSIGNAL);
	return moved < 0 ? -errno : moved;
}

ssize_t shunt_transfer_again(bool receives, int fd, const struct iovec *iov, int count, int flags)
{
	struct shunt_engine *engine = shunt_process.engine;
	struct shunt_stream *stream;
	ssize_t moved = -ERESTART;

	if (shunt_signal_defer.depth)
		return -ERESTART;
	while (moved == -ERESTART) {
		stream = shunt_as_stream(shunt_lookup(fd));
		if (!stream || shunt_stream_is_plain(stream))
			return by_kernel(receives, fd, iov, count, flags);
		moved = receives ? shunt_inside(shunt_stream_recv(engine, fd, stream, iov, count, flags)) :
				   shunt_inside(shunt_stream_send(engine, fd, stream, iov, count, flags));
	}
	return moved;
}

ssize_t shunt_transfer_recv_nothing(int fd, struct shunt_stream *stream, int flags, bool fault)
{
	char byte;
	struct iovec piece = { .iov_base = &byte, .iov_len = 1 };
	ssize_t got = shunt_result(shunt_transfer_receive(fd, stream, &piece, 1,
							  (flags & ~MSG_TRUNC) | MSG_PEEK));

	if (got > 0 && fault)
		return shunt_fail(EFAULT);
	return got < 0 ? -1 : 0;
}

ssize_t shunt_transfer_sigpipe(void)
{
	raise(SIGPIPE);
	return -EPIPE;
}

#define ONE_BUFFER 32768	/* what the kernel copies to or from one of its buffers, whole or not at all */

/*
 * Checks an array as the kernel's import_iovec() does. `*count` becomes the number of pieces to use:
 * the array is cut before a bad pointer, and where it would exceed SHUNT_TRANSFER_MAX. `first` is
 * for a single piece that does that alone. Returns the bytes asked for, or -errno.
 */
static ssize_t check(const struct iovec **iov, int *count, struct iovec *first, bool discards)
{
	size_t asked = 0, total = 0;
	int use = *count, i;

	for (i = 0; i < *count; i++)
		if ((ssize_t)(*iov)[i].iov_len < 0)
			return -EINVAL;
	for (i = 0; i < *count; i++) {
		size_t bytes = (*iov)[i].iov_len;

		if (shunt_bad_span((*iov)[i].iov_base, *count == 1 ? shunt_clip(bytes) : bytes))
			return -EFAULT;
		if (i < use && bytes && shunt_bad_pointer((*iov)[i].iov_base) && !discards)
			use = i;
		if (i < use && total + bytes > SHUNT_TRANSFER_MAX)
			use = i;
		if (i < use)
			total += bytes;
		asked = shunt_clip(asked + shunt_clip(bytes));
	}
	if (!total && asked && use < *count && !shunt_bad_pointer((*iov)[use].iov_base)) {
		*first = (struct iovec) { (*iov)[use].iov_base, SHUNT_TRANSFER_MAX };
		*iov = first;
		use = 1;
	}
	*count = use;
	return (ssize_t)asked;
}

/* Bytes of an array that was cut before a bad pointer. */
static size_t usable(const struct iovec *iov, int count)
{
	size_t bytes = 0;

	while (count-- > 0)
		bytes += iov[count].iov_len;
	return bytes;
}

/* Is what would go into the good pieces followed by something for the bad one? */
static bool reaches_bad(int fd, struct shunt_stream *stream, size_t good, size_t asked)
{
	return unlikely(good < asked) && good < ONE_BUFFER &&
	       shunt_inside(shunt_stream_inq(shunt_process.engine, fd, stream)) > (ssize_t)good;
}

ssize_t shunt_transfer_recv(int fd, struct shunt_stream *stream, const struct iovec *iov, int count,
			    int flags)
{
	struct iovec first;
	ssize_t asked = check(&iov, &count, &first, flags & MSG_TRUNC);
	size_t good = usable(iov, asked < 0 ? 0 : count);

	shunt_cancellation_point();
	if (asked < 0)
		return shunt_fail((int)-asked);
	if (!good)
		return shunt_transfer_recv_nothing(fd, stream, flags, asked);
	if (reaches_bad(fd, stream, good, (size_t)asked))
		return shunt_fail(EFAULT);
	return shunt_result(shunt_transfer_receive(fd, stream, iov, count, flags));
}

ssize_t shunt_transfer_send(int fd, struct shunt_stream *stream, const struct iovec *iov, int count,
			    int flags)
{
	struct iovec first;
	ssize_t asked = check(&iov, &count, &first, false);
	size_t good = usable(iov, asked < 0 ? 0 : count);

	shunt_cancellation_point();
	if (asked < 0)
		return shunt_fail((int)-asked);
	if (unlikely(good < (size_t)asked) && good < ONE_BUFFER)
		return shunt_fail(EFAULT);
	return shunt_result(shunt_transfer_broken(shunt_transfer_transmit(fd, stream, iov, count, flags), flags));
}
