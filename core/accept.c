/* SPDX-License-Identifier: MIT */
#include "core/accept.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include "core/api.h"
#include "core/engine.h"
#include "core/fd/own_fds.h"
#include "core/fd/thread.h"
#include "core/stream/births.h"
#include "core/stream/rx.h"
#include "core/stream/stream_end.h"
#include "core/stream/wait.h"

bool shunt_accept_waits(const struct shunt_stream *listener)
{
	return listener->role == SHUNT_LISTENER &&
	       listener->group->config->born == SHUNT_BORN_AUTO &&
	       !shunt_stream_is_nonblocking(listener) &&
	       (!listener->sharing.forked || listener->births);
}

/* The kernel takes a number before it waits, so a process that has none is told at once. 0 or -errno. */
static int has_number(struct shunt_engine *engine, int fd)
{
	int copy = engine->sys->fcntl(fd, F_DUPFD, 0);

	if (copy < 0)
		return -errno;
	engine->sys->close(copy);
	return 0;
}

/* The next of the kernel's queue: its number, or -errno. -EAGAIN: it is empty. No lock but the listener's rx.lock held. */
static int take(struct shunt_engine *engine, int fd, const struct shunt_stream *listener,
		const struct shunt_accept *call)
{
	struct pollfd ask = { .fd = fd, .events = POLLIN };
	struct timespec none = { 0, 0 };
	int made;

	shunt_assert_held(&listener->rx.lock);
	if (engine->sys->ppoll(&ask, 1, &none, NULL) <= 0)
		return -EAGAIN;
	if (listener->sharing.forked)
		return SHUNT_ACCEPT_KERNEL;
	made = engine->sys->accept(fd, call->address, call->length, call->flags);
	return made < 0 ? -errno : made;
}

/* One look at the kernel's queue, and a wait if it is empty: *waited. The number, or -errno. rx.lock held, given up meanwhile. */
static int take_or_wait(struct shunt_engine *engine, int *fd, struct shunt_stream *listener,
			const struct shunt_accept *call, uint64_t *deadline, bool *waited)
{
	int result;

	if (!shunt_streams_still(engine, fd, listener))
		return *deadline ? -EBADF : -ERESTART;
	result = take(engine, *fd, listener, call);
	*waited = result == -EAGAIN;
	if (!*waited)
		return result;
	if (!*deadline) {
		*deadline = shunt_stream_deadline(engine, *fd, listener, true);
		result = has_number(engine, *fd);
		if (result)
			return result;
	}
	return shunt_wait_call(listener, &listener->rx.lock, EPOLLIN, *deadline, false);
}

int shunt_accept_wait(struct shunt_engine *engine, int fd, struct shunt_stream *listener,
		      struct shunt_accept *call)
{
	int flags = call->flags == SHUNT_ACCEPT_PLAIN ? 0 : call->flags, made;
	uint64_t deadline = 0;
	bool waited = false;

	shunt_thread_begin();
	do {
		made = shunt_born_accept(engine, listener, waited, flags,
					 call->address ? &call->peer : NULL);
		call->born = made != -EAGAIN;
		if (call->born)
			break;
		shunt_lock_take(&listener->rx.lock);
		made = take_or_wait(engine, &fd, listener, call, &deadline, &waited);
		shunt_lock_leave(&listener->rx.lock);
	} while (waited && !made);
	if (__builtin_expect(listener->parting == SHUNT_ORPHANED, 0))
		shunt_streams_end_orphan(listener);
	return made;
}

static bool is_listener(struct shunt_stream *stream, void *arg)
{
	(void)arg;
	return stream->role == SHUNT_LISTENER && stream->fd >= 0;
}

void shunt_accept_share(struct shunt_engine *engine)
{
	struct shunt_sweep sweep = { .wants = is_listener };
	struct shunt_stream *listener;

	while ((listener = shunt_streams_next(engine, &sweep)) != NULL) {
		shunt_lock_take(&listener->rx.lock);
		listener->sharing.forked |= SHUNT_FORK_COPIED;
		shunt_lock_leave(&listener->rx.lock);
	}
}
