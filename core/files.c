/* SPDX-License-Identifier: MIT */
/*
 * The table of descriptors: what the program does with their numbers.
 */
#include "core/files.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include "core/base/address.h"
#include "core/born.h"
#include "core/engine.h"
#include "core/fd/uring_file.h"
#include "core/peer/listen.h"
#include "core/qos/pacing.h"
#include "core/stream/doubt.h"
#include "core/stream/rx.h"
#include "core/stream/stream_option.h"
#include "core/stream/tapped.h"
#include "core/stream/unclaimed.h"
#include "core/stream/uring.h"
#include "core/wait/epset.h"
#include "core/wait/epsets.h"
#include "core/wait/watch.h"

void shunt_file_socket(struct shunt_engine *engine, int fd, bool nonblocking)
{
	struct shunt_stream *stream;

	if (fd < 0 || (size_t)fd >= engine->fds.files->limit)
		return;
	stream = shunt_streams_new(engine, fd, nonblocking);
	if (stream)
		shunt_files_set(engine->fds.files, fd, &stream->file);
}

static struct shunt_stream *stream_at(struct shunt_engine *engine, int fd)
{
	struct shunt_file *file = shunt_file(engine, fd);

	return file && file->kind == SHUNT_FILE_STREAM ? (struct shunt_stream *)file : NULL;
}

void shunt_file_candidate(struct shunt_engine *engine, struct shunt_stream *stream, uint8_t role)
{
	enum shunt_cause stays = atomic_load(&engine->stays);

	if (!stays && atomic_load_explicit(&engine->bypassing, memory_order_relaxed))
		stays = SHUNT_CAUSE_BYPASSED;
	if (!stays && atomic_load(&stream->options.asks) & SHUNT_NEEDS_ANY)
		stays = SHUNT_CAUSE_OPTION;
	stream->role = role;
	stream->born = shunt_now(engine);
	atomic_store(&stream->state, stays ? SHUNT_PLAIN : SHUNT_CANDIDATE);
	shunt_lock_take(&engine->streams_lock);
	engine->totals.streams++;
	if (stays)
		shunt_streams_note(engine, stream, stays);
	shunt_lock_leave(&engine->streams_lock);
	if (engine->device_choice == SHUNT_DEVICE_NONE)
		shunt_streams_plain(engine, stream, SHUNT_CAUSE_DEVICE_NONE);
}

/* As far as it is one of TCP. */
static void note_dialled(struct shunt_stream *stream, const struct sockaddr *address,
			 socklen_t length)
{
	struct sockaddr_storage given = { 0 };
	uint16_t port;

	memcpy(&given, address, length < sizeof(given) ? length : sizeof(given));
	if (shunt_address_of(&given, stream->dialled, &port))
		memset(stream->dialled, 0, sizeof(stream->dialled));
}

static bool is_under_way(ssize_t result)
{
	return result >= 0 || result == -EINPROGRESS || result == -EINTR;
}

static bool is_unconnected(struct shunt_stream *stream)
{
	return atomic_load(&stream->state) == SHUNT_FRESH && stream->role != SHUNT_LISTENER;
}

static void connector(struct shunt_engine *engine, struct shunt_stream *stream,
		      const struct sockaddr *address, socklen_t length)
{
	stream->place = shunt_short_lived_place(address, length);
	note_dialled(stream, address, length);
	shunt_file_candidate(engine, stream, SHUNT_CONNECTOR);
}

static void tell_tap(struct shunt_stream *stream, const struct msghdr *message, size_t bytes)
{
	struct shunt_iov of;

	shunt_assert_held(&stream->tx.lock);
	shunt_iov_begin(&of, message->msg_iov, (int)message->msg_iovlen);
	shunt_iov_advance(&of, bytes);
	shunt_tapped_sent(stream, 0, bytes, &of, false);
}

/* The bytes are counted before it can be claimed: both counts must agree then (core/peer/attach.c). */
void shunt_file_opened(struct shunt_engine *engine, int fd, ssize_t result,
		       const struct msghdr *message)
{
	struct shunt_stream *stream = stream_at(engine, fd);

	if (!stream || !is_unconnected(stream) || !is_under_way(result))
		return;
	if (result > 0) {
		stream->tx.offset = (uint64_t)result;
		shunt_bytes_add(&stream->tx.bytes, 0, (uint64_t)result, false);
	}
	connector(engine, stream, message->msg_name, message->msg_namelen);
	if (result <= 0)
		return;
	shunt_lock_take(&stream->tx.lock);
	if (shunt_tapping_listens(&engine->tapping))
		tell_tap(stream, message, (size_t)result);
	shunt_unclaimed_begin(stream);
	shunt_lock_leave(&stream->tx.lock);
}

