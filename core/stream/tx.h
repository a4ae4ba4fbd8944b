/* SPDX-License-Identifier: MIT */
/*
 * Sending: sendmsg() without ancillary data, on whichever track the direction is.
 */
#ifndef SHUNT_CORE_STREAM_TX_H
#define SHUNT_CORE_STREAM_TX_H

#include <stdbool.h>

struct shunt_engine;
struct shunt_stream;

/* TCP_CORK was set or cleared. */
void shunt_stream_corked(struct shunt_stream *stream, bool on);
/* Bytes that wait for more that was announced wait no longer. tx.lock held. */
void shunt_stream_push(struct shunt_stream *stream);
/* The peer has closed: the kernel takes what is sent, gets a reset for it, and says so to the next call. tx.lock held. */
void shunt_tx_leave_link(struct shunt_engine *engine, int fd, struct shunt_stream *stream);

#endif
