#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include "core/engine.h"
#include "core/epset.h"
#include "core/offer.h"
#include "core/thread.h"

#define MODE_BITS (EPOLLET | EPOLLONESHOT | EPOLLEXCLUSIVE | EPOLLWAKEUP)
/* What EPOLLEXCLUSIVE goes together with (EPOLLEXCLUSIVE_OK_BITS of the kernel). */
#define EXCLUSIVE_BITS (EPOLLIN | EPOLLOUT | EPOLLRDNORM | EPOLLWRNORM | EPOLLERR | EPOLLHUP |	\
			EPOLLWAKEUP | EPOLLET | EPOLLEXCLUSIVE)

/* --- the ready list --- */

static void list(struct shunt_watch *watch)
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

/* What the kernel has told came before what was found since. */
static void list_first(struct shunt_watch *watch)
{
	struct shunt_epset *set = watch->set;

	watch->listed = true;
	watch->next_ready = set->first;
	set->first = watch;
	if (!set->last)
		set->last = watch;
	set->ready++;
}

static struct shunt_watch *unlist(struct shunt_epset *set)
{
	struct shunt_watch *watch = set->first;

	set->first = watch->next_ready;
	if (!set->first)
		set->last = NULL;
	watch->listed = false;
	set->ready--;
	return watch;
}

static void unlist_one(struct shunt_watch *watch)
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

/* What the kernel would say is not known: it will be asked when the watch is reported. */
static void suspect(struct shunt_watch *watch)
{
	watch->kernel_ready = shunt_ready_kernel(watch->stream, watch->events) & watch->events & ~MODE_BITS;
}

void shunt_epset_kick(struct shunt_engine *engine, struct shunt_epset *set)
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

/* What the kernel has said may be history by now, or about a track that was left. */
static uint32_t still_ready(struct shunt_engine *engine, struct shunt_watch *watch)
{
	struct pollfd fd = { .fd = watch->fd,
			     .events = shunt_narrow_poll(shunt_ready_kernel(watch->stream, watch->events) &
							 watch->kernel_ready) };
	struct timespec none = { 0, 0 };

	if (!watch->kernel_ready || engine->sys->ppoll(&fd, 1, &none, NULL) <= 0)
		return 0;
	return shunt_ready_reset(watch->stream, (uint16_t)fd.revents);
}

static uint32_t watch_ready(struct shunt_engine *engine, struct shunt_watch *watch)
{
	uint32_t ready;

	/* The kernel's since a moment ago, and about to return to the program's epfd. */
	if (__builtin_expect(atomic_load_explicit(&watch->stream->state, memory_order_relaxed) != SHUNT_LINKED, 0))
		suspect(watch);
	ready = shunt_ready_user(watch->stream) | still_ready(engine, watch);

	return ready & (watch->events | EPOLLERR | EPOLLHUP) & ~MODE_BITS;
}

#define IN_BITS (EPOLLIN | EPOLLRDNORM)
#define OUT_BITS (EPOLLOUT | EPOLLWRNORM)

/* Something has changed, but the program knows that it can send, no send has been refused since, and there is no more to say. */
static bool is_no_edge(struct shunt_engine *engine, struct shunt_watch *watch, uint32_t what)
{
	return watch->can_send && !(what & ~(IN_BITS | OUT_BITS)) &&
	       watch->refusals == atomic_load(&watch->stream->tx.refusals) &&
	       !(watch_ready(engine, watch) & ~OUT_BITS);
}

/* It is about to leave the program's epfd, where nobody sees what is reported: sure is only what could not be otherwise. */
static void note_told(struct shunt_watch *watch)
{
	struct shunt_tx *tx = &watch->stream->tx;

	watch->can_send = watch->could_send && atomic_load(&watch->set->drained) > watch->since &&
			  !atomic_load(&tx->exposed);
	watch->refusals = atomic_load(&tx->refusals);
}

