/* SPDX-License-Identifier: MIT */
/* sendfile() to a stream. sendfile() from a stream fails with EINVAL, because sockets cannot be mapped. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "preload/touch.h"
#include "preload/transfer.h"
#include "preload/young.h"

#define PIECE (64 * 1024)
#define SMALL 4096	/* a short answer's file: no memory is asked for */

/* One piece from the file at `at` to the stream: bytes, 0 at the end of the file, or -errno. */
static ssize_t file_move(int out, struct shunt_stream *stream, int in, off64_t at, char *buffer,
			 size_t bytes)
{
	struct iovec piece = { .iov_base = buffer };
	ssize_t got = pread64(in, buffer, bytes, at);

	if (got <= 0)	/* a directory has a position, but nothing to send */
		return got == 0 ? 0 : errno == EISDIR ? -EINVAL : -errno;
	piece.iov_len = (size_t)got;
	return shunt_transfer_broken(
		shunt_stream_send(shunt_process.engine, out, stream, &piece, 1, 0), 0);
}

/*
 * Bytes sent; -errno if none. Stops where the stream takes less than it is given, or the file has no more. *begins_anew:
 * some are sent, and the call would begin anew for the others.
 */
static ssize_t move_in_pieces(int out, struct shunt_stream *stream, int in, off64_t at,
			      size_t bytes, char *buffer, size_t piece, bool *begins_anew)
{
	size_t sent = 0;
	ssize_t moved = 0;

	while (sent < bytes) {
		size_t want = bytes - sent < piece ? bytes - sent : piece;

		moved = file_move(out, stream, in, at + (off64_t)sent, buffer, want);
		if (moved <= 0)
			break;
		sent += (size_t)moved;
		if ((size_t)moved < want)
			break;
	}
	*begins_anew = sent && moved == -ERESTART;
	return sent ? (ssize_t)sent : moved;
}

static ssize_t move_all(int out, struct shunt_stream *stream, int in, off64_t at, size_t bytes,
			bool *begins_anew)
{
	char small[SMALL], *buffer;
	ssize_t sent;

	if (bytes <= SMALL)
		return move_in_pieces(out, stream, in, at, bytes, small, SMALL, begins_anew);
	buffer = malloc(PIECE);
	if (!buffer)
		return -ENOMEM;
	sent = move_in_pieces(out, stream, in, at, bytes, buffer, PIECE, begins_anew);
	free(buffer);
	return sent;
}

/* *kernels: the stream became the kernel's in between, which has the rest to send. A handler that has come ends the call. */
static ssize_t send_file(int out, struct shunt_stream *stream, int in, off64_t *offset,
			 size_t bytes, bool *kernels)
{
	off64_t at = offset ? *offset : lseek64(in, 0, SEEK_CUR);
	bool anew = false;
	ssize_t sent = at < 0 ? -ESPIPE : move_all(out, stream, in, at, shunt_clip(bytes), &anew);

	if (sent > 0 && offset)
		*offset = at + sent;
	else if (sent > 0)
		lseek64(in, at + sent, SEEK_SET);
	*kernels = anew && !shunt_signal_defer.late && !shunt_linked(&out);
	return sent;
}

/* Unlike reading and sending, sendfile() is no cancellation point. */
static ssize_t send_all_uncancelled(int out, struct shunt_stream *stream, int in, off64_t *offset,
				    size_t bytes, bool *kernels)
{
	int state = shunt_cancel_off();
	ssize_t sent = send_file(out, stream, in, offset, bytes, kernels);

	shunt_cancel_restore(state);
	return sent;
}

/* -ESPIPE also where the kernel has the stream by now. */
static ssize_t send_file_uncancelled(int out, struct shunt_stream *stream, int in, off64_t *offset, size_t bytes)
{
	bool kernels = false;
	ssize_t sent, more;

	while ((sent = shunt_inside(send_all_uncancelled(out, stream, in, offset, bytes,
							 &kernels))) == -ERESTART) {
		stream = shunt_as_stream(shunt_lookup(out));
		if (!stream || shunt_stream_is_plain(stream))
			return -ESPIPE;
	}
	if (likely(!kernels))
		return sent;
	more = real(sendfile64)(out, in, offset, bytes - (size_t)sent);
	return more > 0 ? sent + more : sent;
}

static bool is_refused(const off64_t *offset)
{
	return offset && (shunt_unreadable(offset, sizeof(*offset)) || *offset < 0);
}

/* The kernel would send bytes before it finds out. */
static bool is_fixed(off64_t *offset)
{
	return offset && shunt_unwritable(offset, sizeof(*offset));
}

/* Unlike sending, this is no cancellation point. */
static bool send_young(struct shunt_young *young, ssize_t *sent, int in, off64_t *offset,
		       size_t bytes)
{
	if (!shunt_young_begins(shunt_process.engine, young))
		return false;
	*sent = real(syscall)(SYS_sendfile, young->fd, in, offset, bytes);
	shunt_young_ends(young, 0, *sent);
	return true;
}

/* The kernel refuses a send of 0 bytes, and a file without a position (a pipe, a socket, a wrong number). */
ssize_t sendfile64(int out, int in, off64_t *offset, size_t bytes)
{
	struct shunt_young *young = shunt_young_at(out);
	struct shunt_stream *stream;
	ssize_t sent = -ESPIPE;
	int saved = errno;

	if (unlikely(young) && send_young(young, &sent, in, offset, bytes))
		return sent;
	stream = shunt_linked(&out);
	if (stream && (ssize_t)bytes > 0 && !is_refused(offset))
		sent = is_fixed(offset) ? -EFAULT :
					  send_file_uncancelled(out, stream, in, offset, bytes);
	if (sent != -ESPIPE)
		return shunt_result(sent);
	errno = saved;
	return real(sendfile64)(out, in, offset, bytes);
}

/* off_t is off64_t here: Shunt is for 64-bit Linux. */
_Static_assert(sizeof(off_t) == sizeof(off64_t), "sendfile() and sendfile64() are one");
SHUNT_SAME(sendfile, sendfile64);
