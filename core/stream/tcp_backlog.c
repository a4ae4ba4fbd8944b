/* SPDX-License-Identifier: MIT */
#include "core/stream/tcp_backlog.h"
#include "core/fd/own_fds.h"
#include "core/stream/retire.h"
#include "core/stream/wait.h"
#include <errno.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include "core/engine.h"
#include "core/stream/again.h"
#include "core/stream/decision.h"
#include "core/stream/deferred_fin.h"
#include "core/stream/loss.h"

static void take_linger(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct linger none = { .l_onoff = 1 };
	socklen_t length = sizeof(stream->tx.backlog.linger);

	stream->tx.backlog.lingers = !engine->sys->getsockopt(stream->tx.backlog.fd, SOL_SOCKET, SO_LINGER, &stream->tx.backlog.linger, &length);
	if (stream->tx.backlog.lingers)
		engine->sys->setsockopt(stream->tx.backlog.fd, SOL_SOCKET, SO_LINGER, &none,
					sizeof(none));
}

void shunt_tcp_backlog_paid(struct shunt_engine *engine, struct shunt_stream *stream)
{
	shunt_assert_held(&stream->tx.lock);
	if (!stream->tx.backlog.lingers)
		return;
	engine->sys->setsockopt(stream->tx.backlog.fd, SOL_SOCKET, SO_LINGER,
				&stream->tx.backlog.linger, sizeof(stream->tx.backlog.linger));
	stream->tx.backlog.lingers = false;
}

bool shunt_tcp_backlog_linger(const struct shunt_stream *stream, struct linger *linger)
{
	if (stream->tx.backlog.lingers)
		*linger = stream->tx.backlog.linger;
	return stream->tx.backlog.lingers;
}

bool shunt_stream_linger(struct shunt_stream *stream, struct linger *linger)
{
	bool ours;

	shunt_lock_take(&stream->tx.lock);
	ours = shunt_tcp_backlog_linger(stream, linger);
	shunt_lock_leave(&stream->tx.lock);
	return ours;
}

void shunt_tcp_backlog_linger_changed(struct shunt_stream *stream)
{
	shunt_lock_take(&stream->tx.lock);
	if (stream->tx.backlog.lingers)
		take_linger(stream->engine, stream);
	shunt_lock_leave(&stream->tx.lock);
}

/* Also what comes, when the program has closed it and no nonce is to come: refuse(). */
static uint32_t events_for(struct shunt_stream *stream)
{
	bool what_comes = atomic_load(&stream->state) == SHUNT_CLOSED &&
			  atomic_load(&stream->rx.proof.state) != SHUNT_EXPECTED;

	return what_comes ? EPOLLOUT | EPOLLIN : EPOLLOUT;
}

static void listen_for(struct shunt_stream *stream, uint32_t events)
{
	shunt_loop_change(&stream->engine->loop, stream->tx.backlog.fd, &stream->source, events);
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
		shunt_streams_reset_tcp(engine, stream->tx.backlog.fd);
	else	/* it is the peer's end, and nothing comes behind it */
		listen_for(stream, EPOLLOUT);
}

void shunt_tcp_backlog_proven(struct shunt_stream *stream)
{
	shunt_lock_take(&stream->tx.lock);
	if (stream->tx.backlog.awaited)
		listen_for(stream, events_for(stream));
	shunt_lock_leave(&stream->tx.lock);
}

void shunt_tcp_backlog_await(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_service *service = engine->service;

	shunt_assert_held(&stream->tx.lock);
	if (stream->tx.backlog.awaited) {
		listen_for(stream, events_for(stream));
		if (!stream->tx.backlog.lingers)	/* it was paid, and owes again */
			take_linger(engine, stream);
		return;
	}
	if (stream->tx.backlog.fd < 0)
		stream->tx.backlog.fd = shunt_own_fds_copy(engine, shunt_deferred_fin_fd(stream));
	if (stream->tx.backlog.fd < 0 || shunt_loop_add(&engine->loop, stream->tx.backlog.fd,
							&stream->source, events_for(stream))) {
		shunt_decision_say(SHUNT_LOG_ERROR, stream,
				   "it is reset: out of descriptors or memory");
		shunt_streams_reset_tcp(engine, stream->tx.backlog.fd >= 0 ?
							stream->tx.backlog.fd :
							shunt_deferred_fin_fd(stream));
		shunt_own_fds_close(engine, stream->tx.backlog.fd);
		stream->tx.backlog.fd = -1;
		shunt_again_free(&stream->tx);	/* nobody will get it */
		shunt_deferred_fin_written(stream);
		return;
	}
	stream->tx.backlog.awaited = true;
	take_linger(engine, stream);
	atomic_fetch_add(&service->resends, 1);
	shunt_streams_hold(stream);
}

void shunt_tcp_backlog_moves(struct shunt_source *source, uint32_t events)
{
	struct shunt_stream *stream = shunt_loop_owner(source, struct shunt_stream, source);
	struct shunt_engine *engine = stream->engine;

	if (!shunt_lock_try(&stream->tx.lock))
		return;	/* somebody is sending, and so writing it; the event comes again */
	if (events & EPOLLIN)
		refuse(engine, stream);
	if (shunt_retire_resend(engine, stream->tx.backlog.fd, stream) == -EAGAIN) {
		shunt_lock_leave(&stream->tx.lock);
		return;
	}
	shunt_loop_remove(&engine->loop, stream->tx.backlog.fd);
	if (stream->tx.backlog.fin)
		engine->sys->shutdown(stream->tx.backlog.fd, SHUT_WR);
	stream->tx.backlog.fin = false;
	shunt_own_fds_close(engine, stream->tx.backlog.fd);
	stream->tx.backlog.fd = -1;
	stream->tx.backlog.awaited = false;
	shunt_deferred_fin_written(stream);
	shunt_lock_leave(&stream->tx.lock);
	atomic_fetch_sub(&engine->service->resends, 1);
	shunt_group_tell(engine, stream, EPOLLOUT | SHUNT_READY_ANSWERED);
	shunt_streams_unhold(stream);
}

void shunt_tcp_backlog_give_up(struct shunt_stream *stream)
{
	struct shunt_engine *engine = stream->engine;
	bool awaited;

	shunt_lock_take(&stream->rx.lock);
	shunt_lock_take(&stream->tx.lock);
	awaited = stream->tx.backlog.awaited;
	if (awaited) {
		shunt_decision_say(SHUNT_LOG_WARN, stream,
				   "it is reset: its peer takes no bytes");
		if (atomic_load(&stream->state) == SHUNT_LINKED)
			shunt_loss_end(engine, stream, 0);
		else
			shunt_streams_reset_tcp(engine, stream->tx.backlog.fd);
		shunt_loop_remove(&engine->loop, stream->tx.backlog.fd);
		shunt_tcp_backlog_paid(engine, stream);
		shunt_own_fds_close(engine, stream->tx.backlog.fd);
		stream->tx.backlog.fd = -1;
		stream->tx.backlog.awaited = stream->tx.backlog.fin = false;
		shunt_again_free(&stream->tx);
		shunt_deferred_fin_written(stream);
	}
	shunt_lock_leave(&stream->tx.lock);
	shunt_lock_leave(&stream->rx.lock);
	if (!awaited)
		return;
	atomic_fetch_sub(&engine->service->resends, 1);
	shunt_group_tell(engine, stream, EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP);
	shunt_streams_unhold(stream);
}