/* It has come into the program's epfd, which reports at once what is true now. */
static void note_came(struct shunt_engine *engine, struct shunt_watch *watch)
{
	struct pollfd fd = { .fd = watch->fd, .events = POLLOUT };
	struct timespec none = { 0, 0 };

	watch->can_send = watch->could_send = false;
	if (watch->home != SHUNT_HOME_SET || !(watch->events & EPOLLET) || !(watch->events & OUT_BITS))
		return;
	watch->since = atomic_load(&watch->set->begun);
	watch->could_send = engine->sys->ppoll(&fd, 1, &none, NULL) > 0 && fd.revents & POLLOUT;
}

static void touch(struct shunt_engine *engine, struct shunt_watch *watch)
{
	watch->fresh = true;
	if (!watch->listed)
		list(watch);
	/* Who sleeps in the set looks for himself; a set inside another must not cry wolf. */
	if (watch->set->sleeping || (watch->set->nested && watch_ready(engine, watch)))
		shunt_epset_kick(engine, watch->set);
}

void shunt_epset_notify(struct shunt_engine *engine, struct shunt_stream *stream, uint32_t what)
{
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
		if (!is_no_edge(engine, watch, what))
			touch(engine, watch);
	}
}

void shunt_epset_heard(struct shunt_engine *engine, struct shunt_watch *watch, uint32_t ready)
{
	bool anew = watch->asked_anew;

	watch->kernel_ready |= ready;
	watch->asked_anew = false;
	if (anew && is_no_edge(engine, watch, ready))
		return;
	if (!watch->listed)
		list_first(watch);
	touch(engine, watch);
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

int shunt_epset_collect(struct shunt_engine *engine, struct shunt_epset *set,
			struct epoll_event *events, int max, bool beside)
{
	int count = 0;

	for (uint32_t left = set->ready; left && count < max; left--) {
		struct shunt_watch *watch = unlist(set);
		bool twice = beside && watch->moved;
		uint32_t ready, refusals;

		watch->moved = false;
		if (__builtin_expect(twice, 0)) {	/* it may be among what the kernel has said: next time */
			list(watch);
			continue;
		}
		refusals = atomic_load_explicit(&watch->stream->tx.refusals, memory_order_relaxed);
		ready = watch->disabled ? 0 : watch_ready(engine, watch);
		/* A level is reported until it is over, and who has just been told need not hear it from the companion again. */
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
			list(watch);
	}
	return count;
}

/* As long as something is on the list, whoever watches the set from outside must see it readable. */
void shunt_epset_nest(struct shunt_engine *engine, struct shunt_epset *set)
{
	if (set->nested)
		return;
	set->nested = true;
	set->next_nested = engine->group.nested_sets;
	engine->group.nested_sets = set;
}

void shunt_epset_refresh(struct shunt_engine *engine)
{
	for (struct shunt_epset *set = engine->group.nested_sets; set; set = set->next_nested) {
		if (shunt_epset_is_ready(engine, set)) {
			shunt_epset_kick(engine, set);
		} else if (set->kicked && !set->sleeping) {
			shunt_parker_drain(engine, set->kick_fd);
			set->kicked = false;
		}
	}
}

void shunt_epset_show(struct shunt_engine *engine, struct shunt_epset *set)
{
	if (set->nested && set->first && shunt_epset_is_ready(engine, set))
		shunt_epset_kick(engine, set);
}

bool shunt_epset_is_ready(struct shunt_engine *engine, struct shunt_epset *set)
{
	bool ready = false;

	for (struct shunt_watch *watch = set->first; watch && !ready; watch = watch->next_ready)
		ready = !watch->disabled && watch_ready(engine, watch) &&
			(!(watch->events & EPOLLET) || watch->fresh);
	return ready;
}

/* --- the companion --- */

static int companion_add(struct shunt_engine *engine, struct shunt_epset *set, int fd, void *data)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = data };

	return engine->sys->epoll_ctl(set->companion, EPOLL_CTL_ADD, fd, &event);
}

