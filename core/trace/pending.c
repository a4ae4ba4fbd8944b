/* SPDX-License-Identifier: MIT */
#include "core/trace/pending.h"

/* The lock is held. */
static struct shunt_pending *newest(struct shunt_pendings *pendings)
{
	return pendings->count ? &pendings->of[(pendings->first + pendings->count - 1) %
					       SHUNT_TRACE_PENDING] :
				 NULL;
}

bool shunt_pendings_add(struct shunt_pendings *pendings, const struct shunt_pending *pending,
			uint32_t *dropped)
{
	const struct shunt_pending *last;
	bool room;

	*dropped = 0;
	shunt_lock_take(&pendings->lock);
	for (; (last = newest(pendings)) && last->end >= pending->end; ++*dropped)
		pendings->count--;
	room = pendings->count < SHUNT_TRACE_PENDING;
	if (room)
		pendings->of[(pendings->first + pendings->count++) % SHUNT_TRACE_PENDING] =
			*pending;
	pendings->last = pending->end;
	shunt_lock_leave(&pendings->lock);
	return room;
}

uint64_t shunt_pendings_end(struct shunt_pendings *pendings)
{
	uint64_t end;

	shunt_lock_take(&pendings->lock);
	end = pendings->count ? pendings->of[pendings->first].end : UINT64_MAX;
	shunt_lock_leave(&pendings->lock);
	return end;
}

bool shunt_pendings_take(struct shunt_pendings *pendings, uint64_t upto,
			 struct shunt_pending *pending)
{
	bool due;

	shunt_lock_take(&pendings->lock);
	due = pendings->count && pendings->of[pendings->first].end <= upto;
	if (due) {
		*pending = pendings->of[pendings->first];
		pendings->first = (pendings->first + 1) % SHUNT_TRACE_PENDING;
		pendings->count--;
	}
	shunt_lock_leave(&pendings->lock);
	return due;
}

void shunt_pendings_accept(struct shunt_pendings *pendings, uint64_t now)
{
	struct shunt_pending *last;

	shunt_lock_take(&pendings->lock);
	last = newest(pendings);
	if (last && last->end == pendings->last && !last->accepted)
		last->accepted = now;
	shunt_lock_leave(&pendings->lock);
}

bool shunt_pendings_withdraw(struct shunt_pendings *pendings)
{
	struct shunt_pending *last;
	bool there;

	shunt_lock_take(&pendings->lock);
	last = newest(pendings);
	there = last && last->end == pendings->last && !last->accepted;
	if (there)
		pendings->count--;
	shunt_lock_leave(&pendings->lock);
	return there;
}

uint32_t shunt_pendings_drop(struct shunt_pendings *pendings)
{
	uint32_t count;

	shunt_lock_take(&pendings->lock);
	count = pendings->count;
	pendings->count = 0;
	shunt_lock_leave(&pendings->lock);
	return count;
}
