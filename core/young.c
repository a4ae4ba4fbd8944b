/* SPDX-License-Identifier: MIT */
#include "core/service.h"
#include "core/young.h"
#include "core/stream/offer.h"
#include "core/born.h"
#include "core/stream/spare_option.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include "core/base/lsan.h"
#include "core/engine.h"
#include "core/fd/young.h"
#include "core/files.h"
#include "core/stream/rx.h"
#include "core/stream/short_lived.h"
#include "core/stream/unclaimed.h"
#include "core/wait/epset.h"

/* --- records --- */

static struct shunt_young *map_block(struct shunt_engine *engine, size_t block)
{
	struct shunt_young *made = shunt_lsan_map(SHUNT_YOUNG_BLOCK * sizeof(*made)), *had = NULL;

	if (!made)
		return NULL;
	for (size_t i = 0; i < SHUNT_YOUNG_BLOCK; i++) {
		shunt_lock_rank(&made[i].lock, SHUNT_RANK_YOUNG);
		made[i].file.kind = SHUNT_FILE_YOUNG;
		made[i].fd = (int)(block * SHUNT_YOUNG_BLOCK + i);
	}
	if (atomic_compare_exchange_strong(&engine->young[block], &had, made))
		return made;
	shunt_lsan_unmap(made, SHUNT_YOUNG_BLOCK * sizeof(*made));
	return had;
}

static struct shunt_young *record(struct shunt_engine *engine, int fd)
{
	size_t block = (size_t)fd / SHUNT_YOUNG_BLOCK;
	struct shunt_young *records;

	if (block >= SHUNT_YOUNG_BLOCKS || (size_t)fd >= engine->fds.files->limit)
		return NULL;
	records = atomic_load_explicit(&engine->young[block], memory_order_acquire);
	if (!records)
		records = map_block(engine, block);
	return records ? &records[fd % SHUNT_YOUNG_BLOCK] : NULL;
}

/* Lock held. */
static bool is_there(struct shunt_engine *engine, struct shunt_young *young)
{
	return shunt_files_get(engine->fds.files, young->fd) == &young->file;
}

static bool is_wanted(struct shunt_engine *engine)
{
	return atomic_load_explicit(&engine->brief_ones, memory_order_relaxed) &&
	       !atomic_load_explicit(&engine->stays, memory_order_relaxed) &&
	       !atomic_load_explicit(&engine->bypassing, memory_order_relaxed) &&
	       shunt_config_live(&engine->config.brief) &&
	       !atomic_load_explicit(&engine->paces, memory_order_relaxed) &&
	       !shunt_tapping_listens(&engine->tapping); /* calls on records are the kernel's */
}

static void begin(struct shunt_engine *engine, struct shunt_young *young, uint8_t role,
		  bool nonblocking)
{
	young->role = role;
	young->nonblocking = nonblocking;
	young->corked = young->shared = false;
	young->uses = 0;
	young->changed = 0;
	young->received = young->sent = young->born = 0;
	young->set = NULL;
	shunt_files_set(engine->fds.files, young->fd, &young->file);
}

/* --- it becomes a stream --- */

static void carry_over(struct shunt_stream *stream, const struct shunt_young *young)
{
	stream->place = young->place;
	stream->caller = young->caller;
	stream->sharing.forked = young->shared ? SHUNT_FORK_LOST : 0;
	atomic_store(&stream->uses, young->uses);
	atomic_store(&stream->usage, young->uses ? SHUNT_USE_BEGUN : SHUNT_USE_NONE);
	atomic_store(&stream->options.changed, young->changed);
	atomic_store(&stream->tx.corked, young->corked);
	atomic_store(&stream->rx.head, young->received);
	shunt_bytes_add(&stream->rx.bytes, 0, young->received, false);
	stream->tx.offset = young->sent;
	shunt_bytes_add(&stream->tx.bytes, 0, young->sent, false);
}

static void begin_waiting_for_claims(struct shunt_stream *stream, const struct shunt_young *young)
{
	if (!young->received && !young->sent)
		return;
	shunt_lock_take(&stream->tx.lock);
	shunt_unclaimed_begin(stream);
	shunt_lock_leave(&stream->tx.lock);
}