/* Its own address is what the companion is known by in the program's epfd. */
static int companion_open(struct shunt_engine *engine, struct shunt_epset *set)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = set };

	if (set->companion >= 0)
		return 0;
	set->companion = shunt_private_make(engine, engine->sys->epoll_create1(EPOLL_CLOEXEC));
	set->kick_fd = shunt_private_make(engine, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (set->companion < 0 || set->kick_fd < 0 ||
	    companion_add(engine, set, set->kick_fd, set) ||
	    engine->sys->epoll_ctl(set->fd, EPOLL_CTL_ADD, set->companion, &event)) {
		shunt_private_close(engine, set->companion);
		shunt_private_close(engine, set->kick_fd);
		set->companion = set->kick_fd = -1;
		return -ENOMEM;
	}
	return 0;
}

int shunt_epset_lead(struct shunt_engine *engine, struct shunt_epset *set)
{
	struct shunt_group *group = &engine->group;
	int fd;

	if (!group->open || set->companion < 0 || group->channel_set == set)
		return 0;
	fd = atomic_load(&group->bell);
	shunt_epset_silence(engine);
	if (companion_add(engine, set, fd, group))
		return -ENOMEM;
	group->channel_set = set;
	return 0;
}

void shunt_epset_silence(struct shunt_engine *engine)
{
	struct shunt_group *group = &engine->group;

	if (group->channel_set)
		engine->sys->epoll_ctl(group->channel_set->companion, EPOLL_CTL_DEL, group->bell, NULL);
	group->channel_set = NULL;
}

/* --- registrations --- */

static struct shunt_watch *find(struct shunt_stream *stream, struct shunt_epset *set, int fd)
{
	struct shunt_watch *watch = stream->watches;

	while (watch && (watch->set != set || watch->fd != fd))
		watch = watch->next_of_stream;
	return watch;
}

/*
 * One-shot registrations are the program's epfd's only once the stream is the kernel's for good: the kernel would
 * disable them there without telling us, and a stream that joins a link later must know.
 */
static uint8_t home_for(struct shunt_watch *watch)
{
	uint8_t state = atomic_load(&watch->stream->state);

	if (watch->events & EPOLLONESHOT && watch->disabled)
		return SHUNT_HOME_NONE;
	if (state == SHUNT_PLAIN || (state != SHUNT_LINKED && !(watch->events & EPOLLONESHOT)))
		return SHUNT_HOME_SET;
	return shunt_ready_kernel(watch->stream, watch->events) ? SHUNT_HOME_COMPANION : SHUNT_HOME_NONE;
}

/*
 * What the companion asks the kernel for: what is still on TCP, edges for who wants edges. Never EPOLLONESHOT: what
 * the kernel has told us may no longer be so when the program asks, and then the watch goes on.
 */
static uint32_t companion_events(struct shunt_watch *watch)
{
	uint32_t asked = shunt_ready_kernel(watch->stream, watch->events);

	return (watch->events & asked & ~MODE_BITS) | (watch->events & EPOLLET);
}

