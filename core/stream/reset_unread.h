/* SPDX-License-Identifier: MIT */
/*
 * The link has brought bytes to a peer that had closed by then. The kernel answers such bytes with a reset. The
 * sender's program learns of it by its next calls: EPIPE, POLLHUP, no name of a peer. The peer's engine sends no more
 * messages of that stream. So the sender's engine has the kernel report it: a byte to the socket that the peer has
 * closed, too.
 */
#ifndef SHUNT_CORE_STREAM_RESET_UNREAD_H
#define SHUNT_CORE_STREAM_RESET_UNREAD_H

#include "core/stream/stream.h"

struct shunt_task;

/* RELEASE has come: the peer had read up to `upto`. Under the group's lock. */
void shunt_reset_unread_heard(struct shunt_engine *engine, struct shunt_stream *stream, uint64_t upto);
/* The stream leaves the link of a peer that has closed: the kernel is to answer what that has not read. tx.lock held. */
void shunt_reset_unread_answer(struct shunt_engine *engine, int fd, struct shunt_stream *stream);
/* The same of all such streams, whose programs may call nothing more. */
void shunt_reset_unread_run(struct shunt_task *task);

#endif
