/* SPDX-License-Identifier: MIT */
/*
 * The registry of streams: type-stable memory, and who still names it.
 *
 * Streams are type-stable: their memory is reused for streams only, and their locks are never reset while the process
 * lives. A thread with a stale pointer takes the lock and asks whether the descriptor still means this stream. The
 * memory is free for reuse when the program has closed it, no link seats it, and no thread holds it.
 */
#ifndef SHUNT_CORE_STREAM_STREAMS_H
#define SHUNT_CORE_STREAM_STREAMS_H

#include "core/base/reason.h"
#include "core/lane/seats.h"
#include "core/stream/stream.h"

#define SHUNT_SLAB_STREAMS 64

struct shunt_stream *shunt_streams_new(struct shunt_engine *engine, int fd, bool nonblocking);
/* Calls visit(stream, arg) for every stream in use, streams_lock held, until it returns nonzero. */
int shunt_streams_each(struct shunt_engine *engine, int (*visit)(struct shunt_stream *, void *),
		       void *arg);

/* A walk over streams of which something is true. */
#define SHUNT_SWEEP 64

struct shunt_sweep {
	/* Is it? streams_lock held. */
	bool (*wants)(struct shunt_stream *stream, void *arg);
	void *arg;
	uint32_t from;		/* what follows is not the caller's */
	uint32_t at, count;
	struct shunt_stream *streams[SHUNT_SWEEP];
};

/*
 * The next such stream, held until the next call; NULL: there are no others. Several are found at once, so what
 * was true of one may have changed. No lock right of streams_lock held.
 */
struct shunt_stream *shunt_streams_next(struct shunt_engine *engine, struct shunt_sweep *sweep);
/*
 * The process ends. Another thread may be in a call, or the service thread at work on the stream. A thread that was ended
 * in a call never lets go: false at `until`, a point in time.
 */
bool shunt_streams_take_last(struct shunt_stream *stream, uint64_t until)
	SHUNT_TRY_ACQUIRE(true, stream->tx.lock);

/* Why the stream is plain, or will be: the first reason counts. No lock right of streams_lock held. */
void shunt_streams_because(struct shunt_engine *engine, struct shunt_stream *stream,
			   enum shunt_cause cause);
/* The same, streams_lock held. True: it is the first. */
bool shunt_streams_note(struct shunt_engine *engine, struct shunt_stream *stream,
			enum shunt_cause cause);
/* A hold keeps the memory of a stream from being reused. No lock right of streams_lock held. */
void shunt_streams_hold(struct shunt_stream *stream);
void shunt_streams_unhold(struct shunt_stream *stream);
/* The stream of that number on the link, held; NULL: none. No lock right of streams_lock held. */
struct shunt_stream *shunt_streams_hold_at(struct shunt_link *link, uint32_t id);
/* The same, not held: seats_lock or group.lock held. */
static inline struct shunt_stream *shunt_streams_at(struct shunt_link *link, uint32_t id)
{
	const struct shunt_seat *seat = shunt_link_seat(link, id);

	return seat ? shunt_stream_of(seat) : NULL;
}

/* Each stream that has a seat on the link. seats_lock or group.lock held. */
#define shunt_streams_seated(link, stream) shunt_streams_seated_by(shunt_streams_at, link, stream)
/* The same, each held: the body lets go of it (shunt_streams_unhold), and may not leave the loop before. */
#define shunt_streams_seated_held(link, stream) shunt_streams_seated_by(shunt_streams_hold_at, link, stream)
#define shunt_streams_seated_by(of, link, stream)                                                  \
	for (uint32_t seat_ = 1; seat_ < (link)->top; seat_++)                                     \
		if (((stream) = of(link, seat_)) != NULL)

/* The stream gets a seat, as shunt_seats_take(). No lock right of rx.lock held. */
int shunt_streams_seat(struct shunt_stream *stream, struct shunt_link *link,
		       struct shunt_lane *lane, struct shunt_place *place);
/* Frees the memory, if nothing names it. */
void shunt_streams_free(struct shunt_stream *stream);
/* Its link will not name it again: it has no seat any more. seats_lock and both locks held. */
void shunt_streams_unseat(struct shunt_stream *stream);
/* The same without the two; if the program has closed it, its memory goes when nobody holds it. */
void shunt_streams_vacate(struct shunt_stream *stream);
/* One end (SHUNT_RELEASED_…) will never name it again. After both, its seat and memory are reaped. Any
 * lock may be held. */
void shunt_streams_released(struct shunt_stream *stream, uint8_t by);
/* As shunt_streams_released(), for a stream whose connection is not kept after all (core/stream/spare.h). It may wait for reaping already. */
void shunt_streams_reap_later(struct shunt_stream *stream);
/*
 * A connection that both ends keep: all of the stream is as new, but for its names. It has the same seat, and our own copy
 * of the socket as its number. Both locks held.
 */
void shunt_streams_begin_anew(struct shunt_stream *stream, int fd);
/* Frees what both ends have released. True: there was something. seats_lock held, and no other. */
bool shunt_streams_reap(struct shunt_engine *engine);

#endif
