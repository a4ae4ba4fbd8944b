/* SPDX-License-Identifier: MIT */
/*
 * Bytes of a stream that only we have, and that are for TCP. The peer wants bytes of the link again, or the nonce,
 * and the socket has no room. The service thread writes them on a descriptor of its own when it has some.
 *
 * If the process is killed meanwhile, its sockets end with it, and an end would look orderly. So such a socket
 * lingers for no time (SO_LINGER), which makes that a reset. The program's value comes back when the backlog is
 * empty.
 */
#ifndef SHUNT_CORE_STREAM_BACKLOG_H
#define SHUNT_CORE_STREAM_BACKLOG_H

#include <stdlib.h>
#include "core/stream/stream.h"

/* Room for so many bytes behind what is to be written to TCP; NULL: no memory. */
uint8_t *shunt_backlog_add(struct shunt_stream *stream, size_t bytes)
	SHUNT_REQUIRES(stream->tx.lock);
/* The last `bytes` of it were not to be added after all. */
void shunt_backlog_drop(struct shunt_stream *stream, size_t bytes)
	SHUNT_REQUIRES(stream->tx.lock);
static inline void shunt_backlog_free(struct shunt_stream *stream)
{
	if (stream->tx.backlog.bytes != stream->tx.nonce)
		free(stream->tx.backlog.bytes);
	stream->tx.backlog.bytes = NULL;
}
/* How many bytes of the stream wait for TCP; a nonce has none of these. tx.lock held. */
static inline size_t shunt_backlog_left(const struct shunt_tx *tx)
{
	return tx->backlog.bytes && tx->backlog.bytes != tx->nonce ?
		       tx->backlog.size - tx->backlog.done :
		       0;
}

/* tx.backlog.bytes will be written, even if the program closes the stream. */
void shunt_backlog_await(struct shunt_stream *stream)
	SHUNT_REQUIRES(stream->tx.lock);
/* The same on a descriptor of our own, which is the backlog's from now on; -1: on a copy. */
void shunt_backlog_await_on(struct shunt_stream *stream, int fd)
	SHUNT_REQUIRES(stream->tx.lock);
/* Writes what must go over TCP again. 0, or -errno while some is left. */
int shunt_backlog_write(struct shunt_engine *engine, int fd, struct shunt_stream *stream)
	SHUNT_REQUIRES(stream->tx.lock);
/* An event of the descriptor of our own; nothing happens if there is none. Service thread. */
void shunt_backlog_moves(struct shunt_stream *stream, uint32_t events);
/*
 * The service thread waits for room no longer: all of it has been written, or nobody will get it. The caller lets go of
 * the stream, which was held.
 */
void shunt_backlog_over(struct shunt_stream *stream) SHUNT_REQUIRES(stream->tx.lock);
/* The nonce is here, or nobody waits for it any more: what comes now is refused. rx.lock held. */
void shunt_backlog_proven(struct shunt_stream *stream);
/* The program's SO_LINGER of the stream's socket is not the kernel's now: it is this. tx.lock held. */
bool shunt_backlog_linger(const struct shunt_stream *stream, struct linger *linger);
/* The program has set it. */
void shunt_backlog_linger_changed(struct shunt_stream *stream);

#endif
