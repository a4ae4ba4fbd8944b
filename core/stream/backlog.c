/* SPDX-License-Identifier: MIT */
#include "core/stream/backlog.h"
#include "core/fd/own_fds.h"
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include "core/engine.h"
#include "core/stream/decision.h"
#include "core/stream/deferred_fin.h"
#include "core/stream/eof.h"
#include "core/stream/sleep.h"
#include "core/stream/wait.h"

/* --- the bytes --- */

uint8_t *shunt_backlog_add(struct shunt_stream *stream, size_t bytes)
{
	struct shunt_backlog *backlog = &stream->tx.backlog;
	size_t before = backlog->bytes ? backlog->size : 0;
	uint8_t *grown = realloc(backlog->bytes, before + bytes);

	shunt_assert_held(&stream->tx.lock);
	if (!grown)
		return NULL;
	if (!before)
		backlog->done = 0;
	backlog->size = before + bytes;
	backlog->bytes = grown;
	return grown + before;
}

void shunt_backlog_drop(struct shunt_stream *stream, size_t bytes)
{
	struct shunt_backlog *backlog = &stream->tx.backlog;

	if (!bytes)
		return;
	backlog->size -= bytes;
	if (backlog->size == backlog->done)
		shunt_backlog_free(stream);
}

/* --- SO_LINGER --- */

static void take_linger(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_backlog *backlog = &stream->tx.backlog;
	struct linger none = { .l_onoff = 1 };
	socklen_t length = sizeof(backlog->linger);

	if (engine->sys->getsockopt(backlog->fd, SOL_SOCKET, SO_LINGER, &backlog->linger, &length))
		backlog->linger.l_onoff = SHUNT_LINGERS_ITSELF;
	else
		engine->sys->setsockopt(backlog->fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
}

bool shunt_backlog_linger(const struct shunt_stream *stream, struct linger *linger)
{
	bool ours = stream->tx.backlog.linger.l_onoff != SHUNT_LINGERS_ITSELF;

	if (ours)
		*linger = stream->tx.backlog.linger;
	return ours;
}

static void give_linger(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct linger linger;

	shunt_assert_held(&stream->tx.lock);
	if (!shunt_backlog_linger(stream, &linger))
		return;
	engine->sys->setsockopt(stream->tx.backlog.fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	stream->tx.backlog.linger.l_onoff = SHUNT_LINGERS_ITSELF;
}

bool shunt_stream_linger(struct shunt_stream *stream, struct linger *linger)
{
	bool ours;

	shunt_lock_take(&stream->tx.lock);
	ours = shunt_backlog_linger(stream, linger);
	shunt_lock_leave(&stream->tx.lock);
	return ours;
}

void shunt_backlog_linger_changed(struct shunt_stream *stream)
{
	shunt_lock_take(&stream->tx.lock);
	if (stream->tx.backlog.linger.l_onoff != SHUNT_LINGERS_ITSELF)
		take_linger(shunt_stream_engine(stream), stream);
	shunt_lock_leave(&stream->tx.lock);
}

/* --- writing them --- */

/* Also what comes, when the program has closed it and no nonce is to come: refuse(). */
static uint32_t events_for(struct shunt_stream *stream)
{
	bool what_comes = atomic_load(&stream->state) == SHUNT_CLOSED &&
			  atomic_load(&stream->seat->in.proof.state) != SHUNT_EXPECTED;

	return what_comes ? EPOLLOUT | EPOLLIN : EPOLLOUT;
}

static void listen_for(struct shunt_stream *stream, uint32_t events)
{
	shunt_loop_change(stream->group->loop, stream->tx.backlog.fd, &stream->source, events);
}

/*
 * The kernel answers what comes to a closed socket with a reset (RFC 2525 2.17). If it only waited there, two ends that owe
 * each other what neither program reads would wait for ever.
 */
static void refuse(struct shunt_engine *engine, struct shunt_stream *stream)
{
	int unread = 0;

	engine->sys->ioctl(stream->tx.backlog.fd, FIONREAD, &unread);
	if (unread)
		shunt_streams_reset_tcp(engine->sys, stream->tx.backlog.fd);
	else	/* it is the peer's end, and nothing comes behind it */
		listen_for(stream, EPOLLOUT);
}

void shunt_backlog_proven(struct shunt_stream *stream)
{
	shunt_lock_take(&stream->tx.lock);
	if (stream->tx.backlog.fd >= 0)
		listen_for(stream, events_for(stream));
	shunt_lock_leave(&stream->tx.lock);
}

/* Bytes sent long ago must not wait for an acknowledgement (Nagle) now. */
static void push(struct shunt_engine *engine, int fd)
{
	int nodelay = 0;
	socklen_t length = sizeof(nodelay);

	if (engine->sys->getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &nodelay, &length) || nodelay)
		return;
	for (nodelay = 1; nodelay >= 0; nodelay--)
		engine->sys->setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &nodelay, sizeof(nodelay));
}

