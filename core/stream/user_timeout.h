/* SPDX-License-Identifier: MIT */
/*
 * TCP_USER_TIMEOUT on a link (tcp(7)): bytes that the peer does not take within that time end the connection with
 * ETIMEDOUT. What the kernel cannot time for us, because it does not have the bytes: a sender that finds no room in
 * the peer's ring, and one whose link is dead while the peer does not say what it has (failover.c).
 *
 * Credit comes by halves of a ring, and the kernel's window sooner: so a peer is asked for what it has read (GROW)
 * before it is given up. One whose process is stopped does not answer, nor does its window open.
 *
 * Without that option a peer that only does not read may take its time, as with the kernel, and one whose host has
 * gone has SHUNT_SILENCE_S, which is near to what the kernel tries for (tcp_retries2).
 */
#ifndef SHUNT_CORE_STREAM_USER_TIMEOUT_H
#define SHUNT_CORE_STREAM_USER_TIMEOUT_H

#include "core/service.h"

struct shunt_task;

#define SHUNT_USER_TIMEOUT_UNKNOWN UINT32_MAX

/* The stream's sender gets nowhere, `late` ns ago already. Any lock may be held. */
void shunt_user_timeout_note(struct shunt_stream *stream, uint64_t late);
/* The option was set. */
void shunt_user_timeout_changed(struct shunt_stream *stream);
/* Ends those whose time is over. */
void shunt_user_timeout_run(struct shunt_task *task);

/* The same as the first, now. Most have no such time. */
static inline void shunt_user_timeout_begin(struct shunt_stream *stream)
{
	if (__builtin_expect(atomic_load_explicit(&stream->user_timeout_ms, memory_order_relaxed) != 0, 0))
		shunt_user_timeout_note(stream, 0);
}

#endif
