/* SPDX-License-Identifier: MIT */
#include "core/wait/epsets.h"
#include <stdlib.h>
#include "core/engine.h"
#include "core/fd/own_fds.h"
#include "core/wait/companion.h"
#include "core/wait/epset.h"
#include "core/wait/nested.h"
#include "core/wait/watch.h"

static struct shunt_epset *set_take(struct shunt_engine *engine)
{
	struct shunt_epset *set;

	shunt_lock_take(&engine->streams_lock);
	set = engine->free_sets;
	if (set)
		engine->free_sets = set->next_free;
	shunt_lock_leave(&engine->streams_lock);
	return set ? set : calloc(1, sizeof(*set));
}

struct shunt_epset *shunt_epset_create(struct shunt_engine *engine, int fd)
{
	struct shunt_epset *set = set_take(engine);

	if (set) {
		atomic_fetch_add(&engine->lanes.sets, 1);
		*set = (struct shunt_epset) { .file.kind = SHUNT_FILE_EPOLL, .fd = fd, .companion = -1, .kick_fd = -1,
					      .numbers = 1, .holds = 1, .generation = set->generation + 1 };
	}
	return set;
}

bool shunt_epset_hold(struct shunt_engine *engine, struct shunt_epset *set, int epfd)
{
	uint32_t holds = atomic_load(&set->holds);

	while (holds && !atomic_compare_exchange_weak(&set->holds, &holds, holds + 1))
		;
	if (holds && shunt_file(engine, epfd) == &set->file)
		return true;
	if (holds)
		shunt_epset_let_go(engine, set);
	return false;
}

void shunt_epset_let_go(struct shunt_engine *engine, struct shunt_epset *set)
{
	if (atomic_fetch_sub(&set->holds, 1) != 1)
		return;
	shunt_own_fds_close(&engine->fds, set->companion);
	shunt_own_fds_close(&engine->fds, set->kick_fd);
	atomic_fetch_sub(&engine->lanes.sets, 1);
	shunt_lock_take(&engine->streams_lock);
	set->next_free = engine->free_sets;
	engine->free_sets = set;
	shunt_lock_leave(&engine->streams_lock);
}

struct naming {
	struct shunt_engine *engine;
	struct shunt_epset *set;
};

static int name_anew(struct shunt_stream *stream, void *arg)
{
	const struct naming *naming = arg;

	for (struct shunt_watch *watch = stream->watches; watch; watch = watch->next_of_stream) {
		if (watch->set != naming->set)
			continue;
		shunt_watch_name(naming->engine, watch);
	}
	return 0;
}

static int unname(struct shunt_stream *stream, void *arg)
{
	const struct naming *naming = arg;

	for (struct shunt_watch *watch = stream->watches; watch; watch = watch->next_of_stream)
		if (watch->set == naming->set)
			shunt_watch_unname(naming->engine, watch);
	return 0;
}

static bool may_wait(struct shunt_epset *set)
{
	return !set->closed && !set->outers && !set->inners && !set->pollers && set->companion >= 0;
}

bool shunt_epset_is_numbered(const struct shunt_epset *set, const struct shunt_group *group)
{
	return set->waiter && set->waiter_of == group->waiters.generation + 1;
}

static void give_number(struct shunt_engine *engine, struct shunt_epset *set)
{
	if (!set->waiter)
		return;
	if (set->companion >= 0)
		shunt_companion_waits_no_more(engine, set);
	shunt_waiter_give(&engine->group, set->waiter);
	set->waiter = 0;
}

static int forget_names(struct shunt_stream *stream, void *arg)
{
	const struct naming *naming = arg;

	for (struct shunt_watch *watch = stream->watches; watch; watch = watch->next_of_stream)
		if (watch->set == naming->set)
			watch->named = false;
	return 0;
}

void shunt_epset_number(struct shunt_engine *engine, struct shunt_epset *set)
{
	struct shunt_group *group = &engine->group;
	struct naming naming = { engine, set };

	shunt_lock_take(&engine->streams_lock);
	shunt_lock_take(&group->lock);
	if (may_wait(set) && !set->unnumbered && !set->waiter)
		set->waiter = shunt_waiter_take(group, 0);
	if (set->waiter && !shunt_epset_is_numbered(set, group)) {
		set->named = 0;	/* those of its former number's devices */
		shunt_streams_each(engine, forget_names, &naming);
		if (shunt_companion_waits(engine, set)) {
			set->waiter_of = group->waiters.generation + 1;
			shunt_streams_each(engine, name_anew, &naming);
		} else {
			give_number(engine, set);
			set->unnumbered = true;
		}
	}
	shunt_lock_leave(&group->lock);
	shunt_lock_leave(&engine->streams_lock);
}

void shunt_epset_unnumber(struct shunt_engine *engine, struct shunt_epset *set)
{
	struct naming naming = { engine, set };

	if (__builtin_expect(set->unnumbered && !set->waiter, 1))
		return;
	shunt_lock_take(&engine->streams_lock);
	shunt_lock_take(&engine->group.lock);
	set->unnumbered = true;
	if (set->waiter) {
		shunt_streams_each(engine, unname, &naming);
		give_number(engine, set);
	}
	shunt_lock_leave(&engine->group.lock);
	shunt_lock_leave(&engine->streams_lock);
}

static int forget_set(struct shunt_stream *stream, void *arg)
{
	struct shunt_watch *watch, *next;

	for (watch = stream->watches; watch; watch = next) {
		next = watch->next_of_stream;
		if (watch->set == arg)
			shunt_epset_unwatch(watch);
	}
	return 0;
}

void shunt_epset_close(struct shunt_engine *engine, struct shunt_epset *set)
{
	struct shunt_group *group = &engine->group;

	shunt_lock_take(&engine->streams_lock);
	shunt_lock_take(&group->lock);
	shunt_streams_each(engine, forget_set, set);
	give_number(engine, set);
	free(set->spare);
	set->spare = NULL;
	if (group->channel_set == set)
		group->channel_set = NULL;
	shunt_nested_end(engine, set);
	atomic_store(&set->closed, true);
	if (set->sleeping)	/* one of them may lead */
		shunt_companion_kick(engine, set);
	shunt_lock_leave(&group->lock);
	shunt_lock_leave(&engine->streams_lock);
	shunt_epset_let_go(engine, set);
}

void shunt_epset_inherit(struct shunt_engine *engine)
{
	shunt_files_each(engine->fds.files, fd) {
		struct shunt_file *file = shunt_file(engine, fd);
		struct shunt_epset *set = (struct shunt_epset *)file;

		if (!file || file->kind != SHUNT_FILE_EPOLL)
			continue;
		atomic_store(&set->holds, 1);	/* other threads are gone, and this one's wait has let go of it */
		set->sleeping = set->plain = set->pollers = 0;
		set->waiter = set->waiter_of = set->named = 0;
		if (set->companion < 0)
			continue;
		shunt_own_fds_close(&engine->fds, set->companion);
		shunt_own_fds_close(&engine->fds, set->kick_fd);
		set->companion = set->kick_fd = -1;
		set->inherited = true;
	}
}
