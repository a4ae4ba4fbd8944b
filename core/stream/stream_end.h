/* SPDX-License-Identifier: MIT */
/* How a stream ends: its last number is closed, and both tracks say so, in order or by a reset. */
#ifndef SHUNT_CORE_STREAM_STREAM_END_H
#define SHUNT_CORE_STREAM_STREAM_END_H

#include "core/stream/stream.h"

/* Calls of a stream's end into rooms above it; set with the engine, and never changed. No lock held. */
struct shunt_births;

struct shunt_end_hooks {
	/* Its registrations leave their epoll sets. */
	void (*unwatch)(struct shunt_engine *engine, struct shunt_stream *stream);
	/* It listened: its address is offered no more, unless another listens there. */
	void (*withdraw)(struct shunt_engine *engine, struct shunt_stream *stream);
	/* core/born.h */
	struct shunt_births *(*births)(struct shunt_engine *engine, struct shunt_stream *stream);
	void (*births_end)(struct shunt_engine *engine, struct shunt_stream *listener);
	void (*births_bar)(struct shunt_engine *engine, struct shunt_stream *listener);
	bool (*births_look)(struct shunt_engine *engine);
	/* core/stream/destroyed.h; rx.lock held */
	void (*bypassed)(struct shunt_stream *stream, int bytes);
};

/* After a wait, a lock of the stream held: does *fd still mean it? A closed number is replaced by ours. */
bool shunt_streams_still(struct shunt_engine *engine, int *fd, struct shunt_stream *stream);
/* Its last number, `fd`, is closed. No lock held. */
void shunt_streams_end(struct shunt_engine *engine, struct shunt_stream *stream, int fd);
/*
 * A number is closed while a thread is inside a blocking call on it. The call goes on, and the connection ends with
 * it, as with the kernel's reference. False: no thread is. A thread that has just been woken and uses the number is
 * waited for: it may be another file's soon. No lock held.
 */
bool shunt_streams_orphan(struct shunt_engine *engine, struct shunt_stream *stream, int fd);
/* The call under which it was closed is over. No lock held. */
void shunt_streams_end_orphan(struct shunt_stream *stream);
/* A close that resets (kernel_tcp.h), on both tracks. tx.lock held. */
void shunt_streams_reset(struct shunt_engine *engine, struct shunt_stream *stream, int fd);

#endif
