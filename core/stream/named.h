/* SPDX-License-Identifier: MIT */
/*
 * The waiter that a stream's control line names: the only thread or epoll set that waits for the stream (core/poll/waiter.h).
 * An entry of 0 is always right, and makes the service thread poll for the stream. group.lock held.
 */
#ifndef SHUNT_CORE_STREAM_NAMED_H
#define SHUNT_CORE_STREAM_NAMED_H

#include <stdbool.h>
#include <stdint.h>
#include "core/poll/group.h"
#include "core/stream/stream.h"
#include "core/stream/wait.h"

struct shunt_sleep_on;

/* The first word of its control line, as the device reads it. */
static inline uint32_t *shunt_named_entry(const struct shunt_stream *stream)
{
	return (uint32_t *)(void *)&stream->seat->control->word[0];
}

/* The peer wakes the waiter, if it sleeps, for an arrival that is told of by these bits. So nobody else need. */
static inline bool shunt_named_rings(const struct shunt_stream *stream, uint32_t waiter,
				     uint32_t what)
{
	return __builtin_expect(waiter != 0, 0) &&
	       (what & SHUNT_READY_OURS) == SHUNT_READY_ARRIVED && !stream->group->waiters.held &&
	       !(stream->sharing.forked & SHUNT_FORK_INHERITED) && stream->seat->link &&
	       __atomic_load_n(shunt_named_entry(stream), __ATOMIC_RELAXED) == waiter;
}

/* The stream is on a link whose peer can ring for a waiter. */
bool shunt_named_can(const struct shunt_stream *stream);
/* The line names the waiter; 0: none. */
void shunt_named_write(struct shunt_stream *stream, uint32_t waiter);
/* A thread that sleeps on the stream is named. False: others wait, too, or the link has no bells, so nobody is named. */
bool shunt_named_by(struct shunt_stream *stream, const struct shunt_sleep_on *on, uint32_t waiter);

#endif