int shunt_backlog_write(struct shunt_engine *engine, int fd, struct shunt_stream *stream)
{
	struct shunt_tx *tx = &stream->tx;

	shunt_assert_held(&stream->tx.lock);
	while (tx->backlog.bytes) {
		struct iovec iov = { tx->backlog.bytes + tx->backlog.done,
				     tx->backlog.size - tx->backlog.done };
		struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
		ssize_t sent = engine->sys->sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (sent < 0 && (errno == EAGAIN || errno == EINTR))
			return -EAGAIN;
		tx->backlog.done += sent < 0 ? 0 : sent;
		tx->backlog.written += sent < 0 ? 0 : sent;
		if (sent < 0)
			shunt_stream_was_reset(stream, errno);
		if (sent < 0 || tx->backlog.done == tx->backlog.size) {	/* nobody is there to get it */
			shunt_backlog_free(stream);
			push(engine, fd);
			shunt_sleep_tell(stream, SHUNT_READY_TRACK);
		}
	}
	give_linger(engine, stream);
	return 0;
}

void shunt_backlog_over(struct shunt_stream *stream)
{
	struct shunt_engine *engine = shunt_stream_engine(stream);

	shunt_assert_held(&stream->tx.lock);
	shunt_loop_remove(&engine->loop, stream->tx.backlog.fd);
	give_linger(engine, stream);
	shunt_own_fds_close(&engine->fds, stream->tx.backlog.fd);
	stream->tx.backlog.fd = -1;
	stream->tx.backlog.fin = false;
	shunt_backlog_free(stream);
	shunt_deferred_fin_written(stream);
	atomic_fetch_sub(&engine->work.resends, 1);
}

void shunt_backlog_moves(struct shunt_stream *stream, uint32_t events)
{
	struct shunt_engine *engine = shunt_stream_engine(stream);

	if (!shunt_lock_try(&stream->tx.lock))
		return;	/* somebody is sending, and so writing it; the event comes again */
	/* The event is of the program's socket; or late, and of the stream that the object was before. */
	if (__atomic_load_n(&stream->tx.backlog.fd, __ATOMIC_RELAXED) < 0) {
		shunt_lock_leave(&stream->tx.lock);
		return;
	}
	/* While the program has the socket, the event may be of that: it is watched, too (bypass.h, spare.h). */
	if (events & EPOLLIN & events_for(stream))
		refuse(engine, stream);
	if (shunt_backlog_write(engine, stream->tx.backlog.fd, stream) == -EAGAIN) {
		shunt_lock_leave(&stream->tx.lock);
		return;
	}
	if (stream->tx.backlog.fin)
		engine->sys->shutdown(stream->tx.backlog.fd, SHUT_WR);
	shunt_backlog_over(stream);
	shunt_lock_leave(&stream->tx.lock);
	shunt_sleep_tell(stream, EPOLLOUT | SHUNT_READY_ANSWERED);
	shunt_streams_unhold(stream);
}

void shunt_backlog_await_on(struct shunt_stream *stream, int fd)
{
	struct shunt_engine *engine = shunt_stream_engine(stream);

	shunt_assert_held(&stream->tx.lock);
	if (stream->tx.backlog.fd >= 0) {
		listen_for(stream, events_for(stream));
		if (stream->tx.backlog.linger.l_onoff == SHUNT_LINGERS_ITSELF)	/* it was paid, and owes again */
			take_linger(engine, stream);
		return;
	}
	if (fd < 0)
		fd = shunt_own_fds_copy(&engine->fds, shunt_deferred_fin_fd(stream));
	if (fd < 0 || shunt_loop_add(&engine->loop, fd, &stream->source, events_for(stream))) {
		shunt_decision_say(SHUNT_LOG_ERROR, stream,
				   "it is reset: out of descriptors or memory");
		shunt_streams_reset_tcp(engine->sys, fd >= 0 ? fd : shunt_deferred_fin_fd(stream));
		shunt_own_fds_close(&engine->fds, fd);
		shunt_backlog_free(stream);	/* nobody will get it */
		shunt_deferred_fin_written(stream);
		return;
	}
	stream->tx.backlog.fd = fd;
	take_linger(engine, stream);
	atomic_fetch_add(&engine->work.resends, 1);
	shunt_streams_hold(stream);
}

void shunt_backlog_await(struct shunt_stream *stream)
{
	shunt_backlog_await_on(stream, -1);
}
