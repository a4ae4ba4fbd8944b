/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include "core/engine.h"
#include "core/stream/handover.h"
#include "core/stream/named.h"
#include "core/stream/offer.h"
#include "core/stream/ready.h"
#include "core/stream/tuple.h"
#include "core/stream/wait.h"
#include "core/wait/companion.h"
#include "core/wait/epset.h"
#include "core/wait/epsets.h"
#include "core/wait/nested.h"
#include "core/wait/watch.h"

/* Flags that EPOLLEXCLUSIVE may go with (EPOLLEXCLUSIVE_OK_BITS of the kernel). */
#define EXCLUSIVE_BITS (EPOLLIN | EPOLLOUT | EPOLLRDNORM | EPOLLWRNORM | EPOLLERR | EPOLLHUP |	\
			EPOLLWAKEUP | EPOLLET | EPOLLEXCLUSIVE)

static struct shunt_watch *watch_find(struct shunt_stream *stream, struct shunt_epset *set, int fd)
{
	struct shunt_watch *watch = stream->watches;

	while (watch && (watch->set != set || watch->fd != fd))
		watch = watch->next_of_stream;
	return watch;
}

/*
 * One-shot registrations are in the program's epfd only once the stream is the kernel's for good. The kernel would
 * disable them there without telling us, and a stream that joins a link later must know.
 */
static uint8_t home_for(struct shunt_watch *watch)
{
	uint8_t state = atomic_load(&watch->stream->state);

	if (watch->events & EPOLLONESHOT && watch->disabled)
		return SHUNT_HOME_NONE;
	if (__builtin_expect(watch->stream->births != NULL, 0))
		return SHUNT_HOME_COMPANION;
	if (state == SHUNT_PLAIN || (state != SHUNT_LINKED && !(watch->events & EPOLLONESHOT)))
		return SHUNT_HOME_SET;
	return shunt_ready_kernel(watch->stream, watch->events) ? SHUNT_HOME_COMPANION : SHUNT_HOME_NONE;
}

/*
 * Events of directions that are still on TCP, edge-triggered if the program's watch is. Never EPOLLONESHOT: what the
 * kernel has told us may no longer be so when the program asks, and then the watch goes on.
 */
static uint32_t companion_events(struct shunt_watch *watch)
{
	uint32_t asked = shunt_ready_kernel(watch->stream, watch->events);

	return (watch->events & asked & ~SHUNT_WATCH_MODES) | (watch->events & EPOLLET);
}

static int kernel_remove(struct shunt_engine *engine, struct shunt_watch *watch)
{
	const struct shunt_sys *sys = engine->sys;

	if (watch->home == SHUNT_HOME_SET)
		return sys->epoll_ctl(watch->set->fd, EPOLL_CTL_DEL, watch->fd, NULL) ? -errno : 0;
	if (watch->home == SHUNT_HOME_COMPANION)
		sys->epoll_ctl(watch->set->companion, EPOLL_CTL_DEL, watch->fd, NULL);
	return 0;
}

static int kernel_add(struct shunt_engine *engine, struct shunt_watch *watch, uint8_t home)
{
	const struct shunt_sys *sys = engine->sys;
	struct epoll_event event = { .events = watch->events, .data.u64 = watch->data };
	int failed = 0;

	watch->home = home;
	if (home == SHUNT_HOME_SET)
		return sys->epoll_ctl(watch->set->fd, EPOLL_CTL_ADD, watch->fd, &event) ? -errno : 0;
	if (shunt_nested_prepare(engine, watch->set))
		return -ENOMEM;
	if (home == SHUNT_HOME_COMPANION) {
		watch->kernel_events = event.events = companion_events(watch);
		watch->asked_anew = true;
		event.data.ptr = watch;
		failed = sys->epoll_ctl(watch->set->companion, EPOLL_CTL_ADD, watch->fd, &event);
	}
	return failed ? -errno : 0;
}

static void say_lost(const struct shunt_watch *watch)
{
	const struct shunt_stream *stream = watch->stream;
	const struct shunt_log_about about = {
		.fd = watch->fd,
		.tuple = shunt_tuple_is_known(&stream->tuple) ? &stream->tuple : NULL,
		.accepted = stream->role == SHUNT_ACCEPTOR,
	};

	shunt_log_write_about(SHUNT_LOG_ERROR, &about, "its epoll registration is lost");
}

