#include "preload/transfer.h"

/* For TCP the kernel takes these and does nothing. */
#define SEND_NOTHING (MSG_CONFIRM | MSG_DONTROUTE | MSG_EOR | MSG_PEEK | MSG_TRUNC | MSG_WAITALL | \
		      MSG_CMSG_CLOEXEC | MSG_WAITFORONE)
#define RECV_NOTHING (MSG_CONFIRM | MSG_DONTROUTE | MSG_EOR | MSG_MORE | MSG_WAITFORONE)

static bool served(int fd, struct shunt_stream *stream, int *flags, int nothing, int serves)
{
	int saved = errno;

	*flags &= ~nothing;
	if (!(*flags & ~serves))
		return true;
	shunt_stream_retire(shunt_process.engine, fd, stream, "a flag of send or recv");
	errno = saved;
	return false;
}

bool shunt_transfer_odd_send(int fd, struct shunt_stream *stream, int *flags)
{
	return served(fd, stream, flags, SEND_NOTHING, SHUNT_SEND_FLAGS);
}

bool shunt_transfer_odd_recv(int fd, struct shunt_stream *stream, int *flags)
{
	return served(fd, stream, flags, RECV_NOTHING, SHUNT_RECV_FLAGS);
}

ssize_t shunt_transfer_recv_nothing(int fd, struct shunt_stream *stream, int flags, bool fault)
{
	char byte;
	struct iovec piece = { .iov_base = &byte, .iov_len = 1 };
	ssize_t got = shunt_result(shunt_stream_recv(shunt_process.engine, fd, stream, &piece, 1,
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

/*
 * Checks an array as the kernel's import_iovec() does. `*count` becomes the number of pieces to use:
 * the array is cut before a bad pointer, and where it would exceed SHUNT_TRANSFER_MAX. `first` is
 * for a single piece that does that alone. Returns the bytes asked for, or -EINVAL.
 */
static ssize_t check(const struct iovec **iov, int *count, struct iovec *first, bool discards)
{
	size_t asked = 0, total = 0;
	int use = *count, i;

	for (i = 0; i < *count; i++) {
		size_t bytes = (*iov)[i].iov_len;

		if ((ssize_t)bytes < 0)
			return -EINVAL;
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

static bool nothing_usable(const struct iovec *iov, int count)
{
	while (count-- > 0)
		if (iov[count].iov_len)
			return false;
	return true;
}

ssize_t shunt_transfer_recv(int fd, struct shunt_stream *stream, const struct iovec *iov, int count,
			    int flags)
{
	struct iovec first;
	ssize_t asked = check(&iov, &count, &first, flags & MSG_TRUNC);

	if (asked < 0)
		return shunt_fail((int)-asked);
	if (nothing_usable(iov, count))
		return shunt_transfer_recv_nothing(fd, stream, flags, asked);
	return shunt_result(shunt_stream_recv(shunt_process.engine, fd, stream, iov, count, flags));
}

ssize_t shunt_transfer_send(int fd, struct shunt_stream *stream, const struct iovec *iov, int count,
			    int flags)
{
	struct iovec first;
	ssize_t asked = check(&iov, &count, &first, false);

	if (asked > 0 && nothing_usable(iov, count))
		return shunt_fail(EFAULT);
	if (asked < 0)
		return shunt_fail((int)-asked);
	return shunt_result(shunt_transfer_broken(
		shunt_stream_send(shunt_process.engine, fd, stream, iov, count, flags), flags));
}
