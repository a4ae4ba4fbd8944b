/* SPDX-License-Identifier: MIT */
/* A timed step of one stream (core/trace/slow_step.h). */
#ifndef SHUNT_CORE_STREAM_SLOW_STREAM_H
#define SHUNT_CORE_STREAM_SLOW_STREAM_H

#include "core/stream/stream.h"
#include "core/stream/tuple.h"
#include "core/trace/slow_step.h"

/* The step that began at `begun` is over; 0: it was not timed. Any lock may be held. */
static inline void shunt_slow_stream(struct shunt_steps *steps, struct shunt_stream *stream,
				     enum shunt_step step, uint64_t begun, uint64_t extra)
{
	shunt_slow_end(steps, begun, .step = step, .fd = atomic_load(&stream->fd),
		       .tuple = shunt_tuple_is_known(&stream->tuple) ? &stream->tuple : NULL, .extra = extra);
}

#endif