/* `quietly`: nothing that the program has been told of has changed. */
static void rehome(struct shunt_engine *engine, struct shunt_watch *watch, bool quietly)
{
	uint8_t home = home_for(watch);
	struct epoll_event event;
	bool from_set;

	if (home == watch->home) {
		if (home != SHUNT_HOME_COMPANION || watch->kernel_events == companion_events(watch))
			return;
		watch->kernel_events = event.events = companion_events(watch);
		watch->asked_anew = true;
		event.data.ptr = watch;
		engine->sys->epoll_ctl(watch->set->companion, EPOLL_CTL_MOD, watch->fd, &event);
		return;
	}
	from_set = watch->home == SHUNT_HOME_SET;
	watch->moved |= from_set;	/* it may move on before somebody looks */
	if (from_set)
		shunt_watch_leaves_kernel(watch);
	kernel_remove(engine, watch);
	if (from_set)
		shunt_nested_count(engine, watch->set, 1);
	watch->kernel_ready = 0;
	if (home == SHUNT_HOME_SET) {	/* else it keeps its turn: what has come first is told of first */
		shunt_watch_unlist(watch);
		atomic_fetch_add(&watch->set->returns, 1);
	}
	if (kernel_add(engine, watch, home))
		say_lost(watch);
	if (home == SHUNT_HOME_SET) {
		shunt_nested_count(engine, watch->set, -1);
		shunt_watch_comes_to_kernel(engine, watch);
		atomic_fetch_add(&watch->set->returns, 1);
	} else if (!watch->disabled) {
		shunt_watch_suspect(watch);
		if (quietly || shunt_watch_is_no_edge(engine, watch, 0))
			return;
		if (from_set && !watch->listed)
			shunt_watch_list_first(watch);	/* what it has may be older than all that came by the link */
		shunt_watch_touch(engine, watch);
	}
}

static void rehome_all(struct shunt_engine *engine, struct shunt_stream *stream, bool quietly)
{
	int saved = errno;

	for (struct shunt_watch *watch = stream->watches; watch; watch = watch->next_of_stream) {
		rehome(engine, watch, quietly);
		shunt_watch_name(engine, watch);
	}
	errno = saved;
}

void shunt_epset_notify(struct shunt_group *group, struct shunt_stream *stream, uint32_t what)
{
	struct shunt_engine *engine = shunt_engine_of(group, group);
	bool served = false;

	if (what & (SHUNT_READY_TRACK | SHUNT_READY_RELEASED))
		rehome_all(engine, stream, what & SHUNT_READY_RELEASED);
	what &= ~(SHUNT_READY_TRACK | SHUNT_READY_RELEASED);
	for (struct shunt_watch *watch = stream->watches; watch; watch = watch->next_of_stream) {
		if (watch->home == SHUNT_HOME_SET || watch->disabled)
			continue;
		if (!(what & (watch->events | EPOLLERR | EPOLLHUP)))
			continue;
		/* An arrival is an edge, also of what lies before it unread. */
		if (watch->home == SHUNT_HOME_COMPANION && what & SHUNT_READY_ARRIVED)
			watch->kernel_ready |= EPOLLIN | EPOLLRDNORM;
		/* The kernel's edge may have been spent on a send that was refused. */
		if (watch->home == SHUNT_HOME_COMPANION && what & SHUNT_READY_SETTLED)
			watch->kernel_ready |= EPOLLOUT | EPOLLWRNORM;
		if (shunt_watch_is_no_edge(engine, watch, what))
			continue;
		if (__builtin_expect(watch->events & EPOLLEXCLUSIVE, 0))
			served = shunt_watch_touch_exclusive(engine, watch, served);
		else if (shunt_named_rings(stream, watch->set->waiter, what))
			shunt_watch_list(engine, watch);	/* the peer wakes those who sleep in the set */
		else
			shunt_watch_touch(engine, watch);
	}
}

int shunt_epset_prepare(struct shunt_engine *engine, struct shunt_stream *stream)
{
	int result = 0;

	shunt_lock_take(&engine->group.lock);
	for (struct shunt_watch *watch = stream->watches; watch && !result; watch = watch->next_of_stream)
		result = shunt_nested_prepare(engine, watch->set);
	shunt_lock_leave(&engine->group.lock);
	return result;
}

static struct shunt_watch *watch_make(struct shunt_epset *set)
{
	struct shunt_watch *watch = set->spare;

	set->spare = NULL;
	return watch ? watch : malloc(sizeof(*watch));
}

static void watch_free(struct shunt_watch *watch)
{
	struct shunt_epset *set = watch->set;

	if (set->spare)
		free(watch);
	else
		set->spare = watch;
}

void shunt_epset_unwatch(struct shunt_watch *watch)
{
	struct shunt_watch **p = &watch->stream->watches;

	if (watch->named) {
		watch->set->named--;
		shunt_named_write(watch->stream, 0);
	}
	while (*p != watch)
		p = &(*p)->next_of_stream;
	*p = watch->next_of_stream;
	shunt_watch_unlist(watch);
	watch_free(watch);
}

static int watch_add(struct shunt_engine *engine, struct shunt_epset *set,
		     struct shunt_stream *stream, int fd, const struct epoll_event *event)
{
	struct shunt_watch *watch;
	int result;

