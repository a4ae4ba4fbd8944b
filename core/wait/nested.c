/* SPDX-License-Identifier: MIT */
#include "core/wait/nested.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include "core/engine.h"
#include "core/fd/thread.h"
#include "core/wait/companion.h"
#include "core/wait/epset.h"
#include "core/wait/watch.h"

#define ASKING (EPOLLIN | EPOLLRDNORM)	/* all that a set has to report to another */

static bool asks(const struct shunt_nesting *nesting)
{
	return nesting->events & ASKING;
}

int shunt_nested_prepare(struct shunt_engine *engine, struct shunt_epset *set)
{
	int result = shunt_companion_open(engine, set);

	for (struct shunt_nesting *nesting = set->outers; nesting && !result;
	     nesting = nesting->next_of_inner)
		if (asks(nesting))
			result = shunt_nested_prepare(engine, nesting->outer);
	return result;
}

/* The kernel sees no stream of the set any more. A sleeper may not have seen the kick yet, and takes it back itself. */
static void unkick(struct shunt_engine *engine, struct shunt_epset *set)
{
	if (!set->kicked || set->sleeping || set->pollers)
		return;
	shunt_waker_drain(&engine->fds, set->kick_fd);
	set->kicked = false;
}

/*
 * `was`: completions concerned the set before its counts changed. Sets outside that ask for it are concerned as it is.
 * Threads that slept while all was the kernel's do not poll, so they are to look again. Either they see the new counts,
 * or they are counted here as asleep (wait_plain() in epwait.c, is_ready() in poll.c).
 */
static void pass_on(struct shunt_engine *engine, struct shunt_epset *set, bool was)
{
	bool is = shunt_epset_is_concerned(set);

	if (is == was)
		return;
	if (!is)
		unkick(engine, set);
	else if (atomic_load(&set->sleeping) || set->pollers)
		shunt_companion_kick(engine, set);
	for (struct shunt_nesting *nesting = set->outers; nesting;
	     nesting = nesting->next_of_inner) {
		struct shunt_epset *outer = nesting->outer;
		bool outer_was = shunt_epset_is_concerned(outer);

		if (!asks(nesting))
			continue;
		atomic_fetch_add(&outer->below, is ? 1 : -1u);
		pass_on(engine, outer, outer_was);
	}
}

void shunt_nested_count(struct shunt_engine *engine, struct shunt_epset *set, int by)
{
	uint32_t before = atomic_load(&set->linked), now = before + (uint32_t)by;

	atomic_store_explicit(&set->linked, now,
			      before && now ? memory_order_relaxed : memory_order_seq_cst);
	if (!before != !now)
		pass_on(engine, set, before || atomic_load(&set->below));
}

/* The outer set asks for other events of the inner one. */
static void ask_for(struct shunt_engine *engine, struct shunt_nesting *nesting, uint32_t events)
{
	struct shunt_epset *outer = nesting->outer;
	bool was = shunt_epset_is_concerned(outer), asked = asks(nesting);

	nesting->events = events;
	if (asks(nesting) != asked && shunt_epset_is_concerned(nesting->inner)) {
		atomic_fetch_add(&outer->below, asked ? -1u : 1);
		pass_on(engine, outer, was);
	}
	shunt_nested_show(engine, nesting->inner);
}

static struct shunt_nesting *find(struct shunt_epset *outer, struct shunt_epset *inner, int fd)
{
	struct shunt_nesting *nesting = inner->outers;

	while (nesting && (nesting->outer != outer || nesting->fd != fd))
		nesting = nesting->next_of_inner;
	return nesting;
}

static void drop(struct shunt_engine *engine, struct shunt_nesting *nesting)
{
	struct shunt_nesting **p = &nesting->inner->outers;

	ask_for(engine, nesting, 0);
	while (*p != nesting)
		p = &(*p)->next_of_inner;
	*p = nesting->next_of_inner;
	p = &nesting->outer->inners;
	while (*p != nesting)
		p = &(*p)->next_of_outer;
	*p = nesting->next_of_outer;
	free(nesting);
}

static struct shunt_nesting *make(struct shunt_epset *outer, struct shunt_epset *inner, int fd)
{
	struct shunt_nesting *nesting = calloc(1, sizeof(*nesting));

	if (!nesting)
		return NULL;
	*nesting = (struct shunt_nesting) { .outer = outer,
					    .inner = inner,
					    .fd = fd,
					    .next_of_outer = outer->inners,
					    .next_of_inner = inner->outers };
	outer->inners = inner->outers = nesting;
	return nesting;
}

/* The kernel refuses circles, and what it refuses is not noted: each walk through sets ends. */
int shunt_nested_control(struct shunt_engine *engine, struct shunt_epset *outer,
			 struct shunt_epset *inner, int op, int fd, struct epoll_event *event)
{
	struct shunt_nesting *nesting = find(outer, inner, fd);
	bool made = !nesting && op != EPOLL_CTL_DEL;
	int result;

	if (outer->closed || inner->closed)
		return -EBADF;
	if (made)
		nesting = make(outer, inner, fd);
	if (made && !nesting)
		return -ENOMEM;
	if (op != EPOLL_CTL_DEL && event->events & ASKING && shunt_nested_prepare(engine, outer)) {
		if (made)
			drop(engine, nesting);
		return -ENOMEM;
	}
	result = engine->sys->epoll_ctl(outer->fd, op, fd, event) ? -errno : 0;
	if (nesting && (result ? made : op == EPOLL_CTL_DEL))
		drop(engine, nesting);
	else if (nesting && !result)
		ask_for(engine, nesting, event->events);
	return result;
}

void shunt_nested_end(struct shunt_engine *engine, struct shunt_epset *set)
{
	while (set->outers)
		drop(engine, set->outers);
	while (set->inners)
		drop(engine, set->inners);
}

bool shunt_nested_is_awaited(const struct shunt_epset *set)
{
	const struct shunt_nesting *nesting = set->outers;

	while (nesting && !(asks(nesting) && (atomic_load(&nesting->outer->sleeping) ||
					      shunt_nested_is_awaited(nesting->outer))))
		nesting = nesting->next_of_inner;
	return set->pollers || nesting;
}

static bool tells_edges(const struct shunt_epset *set)
{
	const struct shunt_nesting *nesting = set->outers;

	while (nesting &&
	       !(asks(nesting) && (nesting->events & EPOLLET || tells_edges(nesting->outer))))
		nesting = nesting->next_of_inner;
	return nesting;
}

bool shunt_nested_tell(struct shunt_engine *engine, struct shunt_epset *set)
{
	bool told;

	if (set->kicked && set->news && tells_edges(set))
		set->kicked = false;	/* one more write, which the kernel takes for an edge */
	told = !set->kicked;
	set->news = false;
	shunt_companion_kick(engine, set);
	return told;
}

bool shunt_nested_refresh(struct shunt_engine *engine, struct shunt_epset *set)
{
	bool told = false;

	for (struct shunt_nesting *nesting = set->inners; nesting;
	     nesting = nesting->next_of_outer) {
		struct shunt_epset *inner = nesting->inner;

		if (!asks(nesting))
			continue;
		told |= shunt_nested_refresh(engine, inner);
		if (shunt_watch_any_ready(engine, inner))
			told |= shunt_nested_tell(engine, inner);
		else
			unkick(engine, inner);
	}
	return told;
}

void shunt_nested_show(struct shunt_engine *engine, struct shunt_epset *set)
{
	if (set->first && shunt_nested_is_awaited(set) && shunt_watch_any_ready(engine, set))
		shunt_nested_tell(engine, set);
}
