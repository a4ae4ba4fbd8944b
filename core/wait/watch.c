/* SPDX-License-Identifier: MIT */
#include <sys/epoll.h>
#include "core/engine.h"
#include "core/stream/named.h"
#include "core/stream/ready.h"
#include "core/stream/wait.h"
#include "core/wait/companion.h"
#include "core/wait/epset.h"
#include "core/wait/nested.h"
#include "core/wait/watch.h"

/* --- the ready list of a set --- */

static void watch_list(struct shunt_watch *watch)
{
	struct shunt_epset *set = watch->set;

	watch->listed = true;
	watch->next_ready = NULL;
	if (set->last)
		set->last->next_ready = watch;
	else
		set->first = watch;
	set->last = watch;
	set->ready++;
}

void shunt_watch_list_first(struct shunt_watch *watch)
{
	struct shunt_epset *set = watch->set;

	watch->listed = true;
	watch->next_ready = set->first;
	set->first = watch;
	if (!set->last)
		set->last = watch;
	set->ready++;
}

static struct shunt_watch *unlist_first(struct shunt_epset *set)
{
	struct shunt_watch *watch = set->first;

	set->first = watch->next_ready;
	if (!set->first)
		set->last = NULL;
	watch->listed = false;
	set->ready--;
	return watch;
}

void shunt_watch_unlist(struct shunt_watch *watch)
{
	struct shunt_epset *set = watch->set;
	struct shunt_watch *last = NULL;

	if (!watch->listed)
		return;
	for (struct shunt_watch **p = &set->first; *p; p = &(*p)->next_ready) {
		if (*p == watch) {
			*p = watch->next_ready;
			break;
		}
		last = *p;
	}
	if (set->last == watch)
		set->last = last;
	watch->listed = false;
	set->ready--;
}

/* --- whom the peer wakes for it --- */

static void rename_as(struct shunt_engine *engine, struct shunt_watch *watch, bool named)
{
	struct shunt_epset *set = watch->set;

	if (watch->named == named)
		return;
	watch->named = named;
	set->named += named ? 1 : -1u;
	if (set->sleeping)
		shunt_companion_kick(engine, set);
}

void shunt_watch_unname(struct shunt_engine *engine, struct shunt_watch *watch)
{
	if (__builtin_expect(!watch->named, 1))
		return;
	rename_as(engine, watch, false);
	shunt_named_write(watch->stream, 0);
}

void shunt_watch_shared(struct shunt_group *group, struct shunt_stream *stream)
{
	for (struct shunt_watch *watch = stream->watches; watch; watch = watch->next_of_stream)
		shunt_watch_unname(shunt_engine_of(group, group), watch);
}

void shunt_watch_name(struct shunt_engine *engine, struct shunt_watch *watch)
{
	struct shunt_stream *stream = watch->stream;
	const bool alone = stream->watches == watch && !watch->next_of_stream && !stream->sleepers;

	if (__builtin_expect(!engine->group.waiters.begun, 1))
		return;
	if (shunt_epset_is_numbered(watch->set, &engine->group) && alone &&
	    watch->home == SHUNT_HOME_NONE && shunt_named_can(stream)) {
		shunt_named_write(stream, watch->set->waiter);
		rename_as(engine, watch, true);
		return;
	}
	shunt_watch_shared(&engine->group, stream);
	shunt_named_write(stream, 0);
}

void shunt_watch_suspect(struct shunt_watch *watch)
{
	watch->kernel_ready = shunt_ready_kernel(watch->stream, watch->events) & watch->events & ~SHUNT_WATCH_MODES;
}