static void become_candidate(struct shunt_engine *engine, struct shunt_stream *stream,
			     const struct shunt_young *young)
{
	bool acceptor = young->role == SHUNT_YOUNG_ACCEPTOR;

	stream->rendezvous = acceptor ? young->rendezvous : NULL;
	/* As by its first use: only where others have to be told of it, that is still to come. */
	if (acceptor && young->uses && stream->rendezvous && stream->rendezvous->fd >= 0)
		atomic_store(&stream->usage, SHUNT_USE_TOLD);
	shunt_file_candidate(engine, stream, acceptor ? SHUNT_ACCEPTOR : SHUNT_CONNECTOR);
	if (young->born)
		stream->born = young->born;
	if (young->shared)
		shunt_streams_plain(engine, stream, SHUNT_CAUSE_FORK);
	begin_waiting_for_claims(stream, young);
}

/* NULL: there is no memory, or no room for a registration; the number is the kernel's alone. Lock held. */
static struct shunt_stream *make_stream(struct shunt_engine *engine, struct shunt_young *young)
{
	struct shunt_stream *stream = shunt_streams_new(engine, young->fd, young->nonblocking);

	if (!stream)
		return NULL;
	carry_over(stream, young);
	if (!young->set || !shunt_epset_adopt(engine, young->set, young->set_generation, stream,
					      young->events, young->data))
		return stream;
	stream->fd = -1;
	shunt_streams_free(stream);
	return NULL;
}

/* Lock held. */
static void grow(struct shunt_engine *engine, struct shunt_young *young)
{
	struct shunt_stream *stream = make_stream(engine, young);

	if (stream && young->role != SHUNT_YOUNG_SOCKET)
		become_candidate(engine, stream, young);
	shunt_files_set(engine->fds.files, young->fd, stream ? &stream->file : NULL);
	young->set = NULL;
}

struct shunt_file *shunt_young_grown(struct shunt_engine *engine, int fd)
{
	struct shunt_young *young = record(engine, fd);

	if (young) {
		shunt_lock_take(&young->lock);
		if (is_there(engine, young))
			grow(engine, young);
		shunt_lock_leave(&young->lock);
	}
	return shunt_file(engine, fd);
}

/* Calls do(engine, record) for all that are there, locked. */
static void each(struct shunt_engine *engine,
		 void (*visit)(struct shunt_engine *, struct shunt_young *))
{
	if (!atomic_load(&engine->brief_ones))
		return;
	shunt_files_each(engine->fds.files, fd) {
		struct shunt_file *file = shunt_files_get(engine->fds.files, fd);
		struct shunt_young *young = (struct shunt_young *)file;

		if (!file || file->kind != SHUNT_FILE_YOUNG)
			continue;
		shunt_lock_take(&young->lock);
		if (is_there(engine, young))
			visit(engine, young);
		shunt_lock_leave(&young->lock);
	}
}

static void grow_connected(struct shunt_engine *engine, struct shunt_young *young)
{
	if (young->role != SHUNT_YOUNG_SOCKET)
		grow(engine, young);
}

/* Moves what has ended without a stream into the totals. */
static void count(struct shunt_engine *engine)
{
	for (size_t block = 0; block < SHUNT_YOUNG_BLOCKS; block++) {
		struct shunt_young *records = atomic_load(&engine->young[block]);

		for (size_t i = 0; records && i < SHUNT_YOUNG_BLOCK; i++) {
			struct shunt_young *young = &records[i];

			shunt_lock_take(&young->lock);
			shunt_lock_take(&engine->streams_lock);
			engine->totals.streams += young->ended;
			engine->totals.rx.tcp += young->ended_received;
			engine->totals.tx.tcp += young->ended_sent;
			shunt_lock_leave(&engine->streams_lock);
			young->ended = young->ended_received = young->ended_sent = 0;
			shunt_lock_leave(&young->lock);
		}
	}
}

void shunt_young_grow_all(struct shunt_engine *engine, bool counted)
{
	each(engine, grow_connected);
	if (counted)
		count(engine);
}

/* --- it comes and goes --- */

bool shunt_young_socket(struct shunt_engine *engine, int fd, bool nonblocking)
{
	struct shunt_young *young = is_wanted(engine) ? record(engine, fd) : NULL;

	if (!young)
		return false;
	shunt_lock_take(&young->lock);
	begin(engine, young, SHUNT_YOUNG_SOCKET, nonblocking);
	shunt_lock_leave(&young->lock);
	return true;
}

