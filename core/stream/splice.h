/* SPDX-License-Identifier: MIT */
/* splice() between a stream and a pipe, by copies: pour.c, pull.c. */
#ifndef SHUNT_CORE_STREAM_SPLICE_H
#define SHUNT_CORE_STREAM_SPLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct shunt_engine;
struct shunt_stream;

/*
 * `give` and `take` move up to `bytes` to or from the pipe without waiting,
 * with a lock of the stream held: how many, or -errno. -ENOBUFS: the pipe is full, 0: it is empty. Bytes that the pipe does not
 * take stay in the stream, and no more are taken from a pipe than the stream has room for.
 */
typedef ssize_t shunt_give(int pipe, const void *bytes, size_t count);
typedef ssize_t shunt_take(int pipe, void *bytes, size_t count);
/*
 * Does not wait. Bytes, or -errno. 0: the end of the stream; -EAGAIN: it has none now; -ENOBUFS.
 * -ERESTART: begin anew, because the stream may be the kernel's by now.
 */
ssize_t shunt_stream_pour(struct shunt_engine *engine, int fd, struct shunt_stream *stream,
			  int pipe, shunt_give *give, size_t bytes);
/*
 * Waits for room in the stream, like shunt_stream_send(), and for nothing in the pipe. Bytes; 0: the pipe was empty; -ERESTART
 * as above; or -errno. `more`: as MSG_MORE.
 */
ssize_t shunt_stream_pull(struct shunt_engine *engine, int fd, struct shunt_stream *stream,
			  int pipe, shunt_take *take, size_t bytes, bool more);

#endif
