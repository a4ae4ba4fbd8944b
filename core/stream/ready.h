/* SPDX-License-Identifier: MIT */
/*
 * Readiness of a stream: tcp_poll() in user space for the directions that are on the link. For the others, the events
 * that the kernel has to be asked for.
 */
#ifndef SHUNT_CORE_STREAM_READY_H
#define SHUNT_CORE_STREAM_READY_H

#include <stdbool.h>
#include <stdint.h>

struct shunt_stream;

/* Which of IN, OUT, RDHUP, HUP, ERR are true in user space. */
uint32_t shunt_ready_user(struct shunt_stream *stream);
/*
 * The kernel's report, plus the events that tcp_poll() has after a reset of a stream on a link. An end of TCP that
 * does not count yet is left out.
 */
uint32_t shunt_ready_reset(struct shunt_stream *stream, uint32_t reported);
/* The kernel reports a hang-up for ever, and the link has not told of the end: nobody sleeps on the kernel's word. */
bool shunt_ready_awaits_end(struct shunt_stream *stream);
/* Events that the kernel must be asked for on behalf of a caller that wants `wanted`; 0: nothing, not even errors. */
uint32_t shunt_ready_kernel(struct shunt_stream *stream, uint32_t wanted);
/* Callers that wait for SHUNT_READY_ANSWERED are to look: the peer has answered a retirement. Any thread. */
bool shunt_ready_answered(struct shunt_stream *stream);
/* Callers that wait for SHUNT_READY_GIVEN are to look: the kernel has, or gets, what is to be read. Any thread. */
bool shunt_ready_given(struct shunt_stream *stream);
/* All that the lane owes the peer for the stream has been posted: one that has gone is owed no bytes. */
bool shunt_ready_flushed(struct shunt_stream *stream);

#endif
