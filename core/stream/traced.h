/* SPDX-License-Identifier: MIT */
/*
 * Sends that are followed (XR-25, XR-26, XR-29): SHUNT_TRACE chooses one in 2^K of each stream. A program that reads a
 * followed send of its peer and then sends on the same stream has that send followed, too, as its answer.
 */
#ifndef SHUNT_CORE_STREAM_TRACED_H
#define SHUNT_CORE_STREAM_TRACED_H

#include <stdint.h>
#include <sys/types.h>

struct shunt_engine;
struct shunt_lane;
struct shunt_stream;
struct shunt_tx;

enum {
	SHUNT_TRACES_OURS = 1, /* SHUNT_TRACE is on */
	SHUNT_TRACES_PEERS = 2, /* a peer may write records: answers are followed */
};

/* SHUNT_TRACE has another value, or a peer follows its sends. 0, or -ENOMEM and nothing is followed. Any thread. */
int shunt_traced_begin(struct shunt_engine *engine, uint8_t traces);
void shunt_traced_config(struct shunt_engine *engine);

/* The program's call begins, and is over. engine.traces was not 0 when it began; tx.lock held. */
void shunt_traced_call(struct shunt_engine *engine, struct shunt_stream *stream, size_t bytes);
void shunt_traced_sent(struct shunt_engine *engine, struct shunt_stream *stream, ssize_t taken);

/* The lane's `followed` is set, and bytes of the stream up to `tail` are about to be announced. group.lock held. */
void shunt_traced_arrive(struct shunt_engine *engine, struct shunt_lane *lane,
			 struct shunt_stream *stream, uint64_t tail);
/* The program has read up to `head`, which is at rx.followed or behind it. rx.lock held. */
void shunt_traced_read(struct shunt_engine *engine, struct shunt_stream *stream, uint64_t head);

/* The stream leaves its seat: what is known of its sends is not true of the next one there. */
void shunt_traced_leave(struct shunt_stream *stream);
void shunt_traced_free(struct shunt_tx *tx);
/* In a fork's child. */
void shunt_traced_inherit(struct shunt_stream *stream);

#endif
