/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include "core/wait/companion.h"
#include "core/engine.h"
#include "core/fd/own_fds.h"
#include "core/fd/thread.h"
#include "core/poll/sleeper.h"
#include "core/wait/epset.h"

static int companion_add(struct shunt_engine *engine, struct shunt_epset *set, int fd, void *data)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = data };

	return engine->sys->epoll_ctl(set->companion, EPOLL_CTL_ADD, fd, &event);
}

/* Its own address is what the companion is known by in the program's epfd. */
int shunt_companion_open(struct shunt_engine *engine, struct shunt_epset *set)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = set };

	if (set->companion >= 0)
		return 0;
	set->companion = shunt_own_fds_make(&engine->fds,
					    engine->sys->epoll_create1(EPOLL_CLOEXEC));
	set->kick_fd = shunt_own_fds_make(&engine->fds, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (set->companion < 0 || set->kick_fd < 0 ||
	    companion_add(engine, set, set->kick_fd, set) ||
	    engine->sys->epoll_ctl(set->fd, EPOLL_CTL_ADD, set->companion, &event)) {
		shunt_own_fds_close(&engine->fds, set->companion);
		shunt_own_fds_close(&engine->fds, set->kick_fd);
		set->companion = set->kick_fd = -1;
		return -ENOMEM;
	}
	return 0;
}

bool shunt_companion_waits(struct shunt_engine *engine, struct shunt_epset *set)
{
	int fd = shunt_waiter_fd(&engine->group, set->waiter);

	return fd >= 0 && (!companion_add(engine, set, fd, &set->waiter) || errno == EEXIST);
}

void shunt_companion_waits_no_more(struct shunt_engine *engine, struct shunt_epset *set)
{
	engine->sys->epoll_ctl(set->companion, EPOLL_CTL_DEL,
			       shunt_waiter_fd(&engine->group, set->waiter), NULL);
}

int shunt_companion_lead(struct shunt_engine *engine, struct shunt_epset *set)
{
	struct shunt_group *group = &engine->group;
	int fd = atomic_load(&group->bell);

	if (!group->open || set->companion < 0 || (group->channel_set == set && group->channel_fd == fd))
		return 0;
	shunt_companion_silence(engine);
	if (companion_add(engine, set, fd, group))
		return -ENOMEM;
	group->channel_set = set;
	group->channel_fd = fd;
	return 0;
}

bool shunt_companion_ring_in(struct shunt_group *group, struct shunt_epset *set)
{
	struct shunt_engine *engine = shunt_engine_of(group, group);

	return !shunt_companion_lead(engine, set) && engine->group.channel_set == set;
}

void shunt_companion_silence(struct shunt_engine *engine)
{
	struct shunt_group *group = &engine->group;

	if (group->channel_set)
		engine->sys->epoll_ctl(group->channel_set->companion, EPOLL_CTL_DEL, group->channel_fd, NULL);
	group->channel_set = NULL;
}

bool shunt_companion_rings(struct shunt_engine *engine, const struct shunt_epset *set)
{
	return __atomic_load_n(&engine->group.channel_set, __ATOMIC_RELAXED) == set;
}

void shunt_companion_rest(struct shunt_engine *engine, struct shunt_epset *set)
{
	struct shunt_group *group = &engine->group;

	if (__builtin_expect(!shunt_companion_rings(engine, set), 1))
		return;
	shunt_lock_take(&group->lock);
	if (group->channel_set == set && !(group->leader && group->leader->set == set))
		shunt_companion_silence(engine);
	shunt_lock_leave(&group->lock);
}

void shunt_companion_kick(struct shunt_engine *engine, struct shunt_epset *set)
{
	uint64_t one = 1;
	int saved = errno;

	if (set->kicked || set->kick_fd < 0)
		return;
	set->kicked = true;
	engine->group.kicks++;
	if (engine->sys->write(set->kick_fd, &one, sizeof(one)) < 0)
		shunt_log(SHUNT_LOG_ERROR, "cannot wake an epoll set: error %d", errno);
	errno = saved;
}
