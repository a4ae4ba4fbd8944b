/* SPDX-License-Identifier: MIT */
/* A stream that stays on TCP, and why. */
#ifndef SHUNT_CORE_STREAM_PLAIN_H
#define SHUNT_CORE_STREAM_PLAIN_H

#include "core/stream/stream.h"

/*
 * The stream will never leave TCP again. Where the kernel has given us its error, and the program is yet to be told, the
 * calls stay ours.
 */
void shunt_streams_plain(struct shunt_engine *engine, struct shunt_stream *stream,
			 enum shunt_cause cause);
/* Is it ours to use? Otherwise it is plain, or FOREIGN. No lock held. */
bool shunt_streams_ours(struct shunt_engine *engine, struct shunt_stream *stream);

#endif
