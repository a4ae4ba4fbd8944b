/* SPDX-License-Identifier: MIT */
#include "core/stream/births.h"
#include <stdlib.h>
#include <sys/epoll.h>
#include "core/poll/group.h"
#include "core/stream/kept.h"
#include "core/stream/stream.h"
#include "core/stream/sleep.h"
#include "core/stream/spare.h"
#include "core/stream/wait.h"

#define TURNS 4 /* births in a row, before the kernel's queue is asked first */

/* --- of a listener --- */

struct shunt_births *shunt_births_begin(struct shunt_spares *spares, struct shunt_stream *listener)
{
	struct shunt_births *births = spares->births;

	shunt_assert_held(&listener->group->lock);
	if (births)
		spares->births = births->next;
	else
		births = malloc(sizeof(*births));
	if (!births)
		return NULL;
	*births = (struct shunt_births) { .listener = listener, .uses = 1 };
	__atomic_store_n(&listener->births, births, __ATOMIC_RELEASE);
	return births;
}

bool shunt_births_use(struct shunt_births *births, bool counted)
{
	if (births->uses - 1 - counted > births->most)
		return false;
	births->uses++;
	return true;
}

void shunt_births_let_go(struct shunt_spares *spares, struct shunt_births *births)
{
	if (!births || --births->uses)
		return;
	births->next = spares->births;
	spares->births = births;
}

void shunt_births_end(struct shunt_births *births)
{
	births->listener->births = NULL;
	births->listener = NULL;
	births->first = births->last = NULL;
	births->count = 0;
}

/* --- births --- */

const char *shunt_births_add(struct shunt_stream *stream, uint64_t at)
{
	struct shunt_births *births = stream->spare->births;

	shunt_assert_held(&stream->group->lock);
	if (atomic_load(&stream->spare->ends))
		return NULL;	/* the RESET that says so was on its way */
	if (stream->role != SHUNT_ACCEPTOR || at || atomic_exchange(&stream->spare->born, true))
		return "a birth out of turn";
	if (!births->listener) {
		shunt_kept_ends(stream);
		return NULL;
	}
	stream->spare->next = NULL;
	stream->spare->popped = false;
	if (births->last)
		births->last->spare->next = stream;
	else
		births->first = stream;
	births->last = stream;
	births->count++;
	shunt_sleep_notify(births->listener, EPOLLIN | SHUNT_READY_ARRIVED);
	return NULL;
}

bool shunt_births_wait(const struct shunt_stream *listener)
{
	const struct shunt_births *births = __atomic_load_n(&listener->births, __ATOMIC_ACQUIRE);

	return births && __atomic_load_n(&births->count, __ATOMIC_RELAXED);
}

struct shunt_stream *shunt_births_pop(struct shunt_group *group, struct shunt_stream *listener,
				      bool again)
{
	struct shunt_stream *stream = NULL;
	struct shunt_births *births;

	shunt_lock_take(&group->lock);
	births = listener->births;
	if (births && births->turns >= TURNS && !again)
		births->turns = 0;
	else if (births)
		stream = births->first;
	if (stream) {
		births->turns++;
		stream->spare->popped = true;
		births->first = stream->spare->next;
		if (!births->first)
			births->last = NULL;
		births->count--;
	}
	shunt_lock_leave(&group->lock);
	return stream;
}

void shunt_births_push_back(struct shunt_stream *stream)
{
	struct shunt_births *births = stream->spare->births;

	shunt_lock_take(&stream->group->lock);
	stream->spare->popped = false;
	if (births->listener) {
		stream->spare->next = births->first;
		births->first = stream;
		if (!births->last)
			births->last = stream;
		births->count++;
	} else {
		shunt_kept_ends(stream);
	}
	shunt_lock_leave(&stream->group->lock);
}
