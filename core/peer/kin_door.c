/* SPDX-License-Identifier: MIT */
#include "core/peer/kin_door.h"
#include <string.h>
#include "core/base/hmac.h"
#include "core/fd/own_fds.h"
#include "core/link/screen.h"
#include "core/link/seats.h"
#include "core/loop/endpoint.h"
#include "core/loop/porter.h"
#include "core/service.h"
#include "core/stream/retire.h"
#include "core/stream/takeover.h"

#define QUESTIONS 16 /* that are looked at before others are heard */

static struct shunt_link *link_of(const struct shunt_service *service,
				  const struct shunt_take *take)
{
	for (struct shunt_link *link = service->links; link; link = link->next)
		if (link->kin_heard && link->peer_pid == take->owner &&
		    atomic_load(&link->state) == SHUNT_LINK_UP &&
		    shunt_hmac_equal(link->peer_kin, take->kin, sizeof(take->kin)))
			return link;
	return NULL;
}

static enum shunt_told hear(const struct shunt_service *service, const struct shunt_take *take)
{
	struct shunt_link *link = link_of(service, take);
	struct shunt_stream *stream = link ? shunt_seats_hold(link, take->stream) : NULL;
	enum shunt_told told = SHUNT_TOLD_NOTHING;

	if (!stream)
		return told;
	if (stream->peer_id)
		told = shunt_retire_yield(service->engine, stream, &take->stand, false);
	shunt_streams_unhold(stream);
	return told;
}

static void answer(const struct shunt_service *service, const struct msghdr *asked)
{
	struct shunt_yielded taken = { .magic = SHUNT_WIRE_MAGIC, .done = 1 };
	struct iovec iov = { &taken, sizeof(taken) };
	struct msghdr message = { .msg_name = asked->msg_name,
				  .msg_namelen = asked->msg_namelen,
				  .msg_iov = &iov,
				  .msg_iovlen = 1 };

	service->engine->sys->sendmsg(service->kin_fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* A stranger that sends descriptors closes the door for all: what they cost to close, the porter pays. */
static bool is_clean(struct shunt_service *service)
{
	struct shunt_engine *engine = service->engine;
	int result;

	if (!atomic_load(&engine->porter.unguarded))
		return true;
	result = shunt_screen_packet(engine, service->kin_fd, 0, false);
	if (result < 0) {
		shunt_loop_remove(&engine->loop, service->kin_fd);
		shunt_porter_let_go(engine, service->kin_fd);
		service->kin_fd = -1;
	}
	return result > 0;
}

/* True: there may be another. */
static bool question_hear(struct shunt_service *service)
{
	struct sockaddr_un from;
	struct shunt_take take;
	struct iovec iov = { &take, sizeof(take) };
	struct msghdr message = {
		.msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &iov, .msg_iovlen = 1
	};
	ssize_t got;

	if (!is_clean(service))
		return false;
	got = service->engine->sys->recvmsg(service->kin_fd, &message, MSG_DONTWAIT);
	if (got == sizeof(take) && !(message.msg_flags & MSG_TRUNC) &&
	    take.magic == SHUNT_WIRE_MAGIC && take.version == SHUNT_WIRE_VERSION &&
	    hear(service, &take) == SHUNT_TOLD_YES)
		answer(service, &message);
	return got >= 0;
}

static void serve(struct shunt_source *source, uint32_t events)
{
	struct shunt_service *service = shunt_loop_owner(source, struct shunt_service, kin_source);
	bool more = service->kin_fd > 0;

	(void)events;
	for (int i = 0; i < QUESTIONS && more; i++) {
		shunt_own_fds_begin(service->engine);
		more = question_hear(service);
		shunt_own_fds_end(service->engine);
	}
}

static void make(struct shunt_service *service)
{
	struct shunt_engine *engine = service->engine;
	struct sockaddr_un address;
	char name[SHUNT_KIN_DOOR];
	socklen_t length;
	int fd;

	shunt_takeover_door(&engine->identity, name);
	length = shunt_endpoint_address(name, &address);
	fd = shunt_own_fds_make(
		engine, engine->sys->socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	if (fd < 0)
		return;
	shunt_porter_guard(engine, fd);
	service->kin_source.ready = serve;
	if (engine->sys->bind(fd, (const struct sockaddr *)&address, length) ||
	    shunt_loop_add(&engine->loop, fd, &service->kin_source, EPOLLIN))
		shunt_own_fds_close(engine, fd);
	else
		service->kin_fd = fd;
}

bool shunt_kin_door_open(struct shunt_link *link, const struct shunt_message *message)
{
	struct shunt_service *service = link->engine->service;

	if (link->kin_heard)
		return false;
	link->kin_heard = true;
	memcpy(link->peer_kin, message->kin, sizeof(link->peer_kin));
	if (service->kin_fd < 0)
		make(service);
	return true;
}

void shunt_kin_door_close(struct shunt_service *service)
{
	shunt_own_fds_close(service->engine, service->kin_fd);
	service->kin_fd = -1;
}
