/* SPDX-License-Identifier: MIT */
#include "core/stream/takeover.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "core/base/identity.h"
#include "core/engine.h"
#include "core/fd/own_fds.h"
#include "core/stream/rest.h"
#include "core/fork/fork_slots.h"
#include "core/loop/endpoint.h"

#define PATIENCE 20000000 /* ns that the answer may take before the question is sent again */

struct shunt_stand shunt_takeover_stand(const struct shunt_stream *stream)
{
	const struct shunt_tx *tx = &stream->tx;
	const struct shunt_seat_out *out = &stream->seat->out;

	return (struct shunt_stand) {
		.offset = atomic_load(&stream->rx.head),
		.announced = atomic_load(&out->announced),
		.sent = shunt_heading_on_link(&out->heading) ? tx->offset : SHUNT_NEVER,
	};
}

void shunt_takeover_door(const struct shunt_identity *process, char name[SHUNT_KIN_DOOR])
{
	char text[SHUNT_IDENTITY_TEXT];

	shunt_identity_text(process, text);
	snprintf(name, SHUNT_KIN_DOOR, "shunt/kin/%s", text);
}

/* With a name by chance, to which the answer comes; nobody but the door's owner can send to a connected socket. */
static int door_connect(struct shunt_engine *engine, const struct shunt_link *link)
{
	const struct sockaddr chance = { .sa_family = AF_UNIX };
	struct sockaddr_un address;
	char name[SHUNT_KIN_DOOR];
	socklen_t length;
	int fd;

	shunt_takeover_door(&link->channel.peer, name);
	length = shunt_endpoint_address(name, &address);
	fd = shunt_own_fds_make(
		&engine->fds,
		engine->sys->socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	if (fd >= 0 && (engine->sys->bind(fd, &chance, sizeof(chance.sa_family)) ||
			engine->sys->connect(fd, (struct sockaddr *)&address, length))) {
		shunt_own_fds_close(&engine->fds, fd);
		fd = -1;
	}
	return fd;
}

static bool ask(struct shunt_engine *engine, int fd, pid_t owner, const struct shunt_stream *stream)
{
	const struct shunt_link *link = stream->seat->link;
	struct shunt_take take = { .magic = SHUNT_WIRE_MAGIC,
				   .version = SHUNT_WIRE_VERSION,
				   .owner = (uint32_t)owner,
				   .stream = stream->seat->peer_id,
				   .stand = shunt_takeover_stand(stream) };
	struct iovec iov = { &take, sizeof(take) };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

	memcpy(take.kin, link->kin, sizeof(take.kin));
	return engine->sys->sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(take);
}

static bool is_answered(struct shunt_engine *engine, int fd)
{
	const struct timespec patience = { 0, PATIENCE };
	struct pollfd waiting = { .fd = fd, .events = POLLIN };
	struct shunt_yielded taken;
	struct iovec iov = { &taken, sizeof(taken) };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (engine->sys->ppoll(&waiting, 1, &patience, NULL) <= 0 ||
	    engine->sys->recvmsg(fd, &message, MSG_DONTWAIT) != sizeof(taken) ||
	    taken.magic != SHUNT_WIRE_MAGIC)
		return false;
	return taken.done == 1;
}

void shunt_takeover_try(struct shunt_engine *engine, struct shunt_stream *stream)
{
	pid_t owner = shunt_fork_slots_owner(&stream->sharing);
	bool had;
	int fd;

	if (!stream->sharing.rest || !owner || !stream->seat->link)
		return;
	fd = door_connect(engine, stream->seat->link);
	if (fd < 0)
		return;
	had = shunt_rest_take(stream) && ask(engine, fd, owner, stream) &&
	      is_answered(engine, fd);
	shunt_own_fds_close(&engine->fds, fd);
	if (had)
		shunt_fork_slots_tell_taken(&stream->sharing);
}
