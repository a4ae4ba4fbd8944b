/* SPDX-License-Identifier: MIT */
#include "core/born.h"
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include "core/api.h"
#include "core/base/address.h"
#include "core/engine.h"
#include "core/lane/lane_serve.h"
#include "core/peer/rendezvous.h"
#include "core/stream/births.h"
#include "core/stream/sleep.h"
#include "core/stream/spare.h"
#include "core/stream/spare_option.h"
#include "core/stream/wait.h"
#include "core/wait/epset.h"
#include "core/young.h"

#define SECOND 1000000000ull
#define REAL_EVERY 1000 /* births at an address, after which the kernel is asked again */
#define FIRST_PAUSE 1000u /* us between two connections that are to become spares, where the first has not */
#define LAST_PAUSE 1000000u

/* --- connect() --- */

bool shunt_born_any(const struct shunt_engine *engine)
{
	return atomic_load_explicit(&engine->spares.count, memory_order_relaxed);
}

/* A socket that is not connected, and of which nothing is known that a spare could not have. */
static struct shunt_stream *fresh_at(struct shunt_engine *engine, int fd)
{
	struct shunt_file *file = shunt_files_get(engine->fds.files, fd);
	struct shunt_stream *stream = (struct shunt_stream *)file;

	if (file && file->kind == SHUNT_FILE_YOUNG) {
		file = shunt_young_grown(engine, fd);
		stream = (struct shunt_stream *)file;
	}
	if (!file || file->kind != SHUNT_FILE_STREAM ||
	    atomic_load(&stream->state) != SHUNT_FRESH || stream->role == SHUNT_LISTENER ||
	    stream->numbers != 1 || !shunt_spare_option_may_carry(stream) ||
	    atomic_load(&stream->options.asks) & SHUNT_NEEDS_ANY ||
	    shunt_stream_is_shared(stream) || stream->sharing.forked ||
	    (stream->watches && shunt_epset_prepare(engine, stream)))
		return NULL;
	return stream;
}

/* Its family, if the program has not bound it; 0 else. */
static sa_family_t family_of(struct shunt_engine *engine, int fd)
{
	struct sockaddr_storage own;
	socklen_t length = sizeof(own);
	uint8_t address[16];
	uint16_t port;

	if (engine->sys->getsockname(fd, (struct sockaddr *)&own, &length) ||
	    shunt_address_of(&own, address, &port) || port || !shunt_address_is_loopback(address) ||
	    address[12] == 127 || address[15] == 1)
		return 0;
	return own.ss_family;
}

/* False: it is of no use, and has been given up. */
static bool replace(struct shunt_engine *engine, struct shunt_stream *stream,
		    struct shunt_stream *fresh, int fd)
{
	bool nonblocking = shunt_stream_is_nonblocking(fresh), taken;
	int flags;

	shunt_lock_take(&stream->rx.lock);
	shunt_lock_take(&stream->tx.lock);
	flags = engine->sys->fcntl(fd, F_GETFD);
	taken = shunt_spare_is_good(engine, stream) &&
		shunt_spare_option_carry(fresh, fd, stream) &&
		engine->sys->dup3(stream->spare->fd, fd, flags & FD_CLOEXEC ? O_CLOEXEC : 0) >= 0;
	if (taken) {
		shunt_lock_take(&engine->streams_lock);
		fresh->fd = -1;
		shunt_lock_leave(&engine->streams_lock);
		shunt_spare_take(engine, stream, fd, nonblocking);
		if (fresh->watches)
			shunt_epset_carry(engine, fresh, stream);
		stream->spare->untold = nonblocking;
		shunt_lane_request(stream->seat->lane, stream->seat, SHUNT_WORK_UPGRADE);
	}
	shunt_lock_leave(&stream->tx.lock);
	shunt_lock_leave(&stream->rx.lock);
	if (!taken)
		shunt_spare_end(engine, stream);
	return taken;
}

/* The kernel has said yes not long ago. */
static bool is_permitted(struct shunt_engine *engine, const struct shunt_spare_place *place)
{
	uint64_t made = atomic_load(&place->made_at);

	return made && shunt_now(engine) - made < SECOND &&
	       atomic_load(&place->births) < REAL_EVERY;
}

static bool tells(struct shunt_engine *engine, int fd, int *result)
{
	struct shunt_file *file = shunt_file(engine, fd);
	struct shunt_stream *stream = (struct shunt_stream *)file;

	if (!file || file->kind != SHUNT_FILE_STREAM ||
	    atomic_load(&stream->state) != SHUNT_LINKED || !stream->spare || !stream->spare->untold)
		return false;
	stream->spare->untold = false;
	*result = 0;
	return true;
}

static bool take_one(struct shunt_engine *engine, int fd, struct shunt_stream *fresh,
		     const struct shunt_spare_target *target)
{
	struct shunt_stream *stream;
	bool taken = false;

	while (!taken && (stream = shunt_spare_find(engine, target)) != NULL) {
		taken = replace(engine, stream, fresh, fd);
		shunt_streams_unhold(stream);
	}
	return taken;
}

