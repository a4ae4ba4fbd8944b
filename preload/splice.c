/* SPDX-License-Identifier: MIT */
/*
 * splice() between a stream and a pipe. The engine copies (core/stream/pour.c, pull.c). The kernel takes pages, which a link has
 * not. Everything else that the call may be given, the kernel refuses for a socket.
 *
 * The kernel looks at the pipe first, at the socket then. SPLICE_F_NONBLOCK is about the pipe, as its O_NONBLOCK is; the
 * socket's O_NONBLOCK is about the socket.
 */
#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include "preload/rights.h"
#include "preload/transfer.h"

#define FLAGS (SPLICE_F_MOVE | SPLICE_F_NONBLOCK | SPLICE_F_MORE | SPLICE_F_GIFT)
#define WHOLE 4096	/* PIPE_BUF: a pipe with room takes so many whole */

/* --- one piece, without waiting. The engine holds a lock of the stream. --- */

/* Before Linux 6.4 RWF_NOWAIT is unknown to pipes, and at any time to those with a name. */
static bool is_unknown(ssize_t moved)
{
	return moved < 0 && (errno == EOPNOTSUPP || errno == EINVAL || errno == ENOSYS);
}

static bool is_ready(int pipe, short events)
{
	struct pollfd ask = { .fd = pipe, .events = events };

	return real(poll)(&ask, 1, 0) > 0;
}

/* Another writer may fill the pipe after the look at it. The call then waits for its reader, with the lock held. */
static ssize_t give_by_halves(int pipe, const void *bytes, size_t count)
{
	int flags = real(fcntl)(pipe, F_GETFL);

	if (flags >= 0 && flags & O_NONBLOCK)
		return real(syscall)(SYS_write, pipe, bytes, count);
	if (!is_ready(pipe, POLLOUT))
		return shunt_fail(EAGAIN);
	return real(syscall)(SYS_write, pipe, bytes, count < WHOLE ? count : WHOLE);
}

static ssize_t take_by_halves(int pipe, void *bytes, size_t count)
{
	if (!is_ready(pipe, POLLIN))
		return shunt_fail(EAGAIN);
	return real(syscall)(SYS_read, pipe, bytes, count);
}

static ssize_t give(int pipe, const void *bytes, size_t count)
{
	struct iovec piece = { .iov_base = (void *)bytes, .iov_len = count };
	int saved = errno;
	ssize_t given = real(syscall)(SYS_pwritev2, pipe, &piece, 1, -1L, -1L, RWF_NOWAIT);

	if (unlikely(is_unknown(given)))
		given = give_by_halves(pipe, bytes, count);
	if (given < 0)
		given = errno == EAGAIN ? -ENOBUFS : -errno;
	errno = saved;
	return given;
}

static ssize_t take(int pipe, void *bytes, size_t count)
{
	struct iovec piece = { .iov_base = bytes, .iov_len = count };
	int saved = errno;
	ssize_t taken = real(syscall)(SYS_preadv2, pipe, &piece, 1, -1L, -1L, RWF_NOWAIT);

	if (unlikely(is_unknown(taken)))
		taken = take_by_halves(pipe, bytes, count);
	if (taken < 0)
		taken = errno == EAGAIN ? 0 : -errno;
	errno = saved;
	return taken;
}

/* --- waiting for the pipe --- */

/* Its events, or -errno. Handlers that have come meanwhile let the call begin anew where that is the kernel's way. */
static int await(int pipe, short events)
{
	struct pollfd ask = { .fd = pipe, .events = events };
	int result = shunt_wait_poll(shunt_process.engine, &ask, 1, NULL, NULL);

	if (result == -EINTR && shunt_signal_defer.late == SHUNT_SIGNAL_RESTARTS)
		return -ERESTART;
	return result < 0 ? result : ask.revents;
}

static int look_at_pipe(int pipe, short events, bool waits)
{
	struct pollfd ask = { .fd = pipe, .events = events };

	if (real(poll)(&ask, 1, 0) > 0)
		return ask.revents;
	return waits ? shunt_inside(await(pipe, events)) : -EAGAIN;
}

/* --- the two directions. -ERESTART: to begin anew, with whatever the numbers mean by then. --- */

