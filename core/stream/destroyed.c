/* SPDX-License-Identifier: MIT */
#include "core/stream/destroyed.h"
#include <errno.h>
#include <sys/epoll.h>
#include "core/engine.h"
#include "core/stream/bypass.h"
#include "core/stream/decision.h"
#include "core/stream/expire.h"
#include "core/stream/spare.h"
#include "core/stream/track.h"
#include "core/stream/backlog.h"

#define PATIENCE 100000000ull	/* ns for the link's word, and between two looks */
#define LOOKS 2			/* of a host's own: the thread may have been stopped before the first */
#define LOOKS_AFAR 50		/* a queue pair between hosts may be trying for seconds before it is known to be dead */

/* The link has said nothing of an end, and may go on for ever. Both locks held. */
static bool is_unsaid(const struct shunt_stream *stream)
{
	return atomic_load(&stream->state) == SHUNT_LINKED && stream->fd >= 0 &&
	       atomic_load(&stream->seat->link->state) == SHUNT_LINK_UP &&
	       !atomic_load(&stream->seat->lane->failed) &&
	       !shunt_intake_final(&stream->seat->in.intake) && !shunt_stream_is_released(stream) &&
	       atomic_load(&stream->end.fin) == SHUNT_NEVER &&
	       !shunt_end_has(&stream->end, SHUNT_END_RESET | SHUNT_END_TOLD);
}

/* The kernel's error, which is ours to tell from here on; 0: there is none. */
static int take_error(struct shunt_stream *stream)
{
	socklen_t length = sizeof(int);
	int error = 0;

	if (shunt_stream_tcp_closed(stream))
		stream->group->sys->getsockopt(stream->fd, SOL_SOCKET, SO_ERROR, &error, &length);
	return error;
}

static void judge(struct shunt_engine *engine, struct shunt_stream *stream)
{
	int error = 0;

	shunt_lock_take(&stream->rx.lock);
	shunt_lock_take(&stream->tx.lock);
	shunt_group_poll_fully(&engine->group);
	if (is_unsaid(stream))
		error = take_error(stream);
	if (error)
		shunt_expire_end(stream, error);
	shunt_lock_leave(&stream->tx.lock);
	if (error)
		shunt_expire_tell(stream);
	shunt_lock_leave(&stream->rx.lock);
}

static void note(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_stream_work *work = &engine->work;
	struct shunt_destroyed *list = work->destroyed;
	uint64_t at = shunt_now(engine) + PATIENCE;

	if (work->destroyed_count == SHUNT_DESTROYED) {
		judge(engine, list[0].stream);
		for (uint32_t i = 1; i < SHUNT_DESTROYED; i++)
			list[i - 1] = list[i];
		work->destroyed_count--;
	}
	list[work->destroyed_count++] = (struct shunt_destroyed) { stream, at };
	shunt_task_at(&work->tasks.destroyed, at);
}

/* --- bytes that nobody has announced (bypass.h) --- */

/* Both locks held. */
static void end_bypassed(struct shunt_stream *stream, int bytes)
{
	struct shunt_engine *engine = shunt_stream_engine(stream);

	atomic_store(&stream->seat->in.bypass, SHUNT_BYPASS_ENDED);
	atomic_fetch_add(&engine->bypassed, 1);
	shunt_decision_say(
		SHUNT_LOG_WARN, stream,
		"reset: %d bytes came over TCP while the link was the track. Process %u sends them past "
		"Shunt (SHUNT_GATE in shunt(1); a rule leaves its connections on TCP)",
		bytes, stream->seat->link->peer_pid);
	shunt_expire_end(stream, ECONNRESET);
}

void shunt_destroyed_bypassed(struct shunt_stream *stream, int bytes)
{
	shunt_assert_held(&stream->rx.lock);
	shunt_lock_take(&stream->tx.lock);
	end_bypassed(stream, bytes);
	shunt_lock_leave(&stream->tx.lock);
	shunt_expire_tell(stream);
}

