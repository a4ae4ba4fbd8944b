/* SPDX-License-Identifier: MIT */
/*
 * The end of a stream's directions: shutdown(), and the part of close() that is like it. On the link the end goes behind
 * everything sent; the kernel's may have to wait until then.
 */
#ifndef SHUNT_CORE_STREAM_SHUTDOWN_H
#define SHUNT_CORE_STREAM_SHUTDOWN_H

#include <stdbool.h>

struct shunt_stream;

/* FIN of a direction that has ended. With nonces only behind ours: before, the kernel's end says it. tx.lock held. */
void shunt_tx_say_end(struct shunt_stream *stream);
/* The end of the direction, behind everything sent. tx.lock held. */
void shunt_tx_finish(struct shunt_stream *stream);
/* The same, but the lane is not kicked. True: the caller has to, and may add work before. tx.lock held. */
bool shunt_tx_finish_unkicked(struct shunt_stream *stream);
/* The same, and the end of the kernel's socket `fd`, then or when it may be. */
void shunt_tx_end(struct shunt_stream *stream, int fd);

#endif