bool shunt_born_connect(struct shunt_engine *engine, int fd, const struct sockaddr *address,
			socklen_t length, int *result)
{
	struct sockaddr_storage given = { 0 };
	struct shunt_spare_target target;
	struct shunt_spare_place *place;
	struct shunt_stream *fresh;
	int saved = errno;
	bool taken = false;

	if (tells(engine, fd, result))
		return true;
	memcpy(&given, address, length < sizeof(given) ? length : sizeof(given));
	if (length < sizeof(struct sockaddr_in) ||
	    shunt_address_of(&given, target.address, &target.port))
		return false;
	place = &engine->spares.places[shunt_short_lived_place(address, length)];
	if (!is_permitted(engine, place) || atomic_load(&engine->bypassing))
		return false;
	shunt_group_poll_fully(&engine->group);
	shunt_spares_look(&engine->group);
	fresh = atomic_load(&engine->spares.resting) ? fresh_at(engine, fd) : NULL;
	target.family = fresh ? family_of(engine, fd) : 0;
	if (target.family && target.family == given.ss_family)
		taken = take_one(engine, fd, fresh, &target);
	if (taken) {
		*result = shunt_stream_is_nonblocking(fresh) ? -EINPROGRESS : 0;
		atomic_fetch_add(&place->births, 1);
		atomic_fetch_add(&engine->spares.connected, 1);
		shunt_streams_free(fresh);
	}
	errno = saved;
	return taken;
}

/* --- the kernel's yes --- */

/* The connection comes from the address to which it goes: that is on this host. */
static bool stays_here(struct shunt_engine *engine, int fd, const struct sockaddr *address,
		       socklen_t length)
{
	struct sockaddr_storage given = { 0 }, own;
	socklen_t own_length = sizeof(own);
	uint8_t to[16], from[16];
	uint16_t port;

	memcpy(&given, address, length < sizeof(given) ? length : sizeof(given));
	if (shunt_address_of(&given, to, &port))
		return false;
	return shunt_address_is_loopback(to) ||
	       (!engine->sys->getsockname(fd, (struct sockaddr *)&own, &own_length) &&
		!shunt_address_of(&own, from, &port) && !memcmp(from, to, sizeof(from)));
}

bool shunt_born_wants_seed(struct shunt_engine *engine, int fd, const struct sockaddr *address,
			   socklen_t length)
{
	struct shunt_spare_place *place =
		&engine->spares.places[shunt_short_lived_place(address, length)];
	uint64_t now, at = atomic_load(&place->seed_at);
	uint32_t pause = atomic_load(&place->pause);

	if (engine->config.born == SHUNT_BORN_OFF)
		return false;
	now = shunt_now(engine);
	if (now < at || atomic_load(&engine->spares.count) >= SHUNT_SPARES ||
	    !stays_here(engine, fd, address, length))
		return false;
	pause = pause ? pause * 2 : FIRST_PAUSE;
	atomic_store(&place->pause, pause > LAST_PAUSE ? LAST_PAUSE : pause);
	atomic_store(&place->seed_at, now + (uint64_t)pause * 1000);
	return true;
}

/* --- listeners --- */

/* A thread may be in the kernel's accept(): a birth would not wake it (core/accept.h). */
static bool may_be_deaf(const struct shunt_stream *listener)
{
	return !shunt_stream_is_nonblocking(listener) && listener->sharing.forked;
}

/* The only listener there, in this process and in others. */
static struct shunt_stream *only_listener(struct shunt_engine *engine,
					  const struct shunt_stream *stream)
{
	struct shunt_rendezvous *rendezvous = stream->rendezvous;
	struct shunt_stream *listener = NULL;

	if (!rendezvous)
		return NULL;
	shunt_lock_take(&engine->rendezvous_lock);
	if (rendezvous->fd >= 0 && !atomic_load(&rendezvous->is_worker) &&
	    !atomic_load(&rendezvous->shared))
		listener = rendezvous->listener;
	shunt_lock_leave(&engine->rendezvous_lock);
	return listener && listener->role == SHUNT_LISTENER && listener->numbers == 1 &&
			       !may_be_deaf(listener) &&
			       !shunt_stream_is_shared(listener) ?
		       listener :
		       NULL;
}

/* As many connections as the kernel lets wait. So a peer that makes births of all its spares has no more there. */
static uint32_t backlog_of(const struct shunt_sys *sys, int fd)
{
	struct tcp_info info = { 0 };
	socklen_t length = sizeof(info);

	return sys->getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) ? 0 : info.tcpi_sacked;
}

void shunt_born_listens(struct shunt_engine *engine, struct shunt_stream *listener)
{
	uint32_t most = backlog_of(engine->sys, listener->fd);

	shunt_lock_take(&engine->group.lock);
	if (listener->births)
		listener->births->most = most;
	shunt_lock_leave(&engine->group.lock);
}

