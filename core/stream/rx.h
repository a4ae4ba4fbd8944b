/* SPDX-License-Identifier: MIT */
/*
 * Receiving: recvmsg() without ancillary data, from whichever track carries the next byte.
 */
#ifndef SHUNT_CORE_STREAM_RX_H
#define SHUNT_CORE_STREAM_RX_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct shunt_engine;
struct shunt_iov;
struct shunt_stream;

uint64_t shunt_stream_deadline(struct shunt_engine *engine, int fd, struct shunt_stream *stream,
			       bool receive);
/* A receive, as shunt_stream_recv() makes it. rx.lock held; it is given up only where nothing is there. */
ssize_t shunt_rx_receive(struct shunt_engine *engine, int fd, struct shunt_stream *stream,
			 struct shunt_iov *to, int flags);

#endif