/* The kernel's report may be outdated, or about a track that was left. */
static uint32_t still_ready(struct shunt_engine *engine, struct shunt_watch *watch)
{
	struct pollfd fd = { .fd = watch->fd,
			     .events = shunt_narrow_poll(shunt_ready_kernel(watch->stream, watch->events) &
							 watch->kernel_ready) };
	struct timespec none = { 0, 0 };
	uint32_t ready;

	if (!watch->kernel_ready || engine->sys->ppoll(&fd, 1, &none, NULL) <= 0)
		return 0;
	ready = shunt_ready_reset(watch->stream, (uint16_t)fd.revents);
	if (shunt_ready_awaits_end(watch->stream))
		shunt_epset_notify(&engine->group, watch->stream, SHUNT_READY_RELEASED); /* out of the companion, quietly */
	return ready;
}

static uint32_t watch_ready(struct shunt_engine *engine, struct shunt_watch *watch)
{
	uint32_t ready;

	/* The kernel's since a moment ago, and about to return to the program's epfd. */
	if (__builtin_expect(atomic_load_explicit(&watch->stream->state, memory_order_relaxed) != SHUNT_LINKED, 0))
		shunt_watch_suspect(watch);
	ready = shunt_ready_user(watch->stream) | still_ready(engine, watch);

	return ready & (watch->events | EPOLLERR | EPOLLHUP) & ~SHUNT_WATCH_MODES;
}

#define IN_BITS (EPOLLIN | EPOLLRDNORM)
#define OUT_BITS (EPOLLOUT | EPOLLWRNORM)

bool shunt_watch_is_no_edge(struct shunt_engine *engine, struct shunt_watch *watch, uint32_t what)
{
	return watch->can_send && !(what & ~(IN_BITS | OUT_BITS)) &&
	       watch->refusals == atomic_load(&watch->stream->tx.refusals) &&
	       !(watch_ready(engine, watch) & ~OUT_BITS);
}

/* It is about to leave the program's epfd, where nobody sees what is reported: sure is only what could not be otherwise. */
void shunt_watch_leaves_kernel(struct shunt_watch *watch)
{
	struct shunt_tx *tx = &watch->stream->tx;

	watch->can_send = watch->could_send && atomic_load(&watch->set->drained) > watch->since &&
			  !atomic_load(&watch->stream->seat->out.exposed);
	watch->refusals = atomic_load(&tx->refusals);
}

/* It has come into the program's epfd, which reports at once what is true now. */
void shunt_watch_comes_to_kernel(struct shunt_engine *engine, struct shunt_watch *watch)
{
	struct pollfd fd = { .fd = watch->fd, .events = POLLOUT };
	struct timespec none = { 0, 0 };

	watch->can_send = watch->could_send = false;
	if (watch->home != SHUNT_HOME_SET || !(watch->events & EPOLLET) || !(watch->events & OUT_BITS))
		return;
	watch->since = atomic_load(&watch->set->begun);
	watch->could_send = engine->sys->ppoll(&fd, 1, &none, NULL) > 0 && fd.revents & POLLOUT;
}

static inline void touch(struct shunt_engine *engine, struct shunt_watch *watch, bool wakes)
{
	watch->fresh = true;
	if (!watch->listed)
		watch_list(watch);
	/* Sleepers in the set look themselves; to those outside it must not cry wolf. */
	if (wakes && watch->set->sleeping && watch->set != engine->group.looker)
		shunt_companion_kick(engine, watch->set);
	watch->set->news = true;
	if (__builtin_expect(watch->set->outers || watch->set->pollers, 0) &&
	    shunt_nested_is_awaited(watch->set) && watch_ready(engine, watch))
		shunt_nested_tell(engine, watch->set);
}

void shunt_watch_touch(struct shunt_engine *engine, struct shunt_watch *watch)
{
	touch(engine, watch, true);
}

void shunt_watch_list(struct shunt_engine *engine, struct shunt_watch *watch)
{
	touch(engine, watch, false);
}

/* A thread looks already, in one of the sets that have the stream exclusively. */
static bool is_looked_at(const struct shunt_engine *engine, const struct shunt_stream *stream)
{
	const struct shunt_watch *watch = stream->watches;

	while (watch && !(watch->events & EPOLLEXCLUSIVE && watch->set == engine->group.looker))
		watch = watch->next_of_stream;
	return watch;
}

