/* SPDX-License-Identifier: MIT */
#include "core/stream/marks.h"
#include <errno.h>
#include <netinet/in.h>
#include "core/engine.h"

#ifndef IPV6_FREEBIND
#define IPV6_FREEBIND 78	/* the same bit as IP_FREEBIND */
#endif
#ifndef IP_BIND_ADDRESS_NO_PORT
#define IP_BIND_ADDRESS_NO_PORT 24
#endif

/* In the order of the bits. Sockets of IPv6 have them, too. */
static const int names[] = { IP_FREEBIND, IP_BIND_ADDRESS_NO_PORT, IP_MULTICAST_ALL,
			     IP_MULTICAST_LOOP };

#define NAMES (sizeof(names) / sizeof(names[0]))

static int read_bits(struct shunt_stream *stream, uint8_t *bits)
{
	*bits = 0;
	for (size_t i = 0; i < NAMES; i++) {
		socklen_t length = sizeof(int);
		int on = 0;

		if (stream->group->sys->getsockopt(stream->fd, SOL_IP, names[i], &on, &length))
			return -errno;
		*bits |= (uint8_t)((on != 0) << i);
	}
	return 0;
}

/* Only what differs: most sockets never have but one or two changed. */
static bool write_bits(struct shunt_stream *stream, uint8_t bits, uint8_t now)
{
	for (size_t i = 0; i < NAMES; i++) {
		int on = bits >> i & 1;

		if ((bits ^ now) >> i & 1 &&
		    stream->group->sys->setsockopt(stream->fd, SOL_IP, names[i], &on, sizeof(on)))
			return false;
	}
	return true;
}

static bool show(struct shunt_stream *stream, uint8_t bits, bool first)
{
	struct shunt_marks *marks = &stream->marks;
	bool are_set = atomic_load(&marks->own) != SHUNT_MARKS_NONE;
	uint8_t own;

	if (stream->fd < 0 || stream->sharing.forked & SHUNT_FORK_LOST || are_set == first ||
	    atomic_load(&stream->state) != SHUNT_CANDIDATE)
		return false;
	if (first) {
		/* A call of the program that begins after this store waits for streams_lock; one that has begun is seen. */
		atomic_store(&marks->own, SHUNT_MARKS_TAKEN);
		if (atomic_load(&marks->users) || read_bits(stream, &own)) {
			atomic_store(&marks->own, SHUNT_MARKS_NONE);
			return false;
		}
		atomic_store(&marks->own, own);
		marks->now = own;
	}
	if (!write_bits(stream, bits, marks->now)) {
		shunt_marks_undo_held(stream);
		return false;
	}
	marks->now = bits;
	return true;
}

bool shunt_marks_show(struct shunt_stream *stream, uint8_t bits, bool first)
{
	struct shunt_engine *engine = shunt_stream_engine(stream);
	bool done;

	shunt_lock_take(&engine->streams_lock);
	done = show(stream, bits, first);
	shunt_lock_leave(&engine->streams_lock);
	return done;
}

/* Where a change was left half done, the rest differs from `now`: all four are written. */
void shunt_marks_undo_held(struct shunt_stream *stream)
{
	struct shunt_marks *marks = &stream->marks;
	uint8_t own = atomic_load(&marks->own);
	int saved = errno;

	if (own == SHUNT_MARKS_NONE)
		return;
	if (stream->fd >= 0)
		write_bits(stream, own, (uint8_t)~own);
	atomic_store(&marks->own, SHUNT_MARKS_NONE);
	errno = saved;
}

void shunt_marks_undo(struct shunt_stream *stream)
{
	struct shunt_engine *engine = shunt_stream_engine(stream);

	if (atomic_load(&stream->marks.own) == SHUNT_MARKS_NONE)
		return;
	shunt_lock_take(&engine->streams_lock);
	shunt_marks_undo_held(stream);
	shunt_lock_leave(&engine->streams_lock);
}

bool shunt_stream_option_begins(struct shunt_stream *stream, int level, int name)
{
	bool is = level == SOL_IPV6 && name == IPV6_FREEBIND;

	for (size_t i = 0; i < NAMES && !is; i++)
		is = level == SOL_IP && name == names[i];
	if (!is)
		return false;
	atomic_fetch_add(&stream->marks.users, 1);
	shunt_marks_undo(stream);
	return true;
}

void shunt_stream_option_ends(struct shunt_stream *stream)
{
	atomic_fetch_sub(&stream->marks.users, 1);
}

void shunt_marks_forget(struct shunt_stream *stream)
{
	atomic_store(&stream->marks.own, SHUNT_MARKS_NONE);
}
