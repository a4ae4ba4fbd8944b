/* SPDX-License-Identifier: MIT */
/*
 * TCP_USER_TIMEOUT on a link (tcp(7)): bytes that the peer does not take within that time end the connection with
 * ETIMEDOUT. It covers what the kernel cannot time for us, because it does not have the bytes. One case is a sender
 * without room in the peer's ring. The other is a dead link whose peer does not say what it has (failover.c).
 *
 * Credit comes by halves of a ring, and the kernel's window sooner. So what the peer has read is fetched from its memory
 * before it is given up.
 *
 * Without that option a peer that does not read may take its time, as with the kernel. One whose host has gone has
 * silence_s, which is near to what the kernel tries for (tcp_retries2).
 */
#ifndef SHUNT_CORE_STREAM_USER_TIMEOUT_H
#define SHUNT_CORE_STREAM_USER_TIMEOUT_H

#include <stdint.h>
#include "core/stream/stream.h"

#define SHUNT_USER_TIMEOUT_UNKNOWN UINT32_MAX

/* The stream's sender gets nowhere, `late` ns ago already. Any lock may be held. */
void shunt_user_timeout_note(struct shunt_stream *stream, uint64_t late);
/* The option was set. */
void shunt_user_timeout_changed(struct shunt_stream *stream);
/* The same as the first, now. Most have no such time. */
static inline void shunt_user_timeout_begin(struct shunt_stream *stream)
{
	if (__builtin_expect(atomic_load_explicit(&stream->options.user_timeout_ms,
						  memory_order_relaxed) != 0,
			     0))
		shunt_user_timeout_note(stream, 0);
}

#endif