void shunt_file_connected(struct shunt_engine *engine, int fd, int result, const struct sockaddr *address, socklen_t length)
{
	struct shunt_stream *stream = stream_at(engine, fd);

	if (!stream || !is_under_way(result))
		return;
	if (is_unconnected(stream)) {
		connector(engine, stream, address, length);
	} else if (atomic_load(&stream->state) == SHUNT_CANDIDATE) {
		shunt_end_learn(&stream->end, SHUNT_LEARN_UNTOLD,
				0); /* how a former attempt ended */
	}
}

void shunt_file_accepting(struct shunt_engine *engine, struct shunt_file *file)
{
	struct shunt_stream *stream = (struct shunt_stream *)file;

	if (file->kind == SHUNT_FILE_STREAM && stream->role == SHUNT_LISTENER && stream->rendezvous)
		shunt_listen_accepts(engine, stream->rendezvous);
}

void shunt_file_accepted(struct shunt_engine *engine, int listener, int fd, bool nonblocking,
			 uint16_t caller)
{
	struct shunt_stream *from = stream_at(engine, listener), *stream;

	shunt_file_socket(engine, fd, nonblocking);
	stream = stream_at(engine, fd);
	if (!stream)
		return;
	stream->caller = caller;
	stream->rendezvous = from ? from->rendezvous : NULL;
	stream->place = from ? from->place : 0;
	if (from)
		shunt_stream_needs(stream, atomic_load(&from->options.asks) & SHUNT_NEEDS_ANY,
				   true);
	shunt_file_candidate(engine, stream, SHUNT_ACCEPTOR);
	if (atomic_load_explicit(&engine->paces, memory_order_relaxed))
		shunt_pacing_accepted(stream);
}

void shunt_file_listening(struct shunt_engine *engine, int fd)
{
	struct shunt_stream *stream = stream_at(engine, fd);

	if (stream)
		stream->place = (uint8_t)fd;
	if (!stream || engine->device_choice == SHUNT_DEVICE_NONE || atomic_load(&engine->uring) == SHUNT_URING_RULES)
		return;
	if (stream->role == SHUNT_LISTENER && atomic_load(&stream->state) == SHUNT_FRESH) {
		if (stream->births) /* only its backlog changes */
			shunt_born_listens(engine, stream);
		return;
	}
	stream->role = SHUNT_LISTENER;
	shunt_listen_offer(engine, fd);
}

/* Two threads may have found it at once. */
void shunt_file_adopted(struct shunt_engine *engine, int fd)
{
	struct shunt_stream *stream = shunt_streams_new(engine, fd, false);
	bool known;

	if (!stream)
		return;
	shunt_lock_take(&engine->streams_lock);
	known = shunt_file(engine, fd) || (size_t)fd >= engine->fds.files->limit;
	if (known)
		stream->fd = -1;
	else
		shunt_files_set(engine->fds.files, fd, &stream->file);
	shunt_lock_leave(&engine->streams_lock);
	if (known) {
		shunt_streams_free(stream);
		return;
	}
	stream->sharing.forked |= SHUNT_FORK_COPIED;	/* whoever made it may have it, too */
	shunt_stream_option_adopt(stream);
	shunt_file_listening(engine, fd);
}

void shunt_file_received(struct shunt_engine *engine, int fd, enum shunt_cause how)
{
	int saved = errno, flags = engine->sys->fcntl(fd, F_GETFL);
	struct shunt_stream *stream;

	if (flags >= 0)
		shunt_file_socket(engine, fd, flags & O_NONBLOCK);
	stream = stream_at(engine, fd);
	if (stream) {
		stream->place = (uint8_t)fd;
		shunt_doubt_begin(stream, how);
		shunt_stream_option_adopt(stream);
		shunt_file_candidate(engine, stream, SHUNT_ACCEPTOR); /* until it is known */
	}
	errno = saved;
}

void shunt_file_epoll(struct shunt_engine *engine, int fd)
{
	struct shunt_epset *set;

	if (fd < 0 || (size_t)fd >= engine->fds.files->limit)
		return;
	set = shunt_epset_create(engine, fd);
	if (set)
		shunt_files_set(engine->fds.files, fd, &set->file);
}

