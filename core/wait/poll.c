/* SPDX-License-Identifier: MIT */
/*
 * poll() over any mix of descriptors, and what select() has in common with it. Streams on a link
 * are judged in user space, the rest by one ppoll(). Its set is the program's, with the streams'
 * entries cut down to what is still on TCP.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include "core/base/deadline.h"
#include "core/engine.h"
#include "core/fd/thread.h"
#include "core/stream/handover.h"
#include "core/poll/cancel.h"
#include "core/poll/polling.h"
#include "core/stream/offer.h"
#include "core/stream/ready.h"
#include "core/stream/sleep.h"
#include "core/stream/stream_option.h"
#include "core/stream/wait.h"
#include "core/wait/epset.h"
#include "core/wait/epsets.h"
#include "core/wait/epwait.h"
#include "core/wait/nested.h"
#include "core/wait/poll.h"
#include "core/wait/watch.h"

#define POLL_BITS (POLLIN | POLLOUT | POLLPRI | POLLRDNORM | POLLWRNORM | POLLRDHUP | POLLERR | POLLHUP)
#define SET_BITS (POLLIN | POLLRDNORM)	/* all that a set has to report */
#define KERNEL_EVERY 2000	/* ns between two looks at the kernel's part while polling */
#define ENTRY_NS 200		/* no entry takes longer to look at */

struct polling {
	struct shunt_engine *engine;
	struct pollfd *user;		/* the program's array */
	nfds_t count;
	struct pollfd *kernel;		/* count + SHUNT_SLEEP_FDS entries */
	struct shunt_sleep_on *on;	/* one per entry; stream NULL: none */
	nfds_t kernel_fds;		/* entries the kernel must be asked about */
	nfds_t link_fds;		/* entries that a completion could make ready */
	bool apart;			/* no completion can change any entry: all is the kernel's, as long as nothing joins a link */
	nfds_t sets;			/* epoll sets that are asked for */
	bool counted;			/* among their pollers */
	bool moved;			/* a stream has gone over to the kernel since the plan */
	struct pollfd *made;		/* by select(), to be freed when a thread is cancelled */
	struct pollfd small_kernel[SHUNT_POLL_SMALL + SHUNT_SLEEP_FDS];
	struct shunt_sleep_on small_on[SHUNT_POLL_SMALL];
};

/* A listener that is asked for now may have births before the call is over. */
static bool may_have_births(const struct shunt_stream *stream)
{
	return stream->role == SHUNT_LISTENER && stream->group->config->born == SHUNT_BORN_AUTO;
}

bool shunt_wait_concerns(const struct shunt_file *file)
{
	if (file->kind == SHUNT_FILE_STREAM)
		return !shunt_stream_is_plain((const struct shunt_stream *)file) ||
		       may_have_births((const struct shunt_stream *)file);
	/* A stream of a set may join a link while the set is polled. */
	return file->kind == SHUNT_FILE_PRIVATE || file->kind == SHUNT_FILE_CLOSED ||
	       file->kind == SHUNT_FILE_EPOLL;
}

static int poll_prepare(struct polling *p)
{
	if (p->count <= SHUNT_POLL_SMALL) {
		p->kernel = p->small_kernel;
		p->on = p->small_on;
		return 0;
	}
	p->kernel = malloc((p->count + SHUNT_SLEEP_FDS) * sizeof(*p->kernel));
	p->on = malloc(p->count * sizeof(*p->on));
	if (p->kernel && p->on)
		return 0;
	free(p->kernel);
	free(p->on);
	return -ENOMEM;
}

static void poll_release(struct polling *p)
{
	if (p->kernel == p->small_kernel)
		return;
	free(p->kernel);
	free(p->on);
}

/* Its peer may announce something on the link, whatever track it is on. */
static bool hears_of_link(const struct shunt_stream *stream)
{
	uint8_t state = atomic_load(&stream->state);

	if (__builtin_expect(stream->births != NULL, 0))
		return true;
	return state != SHUNT_FRESH && state != SHUNT_CANDIDATE && state != SHUNT_PLAIN;
}

