/* SPDX-License-Identifier: MIT */
#include "core/stream/expire.h"
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include "core/engine.h"
#include "core/stream/pinned.h"
#include "core/stream/credit.h"
#include "core/stream/loss.h"
#include "core/stream/sleep.h"
#include "core/stream/user_timeout.h"
#include "core/stream/wait.h"

#define MS 1000000ull

struct look {
	uint64_t now;
	uint64_t next;	/* when the first of the others is due */
};

/* Those whose time is over, or not known yet. */
static bool is_due(struct shunt_stream *stream, void *arg)
{
	uint64_t since = atomic_load(&stream->seat->out.stuck_since), until;
	uint32_t patience = atomic_load(&stream->options.user_timeout_ms);
	struct look *look = arg;

	if (!since || !patience)
		return false;
	until = since + patience * MS;
	if (patience == SHUNT_USER_TIMEOUT_UNKNOWN || until <= look->now)
		return true;
	look->next = until < look->next ? until : look->next;
	return false;
}

/* tx.lock held. */
static bool is_stuck(struct shunt_stream *stream)
{
	struct shunt_seat_out *out = &stream->seat->out;

	return atomic_load(&stream->state) == SHUNT_LINKED && stream->fd >= 0 &&
	       !shunt_end_has(&stream->end, SHUNT_END_BROKEN) &&
	       (shunt_heading_halted(&out->heading) ||
		(shunt_heading_on_link(&out->heading) &&
		 (atomic_load(&out->starved) || shunt_seat_rest(out))));
}

/* tx.lock held. */
static uint32_t patience_of(struct shunt_engine *engine, struct shunt_stream *stream)
{
	uint32_t patience = atomic_load(&stream->options.user_timeout_ms);
	socklen_t length = sizeof(patience);

	if (patience != SHUNT_USER_TIMEOUT_UNKNOWN)
		return patience;
	if (engine->sys->getsockopt(stream->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &patience, &length))
		patience = 0;
	atomic_store(&stream->options.user_timeout_ms, patience);
	return patience;
}

/* As tcp_write_err(). Where the link lives, the peer learns that nothing will follow. */
void shunt_expire_end(struct shunt_stream *stream, int error)
{
	shunt_loss_end(stream, error);
	shunt_heading_turn(&stream->seat->out.heading, SHUNT_HEADING_EXPIRES);
	if (atomic_load(&stream->seat->link->state) == SHUNT_LINK_UP)
		shunt_lane_request(stream->seat->lane, stream->seat, SHUNT_WORK_RESET);
}

void shunt_expire_tell(struct shunt_stream *stream)
{
	shunt_sleep_tell(stream,
			 EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLERR | EPOLLHUP | SHUNT_READY_TRACK);
	shunt_pinned_tell(stream);
}

/* The reader has given nothing for so long, and has read nothing meanwhile. Both locks held. */
static bool is_over(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_seat_out *out = &stream->seat->out;
	uint32_t patience = patience_of(engine, stream);

	if (!patience || shunt_now(engine) - atomic_load(&out->stuck_since) < patience * MS)
		return false;
	if (!shunt_heading_halted(&out->heading))
		shunt_credit_fetch(stream);
	return atomic_load(&out->stuck_since) != 0;
}

static void look_at(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_tx *tx = &stream->tx;
	bool over;

	shunt_lock_take(&stream->rx.lock);
	shunt_lock_take(&tx->lock);
	over = is_stuck(stream) && is_over(engine, stream);
	if (over)
		shunt_expire_end(stream, ETIMEDOUT);
	if (shunt_stream_is_seated(stream) && (over || !is_stuck(stream)))
		atomic_store(&stream->seat->out.stuck_since, 0);
	shunt_lock_leave(&tx->lock);
	if (over)
		shunt_expire_tell(stream);
	shunt_lock_leave(&stream->rx.lock);
}

/* Until when nobody is due. */
static uint64_t expire_due(struct shunt_engine *engine)
{
	struct look look = { .now = shunt_now(engine), .next = SHUNT_NEVER };
	struct shunt_sweep sweep = { .wants = is_due, .arg = &look };
	struct shunt_stream *stream;

	while ((stream = shunt_streams_next(engine, &sweep)) != NULL) {
		if (look.next)
			shunt_group_poll_fully(&engine->group);	/* credit that nobody has looked at */
		look.next = 0;
		look_at(engine, stream);
	}
	return look.next;
}

void shunt_expire_run(struct shunt_task *task)
{
	shunt_task_at(task, expire_due(shunt_engine_of(task, work.tasks.expire)));
}
