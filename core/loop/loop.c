/* SPDX-License-Identifier: MIT */
#include "core/loop/loop.h"
#include "core/fd/own_fds.h"
#include <errno.h>
#include <sys/eventfd.h>
#include "core/base/narrow.h"
#include "core/trace/slow_step.h"

static int source_control(struct shunt_loop *loop, int op, int fd, struct shunt_source *source,
			  uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = source };

	return loop->fds->sys->epoll_ctl(loop->epfd, op, fd, &event) ? -errno : 0;
}

int shunt_loop_change(struct shunt_loop *loop, int fd, struct shunt_source *source, uint32_t events)
{
	return source_control(loop, EPOLL_CTL_MOD, fd, source, events);
}

int shunt_loop_add(struct shunt_loop *loop, int fd, struct shunt_source *source, uint32_t events)
{
	int result = source_control(loop, EPOLL_CTL_ADD, fd, source, events);

	/* The number had the same file before, was closed, and another number kept the file open. */
	return result == -EEXIST ? shunt_loop_change(loop, fd, source, events) : result;
}

void shunt_loop_remove(struct shunt_loop *loop, int fd)
{
	source_control(loop, EPOLL_CTL_DEL, fd, NULL, 0);
}

void shunt_loop_wake(struct shunt_loop *loop)
{
	uint64_t one = 1;
	int saved = errno;

	if (!atomic_load(&loop->open) || atomic_exchange(&loop->woken, true))
		return;
	if (loop->fds->sys->write(loop->wake_fd, &one, sizeof(one)) < 0)
		atomic_store(&loop->woken, false);
	errno = saved;
}

static void woken(struct shunt_source *source, uint32_t events)
{
	struct shunt_loop *loop = shunt_loop_owner(source, struct shunt_loop, wake_source);
	uint64_t count;

	(void)events;
	loop->fds->sys->read(loop->wake_fd, &count, sizeof(count));
	atomic_store(&loop->woken, false);
}

int shunt_loop_open(struct shunt_loop *loop)
{
	loop->requests = (struct shunt_requests){ 0 };
	loop->wake_source.ready = woken;
	atomic_store(&loop->woken, false);
	loop->first = NULL;
	loop->last = &loop->first;
	loop->epfd = shunt_own_fds_make(loop->fds, loop->fds->sys->epoll_create1(EPOLL_CLOEXEC));
	loop->wake_fd = shunt_own_fds_make(loop->fds, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (loop->epfd < 0 || loop->wake_fd < 0 ||
	    shunt_loop_add(loop, loop->wake_fd, &loop->wake_source, EPOLLIN)) {
		shunt_loop_close(loop);
		return -ENOMEM;
	}
	atomic_store(&loop->open, true);
	return 0;
}

void shunt_loop_close(struct shunt_loop *loop)
{
	atomic_store(&loop->open, false);
	shunt_own_fds_close(loop->fds, loop->epfd);
	shunt_own_fds_close(loop->fds, loop->wake_fd);
	loop->epfd = loop->wake_fd = -1;
}

/* --- tasks --- */

void shunt_loop_enlist(struct shunt_loop *loop, const char *name, struct shunt_task *task,
		       void (*run)(struct shunt_task *), bool each_round)
{
	*task = (struct shunt_task) { .name = name, .run = run, .when = SHUNT_NEVER, .each_round = each_round };
	*loop->last = task;
	loop->last = &task->next;
}

/* True: it was not due as early. */
static bool hasten(struct shunt_task *task, uint64_t when)
{
	uint64_t before = atomic_load(&task->when);

	while (when < before)
		if (atomic_compare_exchange_weak(&task->when, &before, when))
			return true;
	return false;
}

void shunt_loop_post(struct shunt_loop *loop, struct shunt_task *task)
{
	if (hasten(task, 0))
		shunt_loop_wake(loop);
}

void shunt_loop_remind(struct shunt_loop *loop, struct shunt_task *task, uint64_t when)
{
	uint64_t never = SHUNT_NEVER;

	if (atomic_compare_exchange_strong(&task->when, &never, when))
		shunt_loop_wake(loop);
}

void shunt_task_at(struct shunt_task *task, uint64_t when)
{
	hasten(task, when);
}

static uint64_t due(struct shunt_task *task)
{
	uint64_t when = atomic_load(&task->when);

	return when < task->not_before ? task->not_before : when;
}

int shunt_loop_work(struct shunt_loop *loop, int timeout_ms)
{
	uint64_t now = loop->fds->sys->now(), first = SHUNT_NEVER, begun;

	for (struct shunt_task *task = loop->first; task; task = task->next) {
		if (!task->each_round && due(task) > now)
			continue;
		atomic_store(&task->when, SHUNT_NEVER);
		begun = shunt_slow_begin(loop->steps);
		task->run(task);
		shunt_slow_end(loop->steps, begun, .step = SHUNT_STEP_SERVICE, .fd = -1,
			       .extra = (uintptr_t)task->name);
	}
	for (struct shunt_task *task = loop->first; task; task = task->next)
		if (due(task) < first)
			first = due(task);
	if (first == SHUNT_NEVER)
		return timeout_ms;
	now = loop->fds->sys->now();
	return shunt_loop_sooner(timeout_ms, first > now ? shunt_narrow_ms(first - now) : 0);
}

/* --- sources --- */

int shunt_loop_wait(struct shunt_loop *loop, struct epoll_event *events, int most, int timeout_ms)
{
	return loop->fds->sys->epoll_pwait(loop->epfd, events, most, timeout_ms, NULL);
}

void shunt_loop_hear(struct shunt_loop *loop, struct epoll_event *events, int count)
{
	uint64_t begun;

	for (int i = 0; i < count; i++) {
		struct shunt_source *source = events[i].data.ptr;

		begun = shunt_slow_begin(loop->steps);
		source->ready(source, events[i].events);
		shunt_slow_end(loop->steps, begun, .step = SHUNT_STEP_SERVICE, .fd = -1,
			       .extra = (uintptr_t) "source");
	}
}