/* Sets the kernel's part of each entry; tracks may have changed since the last time. */
static void plan(struct polling *p)
{
	p->kernel_fds = p->link_fds = p->sets = 0;
	p->apart = true;
	for (nfds_t i = 0; i < p->count; i++) {
		struct shunt_file *file = shunt_numbers_look(&p->engine->fds, p->user[i].fd);

		p->kernel[i] = p->user[i];
		p->on[i].stream = NULL;
		p->on[i].set = NULL;
		if (file && (file->kind == SHUNT_FILE_PRIVATE || file->kind == SHUNT_FILE_CLOSED)) {
			/* not open: POLLNVAL */
			p->kernel[i].fd = shunt_narrow_int(p->engine->fds.files->limit);
		} else if (file && file->kind == SHUNT_FILE_STREAM) {
			struct shunt_stream *stream = (struct shunt_stream *)file;
			uint32_t ask = shunt_ready_kernel(stream, p->user[i].events);

			p->on[i].stream = stream;
			p->on[i].events = SHUNT_READY_WAKES(p->user[i].events & POLL_BITS);
			/* Errors and hang-ups are reported unasked, as long as a direction is on TCP. */
			p->kernel[i].events &= shunt_narrow_poll(ask);
			if (!ask)
				p->kernel[i].fd = -1;
			p->link_fds += (p->user[i].events & (POLLIN | POLLOUT) & ~ask) != 0 ||
				       stream->births;
			p->apart &= !hears_of_link(stream);
		}
		if (file && file->kind == SHUNT_FILE_EPOLL && p->user[i].events & SET_BITS) {
			bool concerned = shunt_epset_is_concerned((struct shunt_epset *)file);

			shunt_epset_unnumber(p->engine, (struct shunt_epset *)file);
			p->sets++;
			p->link_fds += concerned;
			p->apart &= !concerned;
		}
		p->kernel_fds += p->kernel[i].fd >= 0;
	}
}

static struct shunt_epset *set_at(struct polling *p, int fd)
{
	struct shunt_file *file = shunt_file(p->engine, fd);
	struct shunt_epset *set = (struct shunt_epset *)file;

	return file && file->kind == SHUNT_FILE_EPOLL && set->companion >= 0 ? set : NULL;
}

/*
 * An epoll set: readable if something is on its list, or by the kernel's word, unless that is only
 * about what Shunt keeps inside it.
 */
static short set_events(struct polling *p, struct shunt_epset *set, short revents, bool locked)
{
	struct pollfd again = { .fd = set->fd, .events = POLLIN };
	struct timespec none = { 0, 0 };
	bool ready;

	if (locked)
		shunt_nested_refresh(p->engine, set);
	ready = locked ? shunt_watch_any_ready(p->engine, set) : shunt_epset_absorb(p->engine, set);
	if (!ready && (atomic_load(&set->below) || revents & SET_BITS))
		ready = p->engine->sys->ppoll(&again, 1, &none, NULL) > 0;
	return ready ? SET_BITS : 0;
}

/* Would the kernel be asked about more of the stream at I now than when that was planned, or the link? */
static bool has_moved(const struct polling *p, nfds_t i)
{
	const struct pollfd *planned = &p->kernel[i];
	uint32_t ask = shunt_ready_kernel(p->on[i].stream, p->user[i].events);

	return (p->apart && hears_of_link(p->on[i].stream)) || (ask && planned->fd < 0) ||
	       (ask & p->user[i].events & ~planned->events);
}

/*
 * Fills revents. `asked`: the kernel's array is fresh; `locked`: group.lock is held. Returns how
 * many entries are ready. Events of a stream that has moved may be in neither.
 */
static int harvest(struct polling *p, bool asked, bool locked)
{
	int ready = 0;

	p->moved = false;
	for (nfds_t i = 0; i < p->count; i++) {
		short revents = asked && p->kernel[i].fd >= 0 ? p->kernel[i].revents : 0;
		short events = p->user[i].events | POLLERR | POLLHUP;
		struct shunt_epset *set;

		if (p->on[i].stream) {
			revents = (shunt_ready_reset(p->on[i].stream, revents) |
				   shunt_ready_user(p->on[i].stream)) & events & POLL_BITS;
			p->moved |= (asked || locked) && has_moved(p, i);	/* what is before a sleep or an answer */
		} else if (events & SET_BITS && (set = set_at(p, p->user[i].fd)) != NULL) {
			revents = set_events(p, set, revents, locked) & events;
			p->moved |= (asked || locked) && p->apart && shunt_epset_is_concerned(set);
		}
		p->user[i].revents = revents;
		ready += revents != 0;
	}
	return ready;
}

