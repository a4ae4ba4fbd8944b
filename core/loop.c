#include "core/loop.h"
#include <errno.h>
#include <sys/eventfd.h>
#include "core/engine.h"
#include "core/thread.h"

static int control(struct shunt_loop *loop, int op, int fd, struct shunt_source *source, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = source };

	return loop->engine->sys->epoll_ctl(loop->epfd, op, fd, &event) ? -errno : 0;
}

int shunt_loop_add(struct shunt_loop *loop, int fd, struct shunt_source *source, uint32_t events)
{
	return control(loop, EPOLL_CTL_ADD, fd, source, events);
}

int shunt_loop_change(struct shunt_loop *loop, int fd, struct shunt_source *source, uint32_t events)
{
	return control(loop, EPOLL_CTL_MOD, fd, source, events);
}

void shunt_loop_remove(struct shunt_loop *loop, int fd)
{
	control(loop, EPOLL_CTL_DEL, fd, NULL, 0);
}

void shunt_loop_wake(struct shunt_loop *loop)
{
	uint64_t one = 1;
	int saved = errno;

	if (!atomic_load(&loop->open) || atomic_exchange(&loop->woken, true))
		return;
	if (loop->engine->sys->write(loop->wake_fd, &one, sizeof(one)) < 0)
		atomic_store(&loop->woken, false);
	errno = saved;
}

static void woken(struct shunt_source *source, uint32_t events)
{
	struct shunt_loop *loop = shunt_loop_owner(source, struct shunt_loop, wake_source);

	(void)events;
	shunt_parker_drain(loop->engine, loop->wake_fd);
	atomic_store(&loop->woken, false);
}

int shunt_loop_open(struct shunt_loop *loop, struct shunt_engine *engine)
{
	*loop = (struct shunt_loop) { .engine = engine, .wake_source.ready = woken };
	loop->epfd = shunt_private_make(engine, engine->sys->epoll_create1(EPOLL_CLOEXEC));
	loop->wake_fd = shunt_private_make(engine, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
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
	shunt_private_close(loop->engine, loop->epfd);
	shunt_private_close(loop->engine, loop->wake_fd);
	loop->epfd = loop->wake_fd = -1;
}

int shunt_loop_wait(struct shunt_loop *loop, struct epoll_event *events, int most, int timeout_ms)
{
	return loop->engine->sys->epoll_pwait(loop->epfd, events, most, timeout_ms, NULL);
}

void shunt_loop_hear(struct epoll_event *events, int count)
{
	for (int i = 0; i < count; i++) {
		struct shunt_source *source = events[i].data.ptr;

		source->ready(source, events[i].events);
	}
}
