/* SPDX-License-Identifier: MIT */
/*
 * Bytes that wait in a stream, as ss(8) counts them for a socket (XR-31). Sender and reader are not held up: all is read from
 * atomics and from the kernel, so it may be of slightly different instants.
 */
#ifndef SHUNT_CORE_STREAM_QUEUED_H
#define SHUNT_CORE_STREAM_QUEUED_H

#include <stdbool.h>
#include <stdint.h>
#include "core/stream/stream.h"

struct shunt_queued {
	uint64_t sendq;	/* bytes taken from the program that are not known to have arrived; SHUNT_NEVER: not known now */
	uint64_t recvq;	/* bytes that have arrived, and that the program has not read */
	bool linked;	/* the rest is about the link; else it is 0 */
	uint64_t staged;	/* of `sendq`: bytes that the queue pair has not been given */
	uint64_t ring_bytes;	/* of the peer's ring */
	uint64_t ring_fill;	/* bytes in it that the peer is not known to have read */
	uint64_t credit;	/* bytes it has room for */
	uint64_t window;	/* bytes that may be under way to another host (core/lane/send_queue.h) */
	uint32_t lane;
	uint32_t peer_pid;	/* of the link */
};

/* streams_lock held, and nothing right of it. */
void shunt_queued_look(struct shunt_stream *stream, struct shunt_queued *queued);

#endif
