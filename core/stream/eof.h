/* SPDX-License-Identifier: MIT */
/*
 * How a stream ends for its reader: on the link by FIN or RESET, on TCP by the kernel's word, and told once. rx.lock held.
 */
#ifndef SHUNT_CORE_STREAM_EOF_H
#define SHUNT_CORE_STREAM_EOF_H

#include <stdbool.h>
#include <sys/types.h>

struct shunt_stream;

/* Nothing to read: is that the end? 0: it is, -EAGAIN: it is not, or the error that ends it. */
ssize_t shunt_eof_reached(struct shunt_stream *stream);
/* TCP has ended where more was to come: once, as a reset is told. -ECONNRESET, or 0. */
ssize_t shunt_eof_in_doubt(struct shunt_stream *stream, int fd);
/* The kernel has reported the end: is it the stream's? */
bool shunt_eof_counts(struct shunt_stream *stream);
/* It is: what the program is told. 0, or -ECONNRESET where bytes are missing. */
ssize_t shunt_eof_of_tcp(struct shunt_stream *stream, int fd);

/* A reset's error, 0 when it has been reported. */
int shunt_stream_pop_error(struct shunt_stream *stream);
/* The kernel says an error once, and has said it to us instead of the program. */
void shunt_stream_was_reset(struct shunt_stream *stream, int error);

#endif