	if (event->events & EPOLLEXCLUSIVE && event->events & ~EXCLUSIVE_BITS)
		return -EINVAL;
	if (watch_find(stream, set, fd))
		return -EEXIST;
	watch = watch_make(set);
	if (!watch)
		return -ENOMEM;
	*watch = (struct shunt_watch) { .set = set, .stream = stream, .fd = fd,
					.events = event->events, .data = event->data.u64 };
	result = kernel_add(engine, watch, home_for(watch));
	if (result) {
		watch_free(watch);
		return result;
	}
	watch->next_of_stream = stream->watches;
	stream->watches = watch;
	shunt_watch_comes_to_kernel(engine, watch);
	if (watch->home != SHUNT_HOME_SET) {
		shunt_nested_count(engine, set, 1);
		shunt_watch_name(engine, watch);
		shunt_watch_begin(engine, watch);
	}
	return 0;
}

int shunt_epset_adopt(struct shunt_engine *engine, struct shunt_epset *set, uint32_t generation,
		      struct shunt_stream *stream, uint32_t events, uint64_t data)
{
	struct shunt_watch *watch = calloc(1, sizeof(*watch));

	if (!watch)
		return -ENOMEM;
	*watch = (struct shunt_watch) {
		.set = set, .stream = stream, .fd = stream->fd, .events = events, .data = data
	};
	shunt_lock_take(&engine->group.lock);
	if (set->generation == generation && !set->closed) {
		watch->next_of_stream = stream->watches;
		stream->watches = watch;
		shunt_watch_comes_to_kernel(engine, watch);
		watch = NULL;
	}
	shunt_lock_leave(&engine->group.lock);
	free(watch);
	return 0;
}

void shunt_epset_carry(struct shunt_engine *engine, struct shunt_stream *from,
		       struct shunt_stream *to)
{
	struct shunt_watch *watch;

	shunt_lock_take(&engine->group.lock);
	while ((watch = from->watches) != NULL) {
		shunt_watch_unname(engine, watch);
		from->watches = watch->next_of_stream;
		if (watch->home == SHUNT_HOME_SET)
			shunt_nested_count(engine, watch->set, 1);
		shunt_watch_unlist(watch);
		*watch = (struct shunt_watch) { .set = watch->set, .stream = to, .fd = watch->fd,
						.events = watch->events, .data = watch->data,
						.disabled = watch->disabled,
						.next_of_stream = to->watches };
		to->watches = watch;
		if (kernel_add(engine, watch, home_for(watch)))
			say_lost(watch);
		shunt_watch_name(engine, watch);
		if (!watch->disabled)
			shunt_watch_begin(engine, watch);
	}
	shunt_lock_leave(&engine->group.lock);
}

static int modify(struct shunt_engine *engine, struct shunt_watch *watch,
		  const struct epoll_event *event)
{
	struct epoll_event copy = *event;

	if (event->events & EPOLLEXCLUSIVE || watch->events & EPOLLEXCLUSIVE)
		return -EINVAL;
	if (watch->home == SHUNT_HOME_SET &&
	    engine->sys->epoll_ctl(watch->set->fd, EPOLL_CTL_MOD, watch->fd, &copy))
		return -errno;
	watch->events = event->events;
	watch->data = event->data.u64;
	watch->disabled = false;
	watch->kernel_ready = 0;
	if (watch->home != SHUNT_HOME_SET || event->events & EPOLLONESHOT)
		rehome(engine, watch, true);
	shunt_watch_comes_to_kernel(engine, watch);
	shunt_watch_name(engine, watch);
	if (watch->home != SHUNT_HOME_SET)
		shunt_watch_begin(engine, watch);
	return 0;
}

static int delete(struct shunt_engine *engine, struct shunt_watch *watch)
{
	int result = kernel_remove(engine, watch);

	if (watch->home != SHUNT_HOME_SET)
		shunt_nested_count(engine, watch->set, -1);
	shunt_epset_unwatch(watch);
	return result;
}

static int control_stream(struct shunt_engine *engine, struct shunt_epset *set,
			  struct shunt_stream *stream, int op, int fd, struct epoll_event *event)
{
	struct shunt_watch *watch = watch_find(stream, set, fd);

	if (set->closed)
		return -EBADF;
	/* Registered before the listener was known (shunt_file_adopted). */
	if (!watch && op != EPOLL_CTL_ADD && stream->role == SHUNT_LISTENER)
		return engine->sys->epoll_ctl(set->fd, op, fd, event) ? -errno : 0;
	switch (op) {
	case EPOLL_CTL_ADD:
		return watch_add(engine, set, stream, fd, event);
	case EPOLL_CTL_MOD:
		return watch ? modify(engine, watch, event) : -ENOENT;
	case EPOLL_CTL_DEL:
		return watch ? delete(engine, watch) : -ENOENT;
	default:
		return -EINVAL;
	}
}

