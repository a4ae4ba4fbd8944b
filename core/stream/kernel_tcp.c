/* SPDX-License-Identifier: MIT */
#include "core/stream/kernel_tcp.h"
#include <errno.h>
#include <netinet/in.h>
#include <linux/tcp.h>
#include <sys/socket.h>
#include "core/engine.h"

/* tcpi_state; <netinet/tcp.h> has the names, but an older struct tcp_info. */
enum { TIME_WAIT = 6, CLOSE, CLOSE_WAIT, LAST_ACK, CLOSING = 11 };

/* 0: the kernel does not say. */
static uint8_t state_of(struct shunt_stream *stream)
{
	struct tcp_info info = { 0 };
	socklen_t length = sizeof(info);

	stream->engine->sys->getsockopt(stream->fd, IPPROTO_TCP, TCP_INFO, &info, &length);
	return info.tcpi_state;
}

bool shunt_stream_tcp_closed(struct shunt_stream *stream)
{
	return state_of(stream) == CLOSE;
}

bool shunt_stream_tcp_ended(struct shunt_stream *stream)
{
	uint8_t state = state_of(stream);

	if (state == CLOSE) /* by both ends' FIN, or by a reset */
		return !shunt_end_has(&stream->end,
				      SHUNT_END_RESET | SHUNT_END_BROKEN | SHUNT_END_TOLD);
	return state == CLOSE_WAIT || state == LAST_ACK || state == CLOSING || state == TIME_WAIT;
}

bool shunt_streams_kernel_fails(struct shunt_engine *engine, int fd,
				const struct shunt_stream *stream)
{
	struct pollfd pfd = { .fd = fd };
	struct timespec now = { 0 };

	return shunt_stream_is_plain(stream) && engine->sys->ppoll(&pfd, 1, &now, NULL) > 0 &&
	       pfd.revents & POLLERR;
}

void shunt_streams_reset_tcp(struct shunt_engine *engine, int fd)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	int saved = errno;

	engine->sys->connect(fd, &none, sizeof(none));
	errno = saved;
}
