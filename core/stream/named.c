/* SPDX-License-Identifier: MIT */
#include "core/stream/named.h"
#include "core/link/link.h"
#include "core/poll/group.h"
#include "core/poll/sleeper.h"
#include "core/stream/stream.h"

bool shunt_named_can(const struct shunt_stream *stream)
{
	return atomic_load(&((struct shunt_stream *)stream)->state) == SHUNT_LINKED &&
	       !stream->births && stream->seat->link && stream->seat->link->waits;
}

void shunt_named_write(struct shunt_stream *stream, uint32_t waiter)
{
	uint8_t state = atomic_load(&stream->state);

	stream->named = (uint8_t)waiter;
	if (state == SHUNT_FRESH || state == SHUNT_CANDIDATE || state == SHUNT_PLAIN)
		return;	/* it may just be given a seat, whose line names nobody */
	/* A fork's child has the line in common with its parent. */
	if (stream->seat->link && stream->seat->link->waits &&
	    !(stream->sharing.forked & SHUNT_FORK_INHERITED))
		__atomic_store_n(shunt_named_entry(stream), waiter, __ATOMIC_RELAXED);
}

bool shunt_named_by(struct shunt_stream *stream, const struct shunt_sleep_on *on, uint32_t waiter)
{
	if (stream->watches)
		stream->group->hooks->shared(stream->group, stream);
	if (stream->watches || stream->sleepers != on || on->next || !shunt_named_can(stream))
		waiter = 0;
	/* A thread that slept here by its waiter alone is not told any more. */
	for (struct shunt_sleep_on *other = stream->sleepers; other && !waiter; other = other->next)
		if (other != on && other->sleeper->waiter)
			shunt_sleeper_kick(stream->group, other->sleeper);
	shunt_named_write(stream, waiter);
	return waiter;
}
