/* SPDX-License-Identifier: MIT */
/*
 * Sending: sendmsg() without ancillary data, on whichever track the direction is.
 */
#ifndef SHUNT_CORE_STREAM_TX_H
#define SHUNT_CORE_STREAM_TX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct shunt_engine;
struct shunt_iov;
struct shunt_stream;

/* TCP_CORK was set or cleared. */
void shunt_stream_corked(struct shunt_stream *stream, bool on);
/* Bytes that wait for more that was announced wait no longer. tx.lock held. */
void shunt_stream_push(struct shunt_stream *stream);
/* The peer has closed: the kernel takes what is sent, gets a reset for it, and says so to the next call. tx.lock held. */
void shunt_tx_leave_link(struct shunt_engine *engine, int fd, struct shunt_stream *stream);

/* --- what a send consists of, for bytes that are not in memory yet (pull.c). All with tx.lock held. --- */

/* May the next bytes go, and on which track? 0, -EAGAIN or -errno. A switch that is due makes *bytes fewer. */
int shunt_tx_prepare(struct shunt_engine *engine, int fd, struct shunt_stream *stream,
		     size_t *bytes);
/* The same for bytes that are to go over TCP. */
int shunt_tx_ready_tcp(struct shunt_engine *engine, int fd, struct shunt_stream *stream);
/* A send, as shunt_stream_send() makes it. */
ssize_t shunt_tx_transmit(struct shunt_engine *engine, int fd, struct shunt_stream *stream,
			  struct shunt_iov *from, int flags);
/* The kernel could not deliver what comes before the link's bytes: -errno. */
int shunt_tx_reset_before(struct shunt_stream *stream);
/* The peer is told that a sender waits for room in its ring. */
void shunt_tx_say_blocked(struct shunt_stream *stream);
/*
 * After -EAGAIN, in a call that has sent `done` bytes and may `wait` for room. 0: to be tried again, or -errno. *deadline
 * (SO_SNDTIMEO) is 0 before the first wait of a call. The lock is given up meanwhile.
 */
int shunt_tx_wait(struct shunt_engine *engine, int *fd, struct shunt_stream *stream,
		  uint64_t *deadline, size_t done, bool wait);
/* The result of a call that has sent `done` bytes: an error behind them is kept for the next call. */
ssize_t shunt_tx_result(struct shunt_stream *stream, size_t done, ssize_t result);

#endif