void shunt_young_connected(struct shunt_engine *engine, int fd, int result,
			   const struct sockaddr *address, socklen_t length)
{
	struct shunt_young *young = record(engine, fd);
	uint8_t place;
	bool served = false, seed;

	if (result && result != -EINPROGRESS && result != -EINTR)
		return;
	place = shunt_short_lived_place(address, length);
	seed = shunt_short_lived_expected(engine, SHUNT_CONNECTOR, place) &&
	       shunt_born_wants_seed(engine, fd, address, length);
	shunt_lock_take(&young->lock);
	if (!seed && is_there(engine, young) && young->role == SHUNT_YOUNG_SOCKET &&
	    shunt_short_lived_expected(engine, SHUNT_CONNECTOR, place)) {
		young->role = SHUNT_YOUNG_CONNECTOR;
		young->place = place;
	}
	served = is_there(engine, young) && young->role == SHUNT_YOUNG_CONNECTOR;
	shunt_lock_leave(&young->lock);
	if (served)
		return;
	shunt_young_grown(engine, fd);
	shunt_file_connected(engine, fd, result, address, length);
	if (seed)
		shunt_offer_seed(engine, fd);
}

bool shunt_young_accepted(struct shunt_engine *engine, struct shunt_stream *from, int fd,
			  bool nonblocking, uint16_t caller)
{
	struct shunt_young *young;

	/* A claim waits, perhaps for this one: its first use is to find that. */
	if (!is_wanted(engine) || shunt_offer_awaits(&engine->work, caller) ||
	    atomic_load(&from->options.asks) & SHUNT_NEEDS_ANY ||
	    !shunt_short_lived_expected(engine, SHUNT_ACCEPTOR, from->place))
		return false;
	young = record(engine, fd);
	if (!young)
		return false;
	shunt_lock_take(&young->lock);
	young->place = from->place;
	young->rendezvous = from->rendezvous;
	young->caller = caller;
	begin(engine, young, SHUNT_YOUNG_ACCEPTOR, nonblocking);
	shunt_lock_leave(&young->lock);
	return true;
}

/* Lock held. */
static void end(struct shunt_young *young)
{
	young->ended += young->role != SHUNT_YOUNG_SOCKET;
	young->ended_received += young->received;
	young->ended_sent += young->sent;
	young->set = NULL;
}

bool shunt_young_closing(struct shunt_engine *engine, struct shunt_young *young)
{
	bool there;

	shunt_lock_take(&young->lock);
	there = is_there(engine, young);
	if (there) {
		shunt_files_close(engine->fds.files, young->fd);
		end(young);
		if (young->role != SHUNT_YOUNG_SOCKET && young->uses)
			shunt_short_lived_count(engine,
						young->role == SHUNT_YOUNG_ACCEPTOR ?
							SHUNT_ACCEPTOR :
							SHUNT_CONNECTOR,
						young->place, true);
	}
	shunt_lock_leave(&young->lock);
	return there;
}

static void give_up(struct shunt_engine *engine, struct shunt_young *young)
{
	end(young);
	shunt_files_set(engine->fds.files, young->fd, NULL);
}

static void give_up_connected(struct shunt_engine *engine, struct shunt_young *young)
{
	if (young->role == SHUNT_YOUNG_SOCKET)
		grow(engine, young);
	else
		give_up(engine, young);
}

void shunt_young_give_up(struct shunt_engine *engine, bool sockets)
{
	each(engine, sockets ? give_up : give_up_connected);
}

/* --- it is used --- */

static bool lasts(struct shunt_engine *engine, struct shunt_young *young)
{
	if (young->uses >= SHUNT_SHORT_LIVED_USES && !young->born)
		young->born = shunt_now(engine);
	return shunt_short_lived_lasts(engine, young->uses, young->received + young->sent,
				       young->born);
}

/* Not analysed: the record stays locked where it returns true. */
SHUNT_NO_LOCK_ANALYSIS bool shunt_young_begins(struct shunt_engine *engine,
					       struct shunt_young *young)
{
	shunt_lock_take(&young->lock);
	/* A call that waits would keep the record locked, and another process of a fork can make this one wait. */
	if (__builtin_expect(is_there(engine, young) && young->role != SHUNT_YOUNG_SOCKET &&
				     young->nonblocking && !young->shared,
			     1) &&
	    !lasts(engine, young)) {
		young->uses++;
		return true;
	}
	shunt_lock_leave(&young->lock);
	return false;
}