static int kernel_remove(struct shunt_engine *engine, struct shunt_watch *watch)
{
	const struct shunt_sys *sys = engine->sys;

	if (watch->home == SHUNT_HOME_SET)
		return sys->epoll_ctl(watch->set->fd, EPOLL_CTL_DEL, watch->fd, NULL) ? -errno : 0;
	if (watch->home == SHUNT_HOME_COMPANION)
		sys->epoll_ctl(watch->set->companion, EPOLL_CTL_DEL, watch->fd, NULL);
	watch->set->linked--;
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
	if (companion_open(engine, watch->set))
		return -ENOMEM;
	watch->set->linked++;
	if (home == SHUNT_HOME_COMPANION) {
		watch->kernel_events = event.events = companion_events(watch);
		watch->asked_anew = true;
		event.data.ptr = watch;
		failed = sys->epoll_ctl(watch->set->companion, EPOLL_CTL_ADD, watch->fd, &event);
	}
	return failed ? -errno : 0;
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
		note_told(watch);
	kernel_remove(engine, watch);
	watch->kernel_ready = 0;
	if (home == SHUNT_HOME_SET) {	/* else it keeps its turn: what has come first is told of first */
		unlist_one(watch);
		atomic_fetch_add(&watch->set->returns, 1);
	}
	if (kernel_add(engine, watch, home))
		shunt_log(SHUNT_LOG_ERROR, "descriptor %d: its epoll registration is lost", watch->fd);
	if (home == SHUNT_HOME_SET) {
		note_came(engine, watch);
		atomic_fetch_add(&watch->set->returns, 1);
	} else if (!watch->disabled) {
		suspect(watch);
		if (quietly || is_no_edge(engine, watch, 0))
			return;
		if (from_set && !watch->listed)
			list_first(watch);	/* what it has may be older than all that came by the link */
		touch(engine, watch);
	}
}

int shunt_epset_prepare(struct shunt_engine *engine, struct shunt_stream *stream)
{
	int result = 0;

	shunt_lock_take(&engine->group.lock);
	for (struct shunt_watch *watch = stream->watches; watch && !result; watch = watch->next_of_stream)
		result = companion_open(engine, watch->set);
	shunt_lock_leave(&engine->group.lock);
	return result;
}

void shunt_epset_rehome(struct shunt_engine *engine, struct shunt_stream *stream)
{
	int saved = errno;

	for (struct shunt_watch *watch = stream->watches; watch; watch = watch->next_of_stream)
		rehome(engine, watch, false);
	errno = saved;
}

void shunt_epset_released(struct shunt_engine *engine, struct shunt_stream *stream)
{
	int saved = errno;

	for (struct shunt_watch *watch = stream->watches; watch; watch = watch->next_of_stream)
		rehome(engine, watch, true);
	errno = saved;
}

void shunt_epset_unwatch(struct shunt_watch *watch)
{
	struct shunt_watch **p = &watch->stream->watches;

	while (*p != watch)
		p = &(*p)->next_of_stream;
	*p = watch->next_of_stream;
	unlist_one(watch);
	free(watch);
}

static int add(struct shunt_engine *engine, struct shunt_epset *set, struct shunt_stream *stream,
	       int fd, const struct epoll_event *event)
{
	struct shunt_watch *watch;
	int result;

	if (event->events & EPOLLEXCLUSIVE && event->events & ~EXCLUSIVE_BITS)
		return -EINVAL;
	if (find(stream, set, fd))
		return -EEXIST;
	watch = calloc(1, sizeof(*watch));
	if (!watch)
		return -ENOMEM;
	*watch = (struct shunt_watch) { .set = set, .stream = stream, .fd = fd,
					.events = event->events, .data = event->data.u64 };
	result = kernel_add(engine, watch, home_for(watch));
	if (result) {
		free(watch);
		return result;
	}
	watch->next_of_stream = stream->watches;
	stream->watches = watch;
	note_came(engine, watch);
	if (watch->home != SHUNT_HOME_SET) {
		suspect(watch);
		touch(engine, watch);
	}
	return 0;
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
		rehome(engine, watch, false);
	note_came(engine, watch);
	if (watch->home != SHUNT_HOME_SET) {
		suspect(watch);
		touch(engine, watch);
	}
	return 0;
}

static int delete(struct shunt_engine *engine, struct shunt_watch *watch)
{
	int result = kernel_remove(engine, watch);

	shunt_epset_unwatch(watch);
	return result;
}

static int control_stream(struct shunt_engine *engine, struct shunt_epset *set,
			  struct shunt_stream *stream, int op, int fd, struct epoll_event *event)
{
	struct shunt_watch *watch = find(stream, set, fd);

