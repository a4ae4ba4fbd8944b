/* SPDX-License-Identifier: MIT */
/* Questions to the kernel's socket of a stream, and a reset of it, beside its bytes. */
#ifndef SHUNT_CORE_STREAM_KERNEL_TCP_H
#define SHUNT_CORE_STREAM_KERNEL_TCP_H

#include <stdbool.h>

struct shunt_sys;
struct shunt_stream;

/* The kernel's connection is over, in order or by a reset. */
bool shunt_stream_tcp_closed(struct shunt_stream *stream);
/* The peer's FIN has come to the kernel, read or not. */
bool shunt_stream_tcp_ended(struct shunt_stream *stream);
/*
 * The stream has become the kernel's while a call of ours has done a part, and the connection is over. The next call
 * asks the kernel, so the error must stay there.
 */
bool shunt_streams_kernel_fails(const struct shunt_stream *stream, int fd);
/* Ends the TCP connection as a reset does. */
void shunt_streams_reset_tcp(const struct shunt_sys *sys, int fd);
/* close() of it would be a reset: something is unread, or SO_LINGER says so. tx.lock held, as for the next two. */
bool shunt_streams_resets(struct shunt_stream *stream, int fd);
bool shunt_streams_loses(struct shunt_stream *stream, int fd);
bool shunt_streams_lingers_zero(struct shunt_stream *stream, int fd);

#endif
