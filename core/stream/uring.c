/* SPDX-License-Identifier: MIT */
#include "core/stream/uring.h"
#include "core/fd/own_fds.h"
#include "core/stream/retire.h"
#include "core/stream/spare.h"
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "core/engine.h"

#define RING "anon_inode:[io_uring]"
#define LOOK_EVERY 1000000000	/* ns */
#define LOOK_PART 100		/* of the time goes to looking, where a program has very many mappings */
#define MANY 64

static const char *const said[] = {
	[SHUNT_URING_REFUSED] = "refused, for a ring sees nothing of a link (SHUNT_URING=deny)",
	[SHUNT_URING_IGNORED] = "allowed, although a ring sees nothing of a link (SHUNT_URING=allow)",
	[SHUNT_URING_RULES] = "streams stay on TCP, for a ring sees nothing of a link",
};

void shunt_uring_tell(enum shunt_uring uring)
{
	shunt_log(SHUNT_LOG_INFO, "io_uring: %s", said[uring]);
}

const char *shunt_uring_text(enum shunt_uring uring)
{
	static const char *const words[] = { "none", "refused", "allowed", "tcp" };

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

/* Does `text` of `length` bytes name a ring? */
static bool names_ring(const char *text, size_t length)
{
	return memmem(text, length, RING, sizeof(RING) - 1) != NULL;
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
	char text[4096];
	bool found = false;

	if (fd < 0)
		return false;
	while (!found && (bytes = engine->sys->read(fd, text + kept, sizeof(text) - kept)) > 0) {
		size_t length = kept + (size_t)bytes;

		found = names_ring(text, length);
		kept = length < sizeof(RING) ? length : sizeof(RING) - 1;	/* a name may go on in the next piece */
		memmove(text, text + length - kept, kept);
	}
	shunt_own_fds_close(&engine->fds, fd);
	return found;
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
			shunt_retire_begin(engine, some.streams[i], SHUNT_REASON_URING);
			shunt_streams_unhold(some.streams[i]);
		}
		some.from = some.seen;
	} while (some.count == MANY);
}

bool shunt_uring_forbids(struct shunt_engine *engine)
{
	uint64_t now;
	bool found;

	if (atomic_load(&engine->uring) == SHUNT_URING_RULES)
		return true;
	if (engine->config.uring == SHUNT_URING_ALLOW || engine->loop.manual)
		return false;
	now = shunt_now(engine);
	if (now < engine->work.uring_look)
		return false;
	found = has_ring(engine);
	engine->work.uring_look = now + LOOK_EVERY + LOOK_PART * (shunt_now(engine) - now);
	if (!found)
		return false;
	if (shunt_uring_set(engine, SHUNT_URING_RULES))
		shunt_uring_tell(SHUNT_URING_RULES);
	leave_links(engine);
	return true;
}