/* Sleepers look again, and its registrations go to the companion. */
static struct shunt_births *begin(struct shunt_engine *engine, struct shunt_stream *listener,
				  const struct shunt_spare *spare)
{
	struct shunt_births *births;
	uint32_t most = listener->births ? 0 : backlog_of(engine->sys, listener->fd);

	if (!listener->births && shunt_epset_prepare(engine, listener))
		return NULL;
	shunt_lock_take(&engine->group.lock);
	births = listener->births;
	if (!births) {
		births = shunt_births_begin(&engine->spares, listener);
		if (births)
			births->most = most;
		shunt_sleep_notify(listener, SHUNT_READY_TRACK);
	}
	if (births && !shunt_births_use(births, spare && spare->births == births))
		births = NULL;
	shunt_lock_leave(&engine->group.lock);
	return births;
}

struct shunt_births *shunt_born_births(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_stream *listener = only_listener(engine, stream);

	return listener ? begin(engine, listener, stream->spare) : NULL;
}

void shunt_born_end(struct shunt_engine *engine, struct shunt_stream *listener)
{
	struct shunt_births *births;

	if (!listener->births)
		return;
	shunt_lock_take(&engine->group.lock);
	births = listener->births;
	if (births) {
		shunt_births_end(births);
		shunt_sleep_notify(listener, SHUNT_READY_TRACK);
	}
	shunt_lock_leave(&engine->group.lock);
	if (!births)
		return;
	shunt_spares_end(engine, births);
	shunt_lock_take(&engine->group.lock);
	shunt_births_let_go(&engine->spares, births);
	shunt_lock_leave(&engine->group.lock);
}

void shunt_born_bar(struct shunt_engine *engine, struct shunt_stream *listener)
{
	if (listener->rendezvous)
		atomic_store(&listener->rendezvous->shared, true);
	shunt_born_end(engine, listener);
}

void shunt_born_shut(struct shunt_engine *engine, struct shunt_stream *listener)
{
	int saved = errno;

	shunt_born_end(engine, listener);
	errno = saved;
}

/* It gets no more spares, and those that it had are gone. rendezvous_lock held. */
static bool is_drained(const struct shunt_rendezvous *r, bool *more)
{
	const struct shunt_births *births = r->listener ? r->listener->births : NULL;

	if (!births || !atomic_load(&r->shared))
		return false;
	*more = true;
	return __atomic_load_n(&births->uses, __ATOMIC_RELAXED) == 1;
}

bool shunt_born_look(struct shunt_engine *engine)
{
	struct shunt_stream *listener;
	bool more;

	do {
		listener = NULL;
		more = false;
		shunt_lock_take(&engine->rendezvous_lock);
		for (struct shunt_rendezvous *r = engine->rendezvous; r && !listener; r = r->next)
			if (is_drained(r, &more))
				listener = r->listener;
		shunt_lock_leave(&engine->rendezvous_lock);
		if (listener)
			shunt_born_end(engine, listener);
	} while (listener);
	return more;
}

/* There is no number, or the table does not reach so far. */
static int refused(struct shunt_engine *engine, int fd)
{
	int error = fd < 0 ? errno : EMFILE;

	if (fd >= 0)
		engine->sys->close(fd);
	return -error;
}

static int take(struct shunt_engine *engine, struct shunt_stream *stream, int flags,
		struct sockaddr_storage *peer)
{
	int fd;

	shunt_lock_take(&stream->rx.lock);
	shunt_lock_take(&stream->tx.lock);
	fd = engine->sys->fcntl(stream->spare->fd, flags & SOCK_CLOEXEC ? F_DUPFD_CLOEXEC : F_DUPFD,
				0);
	*peer = stream->spare->peer;
	if (fd >= 0 && (size_t)fd < engine->fds.files->limit)
		shunt_spare_take(engine, stream, fd, flags & SOCK_NONBLOCK);
	else
		fd = refused(engine, fd);
	shunt_lock_leave(&stream->tx.lock);
	shunt_lock_leave(&stream->rx.lock);
	if (fd < 0)
		shunt_births_push_back(stream);
	else
		atomic_fetch_add(&engine->spares.accepted, 1);
	return fd;
}

int shunt_born_accept(struct shunt_engine *engine, struct shunt_stream *listener, bool again,
		      int flags, struct sockaddr_storage *peer)
{
	struct sockaddr_storage from;
	struct shunt_stream *stream;
	int fd;

	if (!__atomic_load_n(&listener->births, __ATOMIC_ACQUIRE))
		return -EAGAIN;
	if (!shunt_births_wait(listener))
		shunt_group_poll_fully(&engine->group);	/* a program that asks again and again need not wait anywhere */
	if (!shunt_births_wait(listener))
		return -EAGAIN;
	stream = shunt_births_pop(&engine->group, listener, again);
	if (!stream)
		return -EAGAIN;
	fd = take(engine, stream, flags, &from);
	if (fd >= 0 && peer)
		*peer = from;
	return fd;
}