/* Not analysed: it leaves the lock that shunt_young_begins() has taken. */
SHUNT_NO_LOCK_ANALYSIS void shunt_young_ends(struct shunt_young *young, int64_t received,
					     int64_t sent)
{
	if (received > 0)
		young->received += (uint64_t)received;
	if (sent > 0)
		young->sent += (uint64_t)sent;
	shunt_lock_leave(&young->lock);
}

bool shunt_young_set_nonblocking(struct shunt_engine *engine, struct shunt_young *young,
				 bool nonblocking)
{
	bool there;

	shunt_lock_take(&young->lock);
	there = is_there(engine, young);
	if (there)
		young->nonblocking = nonblocking;
	shunt_lock_leave(&young->lock);
	return there;
}

bool shunt_young_set_corked(struct shunt_engine *engine, struct shunt_young *young, bool corked)
{
	bool there;

	shunt_lock_take(&young->lock);
	there = is_there(engine, young);
	if (there)
		young->corked = corked;
	shunt_lock_leave(&young->lock);
	return there;
}

bool shunt_young_option(struct shunt_engine *engine, struct shunt_young *young, int level, int name)
{
	bool there;

	if (engine->config.born == SHUNT_BORN_OFF)
		return true;
	shunt_lock_take(&young->lock);
	there = is_there(engine, young);
	if (there)
		young->changed |= shunt_spare_option_bit(level, name);
	shunt_lock_leave(&young->lock);
	return there;
}

/* A second set, and what the kernel would disable, are a stream's business. */
static bool is_simple(const struct shunt_young *young, const struct shunt_epset *set, int op,
		      const struct epoll_event *event)
{
	if (young->set && (young->set != set || young->set_generation != set->generation))
		return false;
	return op == EPOLL_CTL_DEL || !(event->events & (EPOLLONESHOT | EPOLLEXCLUSIVE));
}

/* Lock held. */
static int control(struct shunt_engine *engine, struct shunt_young *young, struct shunt_epset *set,
		   int epfd, int op, struct epoll_event *event)
{
	if (engine->sys->epoll_ctl(epfd, op, young->fd, event))
		return -errno;
	young->set = op == EPOLL_CTL_DEL ? NULL : set;
	if (op == EPOLL_CTL_DEL)
		return 0;
	young->set_generation = set->generation;
	young->events = event->events;
	young->data = event->data.u64;
	return 0;
}

bool shunt_young_ctl(struct shunt_engine *engine, struct shunt_young *young,
		     struct shunt_file *owner, int epfd, int op, struct epoll_event *event,
		     int *result)
{
	struct shunt_epset *set = (struct shunt_epset *)owner;
	bool served;

	shunt_lock_take(&young->lock);
	served = is_there(engine, young) && is_simple(young, set, op, event);
	if (served)
		*result = control(engine, young, set, epfd, op, event);
	shunt_lock_leave(&young->lock);
	return served;
}

/* --- forks --- */

static void share(struct shunt_engine *engine, struct shunt_young *young)
{
	(void)engine;
	young->shared = young->role != SHUNT_YOUNG_SOCKET;
}

void shunt_young_parted(struct shunt_engine *engine)
{
	each(engine, share);
}

/* Locks are as other threads have left them. A record that is as it should be is only read: a write copies its page. */
void shunt_young_forked(struct shunt_engine *engine)
{
	shunt_files_each(engine->fds.files, fd) {
		struct shunt_file *file = shunt_files_get(engine->fds.files, fd);

		if (file && file->kind == SHUNT_FILE_YOUNG)
			shunt_files_set(engine->fds.files, fd, NULL);
	}
	for (size_t block = 0; block < SHUNT_YOUNG_BLOCKS; block++) {
		struct shunt_young *records = atomic_load(&engine->young[block]);

		for (size_t i = 0; records && i < SHUNT_YOUNG_BLOCK; i++) {
			struct shunt_young *young = &records[i];

			if (atomic_load(&young->lock.word))
				shunt_lock_free(&young->lock);
			if (young->set)
				young->set = NULL;
			if (young->ended)
				young->ended = young->ended_received = young->ended_sent = 0;
		}
	}
}
