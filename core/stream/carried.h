/* SPDX-License-Identifier: MIT */
/*
 * TCP's bytes of a plain stream, and the bytes and tracks of any stream, for programs (shunt_stream_traffic() and
 * shunt_stream_tracks() of api.h). The calls of a plain stream go straight to the kernel, so nothing of ours counts
 * them. The kernel is asked when somebody wants the statistics, and at no other time.
 */
#ifndef SHUNT_CORE_STREAM_CARRIED_H
#define SHUNT_CORE_STREAM_CARRIED_H

#include <stdint.h>

struct shunt_bytes;
struct shunt_stream;

/*
 * Adds to what was counted of the stream, in each direction, what the kernel has carried since: bytes that the program
 * has written, and read. Nothing for a stream that is not plain. streams_lock held.
 */
void shunt_carried_add(struct shunt_stream *stream, struct shunt_bytes *tx, struct shunt_bytes *rx);
/*
 * Of a stream whose sending direction is on the link: how many bytes the kernel has been given that the engine has not
 * given it. 0 also where the kernel does not say.
 */
uint64_t shunt_carried_past(struct shunt_stream *stream);

#endif
