/* SPDX-License-Identifier: MIT */
/*
 * The error of a connection, which the program is told once: by the kernel, or by the link, which may know first.
 * More of it is in api.h.
 */
#ifndef SHUNT_CORE_STREAM_STREAM_ERROR_H
#define SHUNT_CORE_STREAM_STREAM_ERROR_H

#include "core/stream/stream.h"

/* The kernel has told the program of the connection's end: the link need not, too. Returns -error. */
int shunt_stream_told_error(struct shunt_stream *stream, int error);
/* The kernel's error, which is taken for the program to be told; 0 if none. */
int shunt_stream_kernel_error(struct shunt_stream *stream);
/*
 * The stream cannot be left to the kernel, whose word would be wrong. It has told us of a reset, so that an end would
 * look orderly. Or the link has told of a reset that the kernel is still to hear of, and would tell again.
 */
bool shunt_stream_knows_more(struct shunt_stream *stream);
#endif
