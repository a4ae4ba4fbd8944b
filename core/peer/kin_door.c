/* SPDX-License-Identifier: MIT */
#include "core/peer/kin_door.h"
#include <string.h>
#include "core/base/hmac.h"
#include "core/fd/own_fds.h"
#include "core/link/screen.h"
#include "core/stream/streams.h"
#include "core/loop/endpoint.h"
#include "core/loop/porter.h"
#include "core/peer/limits.h"
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

static enum shunt_told hear(const struct shunt_service *service, struct shunt_link *link,
			    const struct shunt_take *take)
{
	struct shunt_stream *stream = shunt_streams_hold_at(link, take->stream);
	enum shunt_told told = SHUNT_TOLD_NOTHING;

	if (!stream)
		return told;
	if (stream->seat->peer_id)
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
	result = shunt_screen_packet(&engine->loop, service->kin_fd, 0, true);
	if (result < 0) {
		shunt_loop_remove(&engine->loop, service->kin_fd);
		shunt_porter_let_go(&engine->porter, service->kin_fd);
		service->kin_fd = -1;
	}
	return result > 0;
}

/* The sender's user, by the kernel's word. Without that all senders count as one user. */
static uid_t sender_of(struct msghdr *message)
{
	const struct cmsghdr *control = CMSG_FIRSTHDR(message);
	struct ucred sender = { .uid = (uid_t)-1 };

	if (control && control->cmsg_level == SOL_SOCKET && control->cmsg_type == SCM_CREDENTIALS &&
	    control->cmsg_len == CMSG_LEN(sizeof(sender)))
		memcpy(&sender, CMSG_DATA(control), sizeof(sender));
	return sender.uid;
}

static bool is_question(const struct shunt_take *take, size_t bytes, const struct msghdr *message)
{
	return bytes == sizeof(*take) && !(message->msg_flags & MSG_TRUNC) &&
	       take->magic == SHUNT_WIRE_MAGIC && take->version == SHUNT_WIRE_VERSION;
}

/* True: there may be another. */
static bool question_hear(struct shunt_service *service)
{
	_Alignas(struct cmsghdr) char space[CMSG_SPACE(sizeof(struct ucred))];
	struct sockaddr_un from;
	struct shunt_take take;
	struct iovec iov = { &take, sizeof(take) };
	struct msghdr message = { .msg_name = &from,
				  .msg_namelen = sizeof(from),
				  .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = space,
				  .msg_controllen = sizeof(space) };
	struct shunt_link *link;
	ssize_t got;
	uid_t user;

	if (!is_clean(service))
		return false;
	got = service->engine->sys->recvmsg(service->kin_fd, &message, MSG_DONTWAIT);
	if (got < 0)
		return false;
	user = sender_of(&message);
	if (!shunt_limits_hears_user(service, user))
		return true;
	link = is_question(&take, (size_t)got, &message) ? link_of(service, &take) : NULL;
	if (!link)
		shunt_limits_vain(service, user);
	else if (hear(service, link, &take) == SHUNT_TOLD_YES)
		answer(service, &message);
	return true;
}

static void serve(struct shunt_source *source, uint32_t events)
{
	struct shunt_service *service = shunt_loop_owner(source, struct shunt_service, kin_source);
	bool more = service->kin_fd > 0;

	(void)events;
	for (int i = 0; i < QUESTIONS && more; i++) {
		shunt_own_fds_begin(&service->engine->fds);
		more = question_hear(service);
		shunt_own_fds_end(&service->engine->fds);
	}
}

static void make(struct shunt_service *service)
{
	struct shunt_engine *engine = service->engine;
	struct sockaddr_un address;
	char name[SHUNT_KIN_DOOR];
	const int on = 1;
	socklen_t length;
	int fd;

	shunt_takeover_door(&engine->identity, name);
	length = shunt_endpoint_address(name, &address);
	fd = shunt_own_fds_make(
		&engine->fds,
		engine->sys->socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	if (fd < 0)
		return;
	shunt_porter_guard(&engine->porter, fd);
	engine->sys->setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
	service->kin_source.ready = serve;
	if (engine->sys->bind(fd, (const struct sockaddr *)&address, length) ||
	    shunt_loop_add(&engine->loop, fd, &service->kin_source, EPOLLIN))
		shunt_own_fds_close(&engine->fds, fd);
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
	shunt_own_fds_close(&service->engine->fds, service->kin_fd);
	service->kin_fd = -1;
}