static ssize_t to_pipe(int in, struct shunt_stream *stream, int pipe, size_t bytes, bool waits)
{
	struct iovec piece;
	ssize_t moved;
	char byte;
	int events;

	for (;;) {
		events = look_at_pipe(pipe, POLLOUT, waits);
		if (events < 0)
			return events;
		if (events & POLLERR)	/* nobody reads it */
			return shunt_transfer_sigpipe();
		moved = shunt_inside(
			shunt_stream_pour(shunt_process.engine, in, stream, pipe, give, bytes));
		if (moved == -ENOBUFS)	/* another writer has filled it */
			continue;
		if (moved != -EAGAIN)
			return moved;
		piece = (struct iovec) { .iov_base = &byte, .iov_len = 1 };
		moved = shunt_inside(
			shunt_stream_recv(shunt_process.engine, in, stream, &piece, 1, MSG_PEEK));
		if (moved <= 0)
			return moved;
	}
}

static ssize_t from_pipe(int pipe, int out, struct shunt_stream *stream, size_t bytes, bool waits,
			 bool more)
{
	ssize_t moved;
	int events;

	for (;;) {
		events = look_at_pipe(pipe, POLLIN, waits);
		if (events < 0)
			return events;
		if (!(events & POLLIN))	/* nobody writes to it any more */
			return 0;
		moved = shunt_inside(shunt_stream_pull(shunt_process.engine, out, stream, pipe,
						       take, bytes, more));
		if (moved)	/* otherwise another reader has emptied it */
			return shunt_transfer_broken(moved, 0);
	}
}

/* --- the call --- */

/* O_NONBLOCK of a pipe that is open for this, or -1: the kernel has an error to say. */
static int mode_of(int pipe, int access)
{
	int saved = errno, flags = real(fcntl)(pipe, F_GETPIPE_SZ);

	if (flags >= 0)
		flags = real(fcntl)(pipe, F_GETFL);
	errno = saved;
	if (flags < 0 || ((flags & O_ACCMODE) != access && (flags & O_ACCMODE) != O_RDWR))
		return -1;
	return flags & O_NONBLOCK;
}

/* The kernel writes to nothing that appends, not even to a socket. */
static bool appends(int out)
{
	int saved = errno, flags = real(fcntl)(out, F_GETFL);

	errno = saved;
	return flags >= 0 && flags & O_APPEND;
}

/* -ERESTART as above. */
static ssize_t by_engine(int in, struct shunt_stream *from, int out, struct shunt_stream *to,
			 size_t bytes, unsigned int flags, int mode)
{
	bool waits = !(flags & SPLICE_F_NONBLOCK) && !mode;

	shunt_cancellation_point();
	if (from)
		return to_pipe(in, from, out, shunt_clip(bytes), waits);
	return from_pipe(in, out, to, shunt_clip(bytes), waits, flags & SPLICE_F_MORE);
}

/* In a child of vfork() the streams are the parent's. */
static void retire(int in, const struct shunt_stream *from, int out, const struct shunt_stream *to)
{
	int saved = errno;

	if (from)
		shunt_rights_retire(in, SHUNT_CAUSE_SPLICE);
	if (to)
		shunt_rights_retire(out, SHUNT_CAUSE_SPLICE);
	errno = saved;
}

ssize_t splice(int in, off64_t *in_offset, int out, off64_t *out_offset, size_t bytes,
	       unsigned int flags)
{
	struct shunt_stream *from = shunt_linked(&in), *to = shunt_linked(&out);
	bool refused = in_offset || out_offset || !bytes || flags & ~(unsigned int)FLAGS;
	ssize_t moved = -ERESTART;
	int mode;

	if (likely(!from && !to))
		return real(splice)(in, in_offset, out, out_offset, bytes, flags);
	if (unlikely(shunt_process_foreign()))
		retire(in, from, out, to);
	else
		while (!refused && !from != !to && moved == -ERESTART) {
			mode = from ? mode_of(out, O_WRONLY) : mode_of(in, O_RDONLY);
			if (mode < 0 || (to && ((ssize_t)bytes < 0 || appends(out))))
				break;
			moved = by_engine(in, from, out, to, bytes, flags, mode);
			from = shunt_linked(&in);
			to = shunt_linked(&out);
		}
	if (moved != -ERESTART)
		return shunt_result(moved);
	return real(splice)(in, in_offset, out, out_offset, bytes, flags);
}
