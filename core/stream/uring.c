/* SPDX-License-Identifier: MIT */
#include "core/stream/uring.h"
#include "core/fd/own_fds.h"
#include "core/fd/uring_file.h"
#include "core/stream/retire.h"
#include "core/stream/spare.h"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/engine.h"

#define RING "anon_inode:[io_uring]"
#define LOOK_EVERY 1000000000	/* ns */
#define LOOK_PART 100		/* of the time goes to looking, where a program has very many mappings */
#define MANY 64

static const char *const said[] = {
	[SHUNT_URING_WATCHED] =
		"watched: a stream that a ring uses stays on TCP (SHUNT_URING=watch)",
	[SHUNT_URING_REFUSED] = "refused, for a ring sees nothing of a link (SHUNT_URING=deny)",
	[SHUNT_URING_IGNORED] = "allowed, although a ring sees nothing of a link (SHUNT_URING=allow)",
	[SHUNT_URING_RULES] = "streams stay on TCP, for a ring sees nothing of a link",
};

void shunt_uring_tell(enum shunt_uring uring, const char *why)
{
	if (why)
		shunt_log(SHUNT_LOG_WARN, "io_uring: %s (%s, so it cannot be watched)", said[uring],
			  why);
	else
		shunt_log(SHUNT_LOG_INFO, "io_uring: %s", said[uring]);
}

const char *shunt_uring_text(enum shunt_uring uring)
{
	static const char *const words[] = { "none", "watched", "refused", "allowed", "tcp" };

	return words[uring];
}

bool shunt_uring_set(struct shunt_engine *engine, enum shunt_uring uring)
{
	unsigned int before = atomic_load(&engine->uring);

	while (before < uring)
		if (atomic_compare_exchange_weak(&engine->uring, &before, uring))
			return true;
	return false;
}

/* --- one that nobody was asked for --- */

/* A line of /proc/PID/maps: is it the memory of a ring that nobody watches? */
static bool is_strange(struct shunt_files *files, const char *line, size_t length)
{
	return memmem(line, length, RING, sizeof(RING) - 1) &&
	       !shunt_uring_file_knows(files, (uintptr_t)strtoull(line, NULL, 16));
}

/* In `text`, whose last byte is 0. *kept: bytes behind its last whole line. */
static bool has_strange(struct shunt_files *files, char *text, size_t length, size_t *kept)
{
	char *line = text, *end;

	for (; (end = memchr(line, '\n', length)); line = end + 1) {
		*end = 0;
		if (is_strange(files, line, (size_t)(end - line)))
			return true;
		length -= (size_t)(end - line) + 1;
	}
	memmove(text, line, length);
	*kept = length;
	return false;
}

/*
 * A ring is of use once its memory is mapped. A look at the descriptors would be quicker, but each call on a number
 * keeps its file open meanwhile. The peer would not hear of a close() of the program at that instant.
 */
static bool has_ring(struct shunt_engine *engine)
{
	int fd = shunt_own_fds_make(&engine->fds, open("/proc/self/maps", O_RDONLY | O_CLOEXEC));
	size_t kept = 0;
	ssize_t bytes;
	char text[8192];
	bool found = false;

	if (fd < 0)
		return false;
	while (!found &&
	       (bytes = engine->sys->read(fd, text + kept, sizeof(text) - 1 - kept)) > 0) {
		text[kept + (size_t)bytes] = 0;
		found = has_strange(engine->fds.files, text, kept + (size_t)bytes, &kept);
		if (kept == sizeof(text) - 1)
			kept = 0; /* the line of a file with an endless name */
	}
	shunt_own_fds_close(&engine->fds, fd);
	return found;
}

/* A ring may be unmapped and not closed yet. So a fault has to come to its landing, and this thread blocks all signals. */
static bool has_escaped(struct shunt_engine *engine)
{
	sigset_t faults, before;
	bool escaped;

	sigemptyset(&faults);
	sigaddset(&faults, SIGSEGV);
	sigaddset(&faults, SIGBUS);
	pthread_sigmask(SIG_UNBLOCK, &faults, &before);
	escaped = shunt_uring_file_any_escaped(engine->fds.files, engine->forks.pid);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return escaped;
}

/* Why rings may reach sockets unseen; NULL: they do not. */
static const char *unwatched(struct shunt_engine *engine)
{
	if (has_escaped(engine))
		return "its submissions do not come by libc";
	return has_ring(engine) ? "it was made by an instruction" : NULL;
}

struct some {
	uint32_t from, seen, count;
	struct shunt_stream *streams[MANY];
};

static int take(struct shunt_stream *stream, void *arg)
{
	struct some *some = arg;

	if (some->seen++ < some->from)
		return 0;
	if (stream->fd >= 0 && atomic_load(&stream->state) == SHUNT_LINKED) {
		stream->holds++;
		some->streams[some->count++] = stream;
	}
	return some->count == MANY;
}

/*
 * All streams on links begin to leave them; the peers' answers are not waited for. A stream's locks
 * come before streams_lock, so the streams are held and taken so many at a time.
 */
static void leave_links(struct shunt_engine *engine)
{
	struct some some = { 0 };

	shunt_spares_end(engine, NULL);
	do {
		some.count = some.seen = 0;
		shunt_lock_take(&engine->streams_lock);
		shunt_streams_each(engine, take, &some);
		shunt_lock_leave(&engine->streams_lock);
		for (uint32_t i = 0; i < some.count; i++) {
			shunt_retire_begin(engine, some.streams[i], SHUNT_CAUSE_URING);
			shunt_streams_unhold(some.streams[i]);
		}
		some.from = some.seen;
	} while (some.count == MANY);
}

bool shunt_uring_rules(struct shunt_engine *engine)
{
	return atomic_load(&engine->uring) == SHUNT_URING_RULES;
}

bool shunt_uring_forbids(struct shunt_engine *engine)
{
	const char *why;
	uint64_t now;

	if (shunt_uring_rules(engine))
		return true;
	if (engine->config.uring == SHUNT_URING_ALLOW || engine->loop.manual)
		return false;
	now = shunt_now(engine);
	if (now < engine->work.uring_look)
		return false;
	why = unwatched(engine);
	engine->work.uring_look = now + LOOK_EVERY + LOOK_PART * (shunt_now(engine) - now);
	if (!why)
		return false;
	if (shunt_uring_set(engine, SHUNT_URING_RULES))
		shunt_uring_tell(SHUNT_URING_RULES,
				 engine->config.uring == SHUNT_URING_WATCH ? why : NULL);
	leave_links(engine);
	return true;
}

int shunt_uring_bar(struct shunt_engine *engine, int fd, struct shunt_stream *stream, bool reads)
{
	if (stream->role == SHUNT_LISTENER) {
		engine->end_hooks->births_bar(engine, stream);	/* the ring sees the kernel's connections alone */
		return 0;
	}
	if (!(atomic_load(&stream->options.asks) & SHUNT_NEEDS_OTHER))
		shunt_stream_needs(stream, SHUNT_NEEDS_OTHER, true);
	return shunt_stream_bar(engine, fd, stream, reads);
}
