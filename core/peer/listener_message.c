/* SPDX-License-Identifier: MIT */
#include "core/peer/listener_message.h"
#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <shunt/wire.h>
#include "core/engine.h"
#include "core/link/screen.h"

int shunt_listener_message_send(struct shunt_engine *engine, int to, struct shunt_have *have)
{
	struct iovec iov = { have, sizeof(*have) };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

	have->magic = SHUNT_WIRE_MAGIC;
	have->version = SHUNT_WIRE_VERSION;
	return engine->sys->sendmsg(to, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

int shunt_listener_message_receive(struct shunt_engine *engine, int from, struct shunt_have *have)
{
	struct iovec iov = { have, sizeof(*have) };
	char none;
	/* No room for descriptors: the kernel drops them. */
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &none };
	ssize_t got = atomic_load(&engine->porter.unguarded) ?
			      shunt_screen_packet(&engine->loop, from, 0, false) :
			      1;

	if (got < 1)
		return got == -EBADMSG ? -EPROTO : (int)got;
	got = engine->sys->recvmsg(from, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (!got)
		return -EPIPE;
	return got == sizeof(*have) && !(message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) && have->magic == SHUNT_WIRE_MAGIC &&
	       have->version == SHUNT_WIRE_VERSION ? 1 : -EPROTO;
}