static int ask_kernel(struct polling *p)
{
	struct timespec none = { 0, 0 };

	if (!p->kernel_fds)
		return 0;
	return p->engine->sys->ppoll(p->kernel, p->count, &none, NULL) < 0 ? -errno : 0;
}

/* Sets that the thread is about to sleep on stay what they are until it has let go. */
static void hold_sets(struct polling *p)
{
	p->counted = false;
	for (nfds_t i = 0; p->sets && i < p->count; i++) {
		struct shunt_file *file = shunt_file(p->engine, p->user[i].fd);
		struct shunt_epset *set = (struct shunt_epset *)file;

		if (file && file->kind == SHUNT_FILE_EPOLL && p->user[i].events & SET_BITS &&
		    shunt_epset_hold(p->engine, set, p->user[i].fd))
			p->on[i].set = set;
	}
}

/* group.lock held. */
static void count_among_pollers(struct polling *p, uint32_t by)
{
	for (nfds_t i = 0; p->sets && i < p->count; i++)
		if (p->on[i].set)
			p->on[i].set->pollers += by;
	p->counted = by == 1;
}

static void let_go_of_sets(struct polling *p)
{
	if (!p->sets)
		return;
	shunt_lock_take(&p->engine->group.lock);
	if (p->counted)
		count_among_pollers(p, -1u);
	shunt_lock_leave(&p->engine->group.lock);
	for (nfds_t i = 0; i < p->count; i++) {
		if (p->on[i].set)
			shunt_epset_let_go(p->engine, p->on[i].set);
		p->on[i].set = NULL;
	}
}

static void poll_forget(void *arg)
{
	struct polling *p = arg;

	poll_release(p);
	free(p->made);
	shunt_cancel_unwinds();
}

/* One look at everything; `ask`: at the kernel's part too. Ready entries or -errno. */
static int poll_look(struct polling *p, bool ask)
{
	int result;

	do {
		plan(p);
		result = ask ? ask_kernel(p) : 0;
		if (!result)
			result = harvest(p, ask, false);
	} while (result >= 0 && ask && p->moved);
	return !result && shunt_thread.signalled ? -EINTR : result;
}

/* The same after taking all that has come. */
static int look_at_all(struct polling *p)
{
	while (shunt_group_poll(&p->engine->group) >=
	       (int)shunt_config_live(&p->engine->config.poll_batch))
		;
	return poll_look(p, true);
}

/* Goes on polling. Ready entries, 0 when that is over, or -errno. */
static int spin_awhile(struct polling *p, struct shunt_spin *spin)
{
	struct shunt_engine *engine = p->engine;
	uint64_t asked_at = 0;
	int ready = 0, n = 0;

	spin->gap += p->count * ENTRY_NS;
	while (!ready && shunt_spin_counts(spin, n) && shunt_spin_look(&engine->group, spin)) {
		bool ask = spin->looked - asked_at >= KERNEL_EVERY && asked_at;

		if (ask || !asked_at)
			asked_at = spin->looked;
		shunt_pause();
		n = shunt_group_poll(&engine->group);
		ready = poll_look(p, ask);
	}
	return ready;
}

/* Polls on where that is allowed. Ready entries, 0 when that is over, or -errno. *stay: do not sleep, look again. */
static int poll_spin(struct polling *p, uint64_t deadline, const sigset_t *mask, bool *stay)
{
	struct shunt_engine *engine = p->engine;
	struct shunt_spin spin;
	int ready;

	*stay = false;
	/* With a signal mask only the kernel can wait: it changes it and looks in one step. */
	if (mask || !p->link_fds || !shunt_spin_begin(&engine->group, &spin, deadline))
		return 0;
	ready = spin_awhile(p, &spin);
	*stay = shunt_spin_end(&engine->group, &spin, ready != 0);
	return ready;
}

static void cancellation_point(struct polling *p)
{
	pthread_cleanup_push(poll_forget, p);
	pthread_testcancel();
	pthread_cleanup_pop(0);
}

