/* SPDX-License-Identifier: MIT */
/* One stream in the statistics. */
#ifndef SHUNT_CORE_ADMIN_STATS_STREAM_H
#define SHUNT_CORE_ADMIN_STATS_STREAM_H

#include "core/base/json.h"

struct shunt_bytes;
struct shunt_stream;

/* ,"name":{…} with the bytes by track. `track`: the one that the direction is on; NULL: a sum is on none. */
void shunt_stats_put_bytes(struct shunt_json *text, const char *name, const char *track,
			   const struct shunt_bytes *bytes);
/* The object of the stream, which has carried `tx` and `rx`. streams_lock held. */
void shunt_stats_put_stream(struct shunt_json *text, struct shunt_stream *stream,
			    const struct shunt_bytes *tx, const struct shunt_bytes *rx);

#endif
