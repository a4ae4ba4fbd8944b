#include "core/owed.h"
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include "core/engine.h"
#include "core/linger.h"

static void take_linger(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct linger none = { .l_onoff = 1 };
	socklen_t length = sizeof(stream->linger);

	stream->lingers = !engine->sys->getsockopt(stream->resend_fd, SOL_SOCKET, SO_LINGER, &stream->linger, &length);
	if (stream->lingers)
		engine->sys->setsockopt(stream->resend_fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
}

void shunt_owed_paid(struct shunt_engine *engine, struct shunt_stream *stream)
{
	if (!stream->lingers)
		return;
	engine->sys->setsockopt(stream->resend_fd, SOL_SOCKET, SO_LINGER, &stream->linger, sizeof(stream->linger));
	stream->lingers = false;
}

bool shunt_owed_linger(const struct shunt_stream *stream, struct linger *linger)
{
	if (stream->lingers)
		*linger = stream->linger;
	return stream->lingers;
}

bool shunt_stream_linger(struct shunt_stream *stream, struct linger *linger)
{
	bool ours;

	shunt_lock_take(&stream->tx.lock);
	ours = shunt_owed_linger(stream, linger);
	shunt_lock_leave(&stream->tx.lock);
	return ours;
}

void shunt_owed_linger_changed(struct shunt_stream *stream)
{
	shunt_lock_take(&stream->tx.lock);
	if (stream->lingers)
		take_linger(stream->engine, stream);
	shunt_lock_leave(&stream->tx.lock);
}

void shunt_owed_await(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct epoll_event event = { .events = EPOLLOUT, .data.ptr = &stream->source };
	struct shunt_service *service = engine->service;

	if (stream->awaited) {
		if (!stream->lingers)	/* it was paid, and owes again */
			take_linger(engine, stream);
		return;
	}
	if (stream->resend_fd < 0)
		stream->resend_fd = shunt_private_copy(engine, shunt_linger_fd(stream));
	if (stream->resend_fd < 0 ||
	    engine->sys->epoll_ctl(service->epfd, EPOLL_CTL_ADD, stream->resend_fd, &event)) {
		shunt_log(SHUNT_LOG_ERROR, "descriptor %d is reset: out of descriptors or memory", stream->fd);
		shunt_streams_reset_tcp(engine, stream->resend_fd >= 0 ? stream->resend_fd : shunt_linger_fd(stream));
		shunt_private_close(engine, stream->resend_fd);
		stream->resend_fd = -1;
		shunt_retire_free(&stream->tx);	/* nobody will get it */
		shunt_linger_proven(stream);
		return;
	}
	stream->awaited = true;
	take_linger(engine, stream);
	atomic_fetch_add(&service->resends, 1);
	shunt_streams_hold(stream);
}

void shunt_owed_room(struct shunt_service *service, struct shunt_stream *stream)
{
	struct shunt_engine *engine = service->engine;

	if (!shunt_lock_try(&stream->tx.lock))
		return;	/* somebody is sending, and so writing it; the event comes again */
	if (shunt_retire_resend(engine, stream->resend_fd, stream) == -EAGAIN) {
		shunt_lock_leave(&stream->tx.lock);
		return;
	}
	engine->sys->epoll_ctl(service->epfd, EPOLL_CTL_DEL, stream->resend_fd, NULL);
	if (stream->tx.resend_fin)
		engine->sys->shutdown(stream->resend_fd, SHUT_WR);
	stream->tx.resend_fin = false;
	shunt_private_close(engine, stream->resend_fd);
	stream->resend_fd = -1;
	stream->awaited = false;
	shunt_linger_proven(stream);
	shunt_lock_leave(&stream->tx.lock);
	atomic_fetch_sub(&service->resends, 1);
	shunt_group_tell(engine, stream, EPOLLOUT);
	shunt_streams_unhold(stream);
}