/* An arrival from here on finds the thread among the pollers of its sets. */
static bool is_ready(void *arg)
{
	struct polling *p = arg;

	if (!p->counted)
		count_among_pollers(p, 1);
	return harvest(p, false, true) || p->moved;
}

/* Where all is the kernel's, its word at the end of the sleep is the answer. */
static int poll_answer(struct polling *p)
{
	int ready = p->apart ? harvest(p, true, false) : 0;

	return p->moved ? 0 : ready;
}

static void asleep_forget(void *arg)
{
	let_go_of_sets(arg);
	poll_forget(arg);
}

/* As was planned. Ready entries, 0: look again, or -errno. */
static int sleep_awhile(struct polling *p, uint64_t deadline, const sigset_t *mask)
{
	struct shunt_sleep sleep = { .group = &p->engine->group,
				     .on = p->on,
				     .count = p->count,
				     .sleeper.apart = p->apart,
				     .ready = is_ready,
				     .cancelled = asleep_forget,
				     .arg = p };
	int result;

	hold_sets(p);
	result = shunt_sleep(&sleep, p->kernel, p->count, deadline, mask);
	let_go_of_sets(p);
	if (result > 0)
		result = poll_answer(p);
	return !result && shunt_thread.signalled ? -EINTR : result;
}

/* Waits once. Ready entries, 0: look again, or -errno. */
static int wait_once(struct polling *p, uint64_t deadline, const sigset_t *mask)
{
	bool stay;
	int ready = poll_spin(p, deadline, mask, &stay);

	if (ready || shunt_now(p->engine) >= deadline)
		return ready;
	if (!stay) {
		plan(p);
		return sleep_awhile(p, deadline, mask);
	}
	cancellation_point(p);
	return 0;
}

/* A wake-up has taken what the mode takes with one; when time is up, all that has come by then counts. */
static int wait_poll(struct polling *p, uint64_t deadline, const sigset_t *mask)
{
	bool drains = shunt_polling(&p->engine->group)->drains;
	int ready = 0;

	/* The kernel needs no look before it is asked to wait. */
	plan(p);
	if (deadline && p->apart)
		ready = sleep_awhile(p, deadline, mask);
	if (!ready)
		ready = look_at_all(p);
	while (!ready && deadline && shunt_now(p->engine) < deadline) {
		ready = wait_once(p, deadline, mask);
		if (!ready)
			ready = drains || shunt_now(p->engine) >= deadline ? look_at_all(p) :
									     poll_look(p, true);
	}
	return ready;
}

/* A stream that is used by waiting for it is used. */
static void first_use(struct shunt_engine *engine, const struct pollfd *fds, nfds_t count)
{
	for (nfds_t i = 0; i < count; i++) {
		struct shunt_file *file = shunt_file(engine, fds[i].fd);
		struct shunt_stream *stream = (struct shunt_stream *)file;

		if (!file || file->kind != SHUNT_FILE_STREAM)
			continue;
		if (shunt_stream_is_shared(stream))
			shunt_stream_look_at_mode(engine, fds[i].fd, stream);
		if (shunt_stream_use_is_news(stream))
			shunt_offer_used(engine, stream);
		if (atomic_load_explicit(&stream->state, memory_order_relaxed) == SHUNT_FOREIGN)
			shunt_handover_ask(engine, fds[i].fd, stream);
	}
}

int shunt_poll_all(struct shunt_engine *engine, struct pollfd *fds, nfds_t count,
			  struct pollfd *made, const struct timespec *timeout, const sigset_t *mask)
{
	uint64_t deadline = timeout && !timeout->tv_sec && !timeout->tv_nsec ? 0 :
			    shunt_deadline_in(engine->sys, timeout);
	struct polling p;
	int result;

	p.engine = engine;
	p.user = fds;
	p.count = count;
	p.made = made;
	result = poll_prepare(&p);
	if (result)
		return result;
	first_use(engine, fds, count);
	shunt_thread_begin();
	result = wait_poll(&p, deadline, mask);
	poll_release(&p);
	return result;
}

int shunt_wait_poll(struct shunt_engine *engine, struct pollfd *fds, nfds_t count,
		    const struct timespec *timeout, const sigset_t *mask)
{
	return shunt_poll_all(engine, fds, count, NULL, timeout, mask);
}
