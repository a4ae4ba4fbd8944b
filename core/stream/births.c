/* SPDX-License-Identifier: MIT */
#include "core/stream/births.h"
#include <sys/epoll.h>
#include "core/poll/group.h"
#include "core/stream/stream.h"
#include "core/stream/sleep.h"
#include "core/stream/spare.h"
#include "core/stream/wait.h"

const char *shunt_births_add(struct shunt_stream *stream, uint64_t at)
{
	struct shunt_births *births = stream->spare->births;

	shunt_assert_held(&stream->group->lock);
	if (stream->role != SHUNT_ACCEPTOR || at || atomic_exchange(&stream->spare->born, true))
		return "a birth out of turn";
	stream->spare->next = NULL;
	if (births->last)
		births->last->spare->next = stream;
	else
		births->first = stream;
	births->last = stream;
	births->count++;
	if (births->listener)
		shunt_sleep_notify(births->listener, EPOLLIN | SHUNT_READY_ARRIVED);
	return NULL;
}

bool shunt_births_wait(const struct shunt_stream *listener)
{
	const struct shunt_births *births = __atomic_load_n(&listener->births, __ATOMIC_ACQUIRE);

	return births && __atomic_load_n(&births->count, __ATOMIC_RELAXED);
}

struct shunt_stream *shunt_births_pop(struct shunt_group *group, struct shunt_births *births)
{
	struct shunt_stream *stream;

	shunt_lock_take(&group->lock);
	stream = births->first;
	if (stream) {
		births->first = stream->spare->next;
		if (!births->first)
			births->last = NULL;
		births->count--;
	}
	shunt_lock_leave(&group->lock);
	return stream;
}

void shunt_births_push_back(struct shunt_births *births, struct shunt_stream *stream)
{
	shunt_lock_take(&stream->group->lock);
	stream->spare->next = births->first;
	births->first = stream;
	if (!births->last)
		births->last = stream;
	births->count++;
	shunt_lock_leave(&stream->group->lock);
}