void shunt_file_duplicated(struct shunt_engine *engine, int old, int fd)
{
	struct shunt_file *file = shunt_file(engine, old);

	if (!file || file->kind == SHUNT_FILE_PRIVATE || file->kind == SHUNT_FILE_RING)
		return;
	shunt_lock_take(&engine->streams_lock);
	if (file->kind == SHUNT_FILE_STREAM)
		((struct shunt_stream *)file)->numbers++;
	else
		((struct shunt_epset *)file)->numbers++;
	shunt_files_set(engine->fds.files, fd, file);
	shunt_lock_leave(&engine->streams_lock);
}

/* --- they go --- */

void shunt_file_dissolving(struct shunt_engine *engine, int fd)
{
	struct shunt_stream *stream = stream_at(engine, fd);
	bool nonblocking;
	uint8_t needs;

	if (stream)
		shunt_pacing_lift(stream);
	if (!stream || stream->numbers != 1 || shunt_stream_is_plain(stream))
		return;
	nonblocking = shunt_stream_is_nonblocking(stream);
	needs = atomic_load(&stream->options.asks) & SHUNT_NEEDS_ANY;
	stream->parting = SHUNT_DISSOLVED;
	shunt_streams_end(engine, stream, fd);
	shunt_file_socket(engine, fd, nonblocking);
	stream = stream_at(engine, fd);
	if (stream)
		shunt_stream_needs(stream, needs, true);
}

static int another_number(struct shunt_engine *engine, const struct shunt_file *file)
{
	shunt_files_each(engine->fds.files, fd)
		if (shunt_file(engine, fd) == file)
			return fd;
	return -1;
}

/* A registration in an epoll set was made with this number of the stream. */
static bool is_watched(struct shunt_engine *engine, struct shunt_stream *stream, int fd)
{
	struct shunt_group *group = &engine->group;
	struct shunt_watch *watch;

	shunt_lock_take(&group->lock);
	for (watch = stream->watches; watch && watch->fd != fd; watch = watch->next_of_stream)
		;
	shunt_lock_leave(&group->lock);
	return watch != NULL;
}

/* Not analysed: of a stream with one number the locks are not taken. */
SHUNT_NO_LOCK_ANALYSIS static void close_stream(struct shunt_engine *engine,
						struct shunt_stream *stream, int fd)
{
	bool many = stream->numbers > 1, last;

	/* A registration outlives the number it was made with, but nobody can move it any more. */
	if (many && is_watched(engine, stream, fd))
		shunt_stream_retire(engine, fd, stream, SHUNT_CAUSE_NUMBER_CLOSED);
	if (many) {	/* a thread at work for the stream may be in a call with this number */
		shunt_lock_take(&stream->rx.lock);
		shunt_lock_take(&stream->tx.lock);
	}
	shunt_lock_take(&engine->streams_lock);
	last = --stream->numbers == 0;
	if (!last) {
		shunt_files_close(engine->fds.files, fd);
		if (stream->fd == fd)
			stream->fd = another_number(engine, &stream->file);
	}
	shunt_lock_leave(&engine->streams_lock);
	if (many) {
		shunt_lock_leave(&stream->tx.lock);
		shunt_lock_leave(&stream->rx.lock);
	}
	if (last && !shunt_streams_orphan(engine, stream, fd))
		shunt_streams_end(engine, stream, fd);
}

static void close_set(struct shunt_engine *engine, struct shunt_epset *set, int fd)
{
	bool last;

	shunt_lock_take(&engine->streams_lock);
	shunt_files_close(engine->fds.files, fd);
	last = --set->numbers == 0;
	if (!last && set->fd == fd)
		set->fd = another_number(engine, &set->file);
	shunt_lock_leave(&engine->streams_lock);
	if (last)
		shunt_epset_close(engine, set);
}

/* The entry's maker may use it again. */
static void close_ring(struct shunt_engine *engine, struct shunt_uring_file *ring, int fd)
{
	shunt_files_close(engine->fds.files, fd);
	atomic_store(&ring->used, false);
}

void shunt_file_closing(struct shunt_engine *engine, int fd)
{
	struct shunt_file *file = shunt_files_get(engine->fds.files, fd);
	int saved = errno;

	if (file && file->kind == SHUNT_FILE_YOUNG &&
	    shunt_young_closing(engine, (struct shunt_young *)file))
		return;
	file = shunt_file(engine, fd);
	if (!file || file->kind == SHUNT_FILE_PRIVATE)
		return;
	if (file->kind == SHUNT_FILE_STREAM)
		close_stream(engine, (struct shunt_stream *)file, fd);
	else if (file->kind == SHUNT_FILE_RING)
		close_ring(engine, (struct shunt_uring_file *)file, fd);
	else
		close_set(engine, (struct shunt_epset *)file, fd);
	errno = saved;
}
