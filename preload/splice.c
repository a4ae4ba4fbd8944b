/* SPDX-License-Identifier: MIT */
/* splice(): bytes that go through pipes. */
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include "preload/rights.h"
#include "preload/transfer.h"

static bool is_pipe(int fd)
{
	struct stat status;
	int saved = errno;
	bool fifo = !fstat(fd, &status) && S_ISFIFO(status.st_mode);

	errno = saved;
	return fifo;
}

/*
 * A stream that has ended and cannot go back to the kernel: its bytes are copied. At most PIPE_BUF,
 * which a pipe with room always takes whole.
 */
static ssize_t carry(int in, struct shunt_stream *stream, int pipe, size_t bytes, unsigned int flags)
{
	struct pollfd room = { .fd = pipe, .events = POLLOUT };
	char buffer[PIPE_BUF];
	ssize_t got;

	if (flags & SPLICE_F_NONBLOCK && real(poll)(&room, 1, 0) == 0)
		return shunt_fail(EAGAIN);
	got = shunt_recv_one(in, stream, buffer, bytes < sizeof(buffer) ? bytes : sizeof(buffer), MSG_PEEK);
	if (got > 0)
		got = real(write)(pipe, buffer, (size_t)got);
	return got > 0 ? shunt_recv_one(in, stream, buffer, (size_t)got, 0) : got;
}

/* A thread that is cancelled has not begun. */
static ssize_t carry_uncancelled(int in, struct shunt_stream *stream, int pipe, size_t bytes, unsigned int flags)
{
	ssize_t got;

	shunt_cancellation_point();
	shunt_thread_hold_cancel();
	got = carry(in, stream, pipe, bytes, flags);
	shunt_thread_let_cancel();
	return got;
}

/* In a child of vfork() the stream is the parent's. */
static void retire_input(int fd, struct shunt_stream *stream, unsigned int flags)
{
	int saved = errno;

	if (shunt_process_foreign())
		shunt_rights_retire(fd, SHUNT_REASON_SPLICE);
	else
		shunt_inside(shunt_stream_retire_input(shunt_process.engine, fd, stream,
						       SHUNT_REASON_SPLICE,
						       flags & SPLICE_F_NONBLOCK));
	errno = saved;
}

static bool retire_output(int fd, struct shunt_stream *stream)
{
	int saved = errno, result = 0;

	if (shunt_process_foreign())
		shunt_rights_retire(fd, SHUNT_REASON_SPLICE);
	else
		result = shunt_inside(shunt_stream_retire_output(shunt_process.engine, fd, stream,
								 SHUNT_REASON_SPLICE));
	errno = saved;
	return result != -EAGAIN;
}

/*
 * Pages move between pipe and socket inside the kernel: the stream must be there too. A call that must not wait has its
 * input copied until the peer has handed the stream back.
 */
ssize_t splice(int in, off64_t *in_offset, int out, off64_t *out_offset, size_t bytes,
	       unsigned int flags)
{
	struct shunt_stream *stream = shunt_linked(&in), *to = shunt_linked(&out);

	if (unlikely(to) && !retire_output(out, to))
		return shunt_fail(EAGAIN);
	if (unlikely(stream)) {
		retire_input(in, stream, flags);
		if (!shunt_stream_is_plain(stream) && !in_offset && !out_offset && bytes && is_pipe(out))
			return carry_uncancelled(in, stream, out, bytes, flags);
	}
	return real(splice)(in, in_offset, out, out_offset, bytes, flags);
}