bool shunt_watch_touch_exclusive(struct shunt_engine *engine, struct shunt_watch *watch,
				 bool served)
{
	struct shunt_epset *set = watch->set;
	bool looked_at = !served && is_looked_at(engine, watch->stream);
	bool wakes = !served && !looked_at && set->sleeping && !set->kicked;

	touch(engine, watch, wakes);
	return served || looked_at || wakes;
}

void shunt_watch_begin(struct shunt_engine *engine, struct shunt_watch *watch)
{
	const struct shunt_epset *set = watch->set;

	shunt_watch_suspect(watch);
	/* A thread that comes to the set looks at what is listed. One that sleeps must not be woken for nothing. */
	if ((!set->sleeping && !set->outers && !set->pollers) || watch_ready(engine, watch))
		shunt_watch_touch(engine, watch);
	else
		watch->kernel_ready = 0;
}

void shunt_watch_heard(struct shunt_engine *engine, struct shunt_watch *watch, uint32_t ready)
{
	bool anew = watch->asked_anew;

	watch->kernel_ready |= ready;
	watch->asked_anew = false;
	if (anew && shunt_watch_is_no_edge(engine, watch, ready))
		return;
	if (!watch->listed)
		shunt_watch_list_first(watch);
	shunt_watch_touch(engine, watch);
}

/* EPOLLONESHOT has fired: the kernel must not go on about it. */
static void disable(struct shunt_engine *engine, struct shunt_watch *watch)
{
	watch->disabled = true;
	if (watch->home == SHUNT_HOME_COMPANION)
		engine->sys->epoll_ctl(watch->set->companion, EPOLL_CTL_DEL, watch->fd, NULL);
	if (watch->home != SHUNT_HOME_SET)
		watch->home = SHUNT_HOME_NONE;
}

/* The kernel's event of a watch has its data, as may those of others. */
static bool is_among(const struct epoll_event *events, int count, const struct shunt_watch *watch)
{
	for (int i = 0; i < count; i++)
		if (events[i].data.u64 == watch->data)
			return true;
	return false;
}

int shunt_watch_collect(struct shunt_engine *engine, struct shunt_epset *set,
			struct epoll_event *events, int max, int beside)
{
	int count = 0;

	for (uint32_t left = set->ready; left && count < max; left--) {
		struct shunt_watch *watch = unlist_first(set);
		bool twice = watch->moved && is_among(events - beside, beside, watch);
		uint32_t ready, refusals;

		watch->moved = false;
		if (__builtin_expect(twice, 0)) {	/* the kernel may have said it: next time */
			watch_list(watch);
			continue;
		}
		refusals = atomic_load_explicit(&watch->stream->tx.refusals, memory_order_relaxed);
		ready = watch->disabled ? 0 : watch_ready(engine, watch);
		/*
		 * A level is reported until it is over, and a program that has just been told need not hear it from
		 * the companion again.
		 */
		watch->kernel_ready &= watch->events & (EPOLLET | EPOLLONESHOT) ? 0 : ready;
		watch->can_send &= (ready & OUT_BITS) != 0;
		if (!ready)
			continue;
		if (watch->events & EPOLLET && !watch->fresh)
			continue;
		watch->fresh = false;
		watch->can_send = watch->events & EPOLLET && ready & OUT_BITS;
		watch->refusals = refusals;
		events[count].events = ready;
		events[count].data.u64 = watch->data;
		count++;
		if (watch->events & EPOLLONESHOT)
			disable(engine, watch);
		else if (!(watch->events & EPOLLET))
			watch_list(watch);
	}
	return count;
}

bool shunt_watch_any_ready(struct shunt_engine *engine, struct shunt_epset *set)
{
	bool ready = false;

	for (struct shunt_watch *watch = set->first; watch && !ready; watch = watch->next_ready)
		ready = !watch->disabled && watch_ready(engine, watch) &&
			(!(watch->events & EPOLLET) || watch->fresh);
	return ready;
}