/* The watched socket has something to read. No lock held. */
static void has_bytes(struct shunt_engine *engine, struct shunt_stream *stream)
{
	shunt_lock_take(&stream->rx.lock);
	shunt_group_poll_fully(&engine->group);
	if (!shunt_bypass_is_links_alone(stream)) {
		if (stream->fd >= 0 && !stream->spare)
			shunt_loop_change(&engine->loop, stream->fd, &stream->source, EPOLLET);
	} else if (shunt_bypass_unread(stream) > 0) {
		if (!atomic_load(&stream->seat->in.bypass))
			atomic_store(&stream->seat->in.bypass, 1);
		shunt_loop_remind(&engine->loop, &engine->work.tasks.bypass,
				  shunt_now(engine) + PATIENCE);
	}
	shunt_lock_leave(&stream->rx.lock);
}

static bool is_noticed(struct shunt_stream *stream, void *unused)
{
	uint8_t looks = atomic_load(&shunt_stream_seat(stream)->in.bypass);

	(void)unused;
	return looks && looks != SHUNT_BYPASS_ENDED;
}

/* True: there is to be another look. */
static bool look_for_bytes(struct shunt_engine *engine, struct shunt_stream *stream)
{
	_Atomic uint8_t *looks;
	bool over = false, again;
	int bytes = 0;

	shunt_lock_take(&stream->rx.lock);
	shunt_lock_take(&stream->tx.lock);
	shunt_group_poll_fully(&engine->group);
	shunt_track_settle(stream);
	looks = &stream->seat->in.bypass;
	again = shunt_stream_is_seated(stream) && is_noticed(stream, NULL) &&
		shunt_bypass_is_links_alone(stream) && (bytes = shunt_bypass_unread(stream)) > 0;
	if (again)
		over = atomic_fetch_add(looks, 1) >=
		       (stream->seat->lane->retains ? LOOKS_AFAR : LOOKS);
	else if (shunt_stream_is_seated(stream) && is_noticed(stream, NULL))
		atomic_store(looks, 0);
	if (over) {
		end_bypassed(stream, bytes);
	}
	shunt_lock_leave(&stream->tx.lock);
	if (over)
		shunt_expire_tell(stream);
	shunt_lock_leave(&stream->rx.lock);
	return again && !over;
}

void shunt_destroyed_bypass_run(struct shunt_task *task)
{
	struct shunt_engine *engine = shunt_engine_of(task, work.tasks.bypass);
	struct shunt_sweep sweep = { .wants = is_noticed };
	struct shunt_stream *stream;
	bool again = false;

	while ((stream = shunt_streams_next(engine, &sweep)) != NULL)
		again |= look_for_bytes(engine, stream);
	if (again)
		shunt_task_at(task, shunt_now(engine) + PATIENCE);
}

/* --- its socket --- */

/* Of the stream's socket, or of the copy that backlog.c has of it. */
static void socket_ready(struct shunt_source *source, uint32_t events)
{
	struct shunt_stream *stream = shunt_loop_owner(source, struct shunt_stream, source);

	if (events & EPOLLERR && atomic_load(&stream->state) == SHUNT_LINKED)
		note(shunt_stream_engine(stream), stream);
	if (events & EPOLLIN && stream->spare)
		shunt_spare_refuse(stream);
	if (events & EPOLLIN && atomic_load(&stream->state) == SHUNT_LINKED)
		has_bytes(shunt_stream_engine(stream), stream);
	shunt_backlog_moves(stream, events);
}

void shunt_destroyed_watch(struct shunt_engine *engine, struct shunt_stream *stream)
{
	int saved = errno;

	shunt_assert_held(&stream->rx.lock);
	shunt_assert_held(&stream->tx.lock);
	stream->source.ready = socket_ready;
	/* Errors are reported in any case. A link that has come back finds the socket registered. */
	shunt_loop_add(&engine->loop, stream->fd, &stream->source, EPOLLET);
	errno = saved;
}

void shunt_destroyed_run(struct shunt_task *task)
{
	struct shunt_engine *engine = shunt_engine_of(task, work.tasks.destroyed);
	struct shunt_stream_work *work = &engine->work;
	struct shunt_destroyed *list = work->destroyed;
	uint64_t now = shunt_now(engine);
	uint32_t kept = 0;

	for (uint32_t i = 0; i < work->destroyed_count; i++)
		if (list[i].at <= now)
			judge(engine, list[i].stream);
		else
			list[kept++] = list[i];
	work->destroyed_count = kept;
	if (kept)
		shunt_task_at(task, list[0].at);
}
