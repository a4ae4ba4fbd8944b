/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include "core/engine.h"
#include "core/stream/eof.h"
#include "core/stream/reset_unread.h"
#include "core/stream/tx.h"

void shunt_reset_unread_heard(struct shunt_engine *engine, struct shunt_stream *stream, uint64_t upto)
{
	struct shunt_seat_out *out = &stream->seat->out;

	if (shunt_end_has(&stream->end, SHUNT_END_RESET) ||
	    (atomic_load(&out->exposed) <= upto && atomic_load(&out->staged) <= upto))
		return;
	atomic_store(&out->left_at, upto);
	if (engine->service)
		shunt_loop_post(&engine->loop, &engine->work.tasks.reset_unread);
}

/* Behind its own end the program hears of nothing, and the socket takes nothing. */
static bool is_unread(const struct shunt_stream *stream)
{
	const struct shunt_tx *tx = &stream->tx;
	const struct shunt_seat_out *out = &stream->seat->out;

	return shunt_heading_on_link(&out->heading) &&
	       !shunt_end_has(&stream->end, SHUNT_END_SHUT_WRITE | SHUNT_END_BROKEN) &&
	       tx->offset > atomic_load(&out->left_at);
}

void shunt_reset_unread_answer(struct shunt_engine *engine, int fd, struct shunt_stream *stream)
{
	char byte = 0;
	struct iovec piece = { &byte, 1 };
	struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1 };
	int saved = errno;

	if (is_unread(stream) && !shunt_stream_tcp_closed(stream) &&
	    engine->sys->sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno != EAGAIN)
		shunt_stream_was_reset(stream, errno);	/* what the kernel says once, and has now said to us */
	errno = saved;
}

static bool is_left(struct shunt_stream *stream, void *unused)
{
	(void)unused;
	return atomic_load(&stream->state) == SHUNT_LINKED &&
	       atomic_load(&stream->seat->out.left_at) != SHUNT_NEVER;
}

static void look_at(struct shunt_engine *engine, struct shunt_stream *stream)
{
	shunt_lock_take(&stream->tx.lock);
	if (atomic_load(&stream->state) == SHUNT_LINKED && is_unread(stream))
		shunt_tx_leave_link(engine, stream->fd, stream);
	if (shunt_stream_is_seated(stream))
		atomic_store(&stream->seat->out.left_at, SHUNT_NEVER);
	shunt_lock_leave(&stream->tx.lock);
}

void shunt_reset_unread_run(struct shunt_task *task)
{
	struct shunt_engine *engine = shunt_engine_of(task, work.tasks.reset_unread);
	struct shunt_sweep sweep = { .wants = is_left };
	struct shunt_stream *stream;

	while ((stream = shunt_streams_next(engine, &sweep)) != NULL)
		look_at(engine, stream);
}
