/* SPDX-License-Identifier: MIT */
/*
 * Sends that are followed (XR-25, XR-26, XR-29): SHUNT_TRACE chooses one in 2^K of each stream. A program that reads a
 * followed send of its peer and then sends on the same stream has that send followed, too, as its answer.
 */
#ifndef SHUNT_CORE_STREAM_TRACED_H
#define SHUNT_CORE_STREAM_TRACED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "core/stream/stream.h"
#include "core/trace/followed.h"
#include "core/trace/pending.h"

/*
 * Parts of engine.traces: K + 1 of SHUNT_TRACE, 0: off; some stream has a rule of its own. And a peer may write
 * records, so answers are followed.
 */
enum { SHUNT_TRACES_OURS = 0x1f, SHUNT_TRACES_RULES = 0x40, SHUNT_TRACES_PEERS = 0x80 };

/* SHUNT_TRACE has another value, or a peer follows its sends. 0, or -ENOMEM and nothing is followed. Any thread. */
int shunt_traced_begin(struct shunt_engine *engine, uint8_t traces);
void shunt_traced_config(struct shunt_engine *engine);
/* One send in 2^(word - 1) of the stream is followed, whatever SHUNT_TRACE says. Before the stream is on a link. */
void shunt_traced_rule(struct shunt_engine *engine, struct shunt_stream *stream, uint8_t word);
/* Bytes of the stream go over TCP: its sends that wait to be posted are not followed any more. tx.lock held. */
void shunt_traced_abandon(struct shunt_engine *engine, struct shunt_stream *stream);

/* A call of send: nothing is followed; it only counts, between two that are followed; or it may be followed. */
enum shunt_traced { SHUNT_TRACED_NOT, SHUNT_TRACED_PASSED, SHUNT_TRACED_LOOKED_AT };

/* The program's call begins, and is over. tx.lock held, here and in the next two. */
void shunt_traced_call(struct shunt_engine *engine, struct shunt_stream *stream, uint8_t traces,
		       size_t bytes);
void shunt_traced_sent(struct shunt_engine *engine, struct shunt_stream *stream, ssize_t taken);

/* The same for each call, where engine.traces is `traces`, and not 0. */
static inline enum shunt_traced shunt_traced_enter(struct shunt_engine *engine,
						   struct shunt_stream *stream, uint8_t traces,
						   size_t bytes)
{
	struct shunt_tx *tx = &stream->tx;
	uint32_t passes = atomic_load_explicit(&tx->trace.passes, memory_order_relaxed);

	if (passes && tx->trace.of == traces &&
	    !atomic_load_explicit(&stream->rx.answers, memory_order_relaxed)) {
		atomic_store_explicit(&tx->trace.passes, passes - 1, memory_order_relaxed);
		return SHUNT_TRACED_PASSED;
	}
	shunt_traced_call(engine, stream, traces, bytes);
	return SHUNT_TRACED_LOOKED_AT;
}

static inline void shunt_traced_leave_call(struct shunt_engine *engine,
					   struct shunt_stream *stream, enum shunt_traced follows,
					   ssize_t taken)
{
	if (__builtin_expect(follows == SHUNT_TRACED_LOOKED_AT, 0))
		shunt_traced_sent(engine, stream, taken);
	else if (__builtin_expect(taken <= 0, 0))
		atomic_fetch_add_explicit(&stream->tx.trace.passes, 1, memory_order_relaxed);
}

/* Is there anything to do for bytes that arrive? Without the lock: other threads only take out of `told`. */
static inline bool shunt_traced_expects(const struct shunt_followed *followed)
{
	return atomic_load_explicit(&followed->told, memory_order_relaxed) ||
	       shunt_followed_any(followed);
}

/* That is so, and bytes of the stream up to `tail` are about to be announced. group.lock held. */
void shunt_traced_arrive(struct shunt_engine *engine, struct shunt_lane *lane,
			 struct shunt_stream *stream, uint64_t tail);
/* The program has read up to `head`, which is at rx.trace.followed or behind it. rx.lock held. */
void shunt_traced_read(struct shunt_engine *engine, struct shunt_stream *stream, uint64_t head);

/* The stream leaves its seat: what is known of its sends is not true of the next one there. */
void shunt_traced_leave(struct shunt_stream *stream);
void shunt_traced_free(struct shunt_engine *engine, struct shunt_stream *stream);
/* The book has all sends of the stream that count until now. streams_lock held. */
void shunt_traced_tell(struct shunt_stream *stream);
/* In a fork's child. */
void shunt_traced_inherit(struct shunt_stream *stream);

#endif