	if (set->closed)
		return -EBADF;
	/* Registered before the listener was known (shunt_file_adopted). */
	if (!watch && op != EPOLL_CTL_ADD && stream->role == SHUNT_LISTENER)
		return engine->sys->epoll_ctl(set->fd, op, fd, event) ? -errno : 0;
	switch (op) {
	case EPOLL_CTL_ADD:
		return add(engine, set, stream, fd, event);
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

	if (!file || !owner || owner->kind != SHUNT_FILE_EPOLL || fd == epfd ||
	    (!event && op != EPOLL_CTL_DEL)) {
		return engine->sys->epoll_ctl(epfd, op, fd, event) ? -errno : 0;
	}
	if (file->kind == SHUNT_FILE_PRIVATE)
		return -EBADF;
	if (file->kind == SHUNT_FILE_EPOLL) {
		struct shunt_epset *inner = (struct shunt_epset *)file;

		shunt_lock_take(&group->lock);
		shunt_epset_nest(engine, inner);
		shunt_epset_refresh(engine);
		/* Who waits in the outer set must poll for what is in the inner one. */
		if (op == EPOLL_CTL_ADD)
			companion_open(engine, set);
		shunt_lock_leave(&group->lock);
		return engine->sys->epoll_ctl(epfd, op, fd, event) ? -errno : 0;
	}
	if (op == EPOLL_CTL_ADD && !atomic_load(&stream->used))
		shunt_offer_used(engine, stream);
	if (op == EPOLL_CTL_ADD)
		shunt_file_accepting(engine, file);
	if (atomic_load(&stream->state) == SHUNT_FOREIGN && shunt_rights_ask(engine, fd, stream) == -ENOMEM)
		return -ENOMEM;
	shunt_lock_take(&group->lock);
	result = control_stream(engine, set, stream, op, fd, event);
	shunt_lock_leave(&group->lock);
	if (__builtin_expect(result != -ENOMEM, 1))
		return result;
	/* The kernel would have had a place for it: then the stream must be the kernel's. */
	if (shunt_stream_retire(engine, fd, stream, SHUNT_REASON_SET_FULL))
		return result;
	shunt_lock_take(&group->lock);
	result = control_stream(engine, set, stream, op, fd, event);
	shunt_lock_leave(&group->lock);
	return result;
}

bool shunt_epset_knows(struct shunt_engine *engine, struct shunt_stream *stream, int fd)
{
	struct shunt_group *group = &engine->group;
	struct shunt_watch *watch;

	shunt_lock_take(&group->lock);
	for (watch = stream->watches; watch && watch->fd != fd; watch = watch->next_of_stream)
		;
	shunt_lock_leave(&group->lock);
	return watch != NULL;
}

/*
 * The kernel forgets a registration when the file's last number goes; ours go with the same. Where we may have copies of
 * the descriptor, or a peer has been sent one, it must be told; and where the service thread, which then holds the stream,
 * may be in a call with it: the file goes with the end of that call, and until then the set would tell of it. A fork's
 * child has only some of the numbers: what the kernel knows there stays the parent's.
 */
static bool kernel_forgets(struct shunt_engine *engine, const struct shunt_stream *stream)
{
	bool alone;

	if (stream->inherited)
		return true;
	shunt_lock_take(&engine->streams_lock);
	alone = !stream->holds && !stream->tuple_known && !stream->orphan;
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
	for (int fd = 0; fd < shunt_files_top(engine->files); fd++) {
		struct shunt_file *file = shunt_file(engine, fd);

		stream = file && file->kind == SHUNT_FILE_STREAM ? (struct shunt_stream *)file : NULL;
		if (stream && atomic_load(&stream->state) == SHUNT_FOREIGN && watched_by(stream, set))
			shunt_rights_ask(engine, fd, stream);
	}
}