int shunt_epset_ctl(struct shunt_engine *engine, int epfd, int op, int fd, struct epoll_event *event)
{
	struct shunt_file *file = shunt_file(engine, fd);
	struct shunt_file *owner = shunt_file(engine, epfd);
	struct shunt_group *group = &engine->group;
	struct shunt_stream *stream = (struct shunt_stream *)file;
	struct shunt_epset *set = (struct shunt_epset *)owner;
	int result;

	if (!file || file->kind == SHUNT_FILE_RING || !owner || owner->kind != SHUNT_FILE_EPOLL ||
	    fd == epfd || (!event && op != EPOLL_CTL_DEL)) {
		return engine->sys->epoll_ctl(epfd, op, fd, event) ? -errno : 0;
	}
	if (file->kind == SHUNT_FILE_PRIVATE)
		return -EBADF;
	if (file->kind == SHUNT_FILE_EPOLL) {
		shunt_epset_unnumber(engine, set);
		shunt_epset_unnumber(engine, (struct shunt_epset *)file);
		shunt_lock_take(&group->lock);
		result = shunt_nested_control(engine, set, (struct shunt_epset *)file, op, fd,
					      event);
		shunt_lock_leave(&group->lock);
		return result;
	}
	if (op == EPOLL_CTL_ADD && shunt_stream_use_is_news(stream))
		shunt_offer_used(engine, stream);
	if (atomic_load(&stream->state) == SHUNT_FOREIGN &&
	    shunt_handover_ask(engine, fd, stream) == -ENOMEM)
		return -ENOMEM;
	shunt_lock_take(&group->lock);
	result = control_stream(engine, set, stream, op, fd, event);
	shunt_lock_leave(&group->lock);
	/* An arrival may have looked for the stream's former waiter just before the entry changed. */
	if (__builtin_expect(group->waiters.begun, 0)) {
		atomic_thread_fence(memory_order_seq_cst);
		shunt_group_poll_fully(group);
	}
	if (__builtin_expect(result != -ENOMEM, 1))
		return result;
	/* The kernel would have had a place for it: then the stream must be the kernel's. */
	if (shunt_stream_retire(engine, fd, stream, SHUNT_CAUSE_SET_FULL))
		return result;
	shunt_lock_take(&group->lock);
	result = control_stream(engine, set, stream, op, fd, event);
	shunt_lock_leave(&group->lock);
	return result;
}

/*
 * The kernel forgets a registration when the file's last number goes; ours go with the same. False while its file may
 * stay open: we or a peer may have a copy, or the service thread may use it in a call. Until that ends the set would
 * report it, so the kernel must be told. A fork's child has only some of the numbers: what the kernel knows there
 * stays the parent's.
 */
static bool kernel_forgets(struct shunt_engine *engine, const struct shunt_stream *stream)
{
	bool alone;

	if (stream->sharing.forked & SHUNT_FORK_INHERITED)
		return true;
	shunt_lock_take(&engine->streams_lock);
	alone = !stream->holds && !stream->spare && !shunt_tuple_is_known(&stream->tuple) &&
		stream->parting != SHUNT_ORPHANED;
	shunt_lock_leave(&engine->streams_lock);
	return alone;
}

static void drop(struct shunt_engine *engine, struct shunt_watch *watch, bool forgets)
{
	if (watch->home == SHUNT_HOME_SET && forgets)
		shunt_epset_unwatch(watch);
	else
		delete(engine, watch);
}

void shunt_epset_drop_stream(struct shunt_engine *engine, struct shunt_stream *stream)
{
	bool forgets = kernel_forgets(engine, stream);
	struct shunt_group *group = &engine->group;

	shunt_lock_take(&group->lock);
	while (stream->watches)
		drop(engine, stream->watches, forgets);
	shunt_lock_leave(&group->lock);
}

static bool watched_by(struct shunt_stream *stream, struct shunt_epset *set)
{
	struct shunt_watch *watch = stream->watches;

	while (watch && watch->set != set)
		watch = watch->next_of_stream;
	return watch;
}

void shunt_epset_ask(struct shunt_engine *engine, struct shunt_epset *set)
{
	struct shunt_stream *stream;

	set->inherited = false;
	shunt_files_each(engine->fds.files, fd) {
		struct shunt_file *file = shunt_file(engine, fd);

		stream = file && file->kind == SHUNT_FILE_STREAM ? (struct shunt_stream *)file : NULL;
		if (stream && atomic_load(&stream->state) == SHUNT_FOREIGN && watched_by(stream, set))
			shunt_handover_ask(engine, fd, stream);
	}
}
