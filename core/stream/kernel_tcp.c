/* SPDX-License-Identifier: MIT */
#include "core/stream/kernel_tcp.h"
#include <errno.h>
#include <netinet/in.h>
#include <linux/tcp.h>
#include <sys/socket.h>
#include "core/engine.h"

bool shunt_stream_tcp_closed(struct shunt_stream *stream)
{
	struct tcp_info info = { 0 };
	socklen_t length = sizeof(info);

	return !stream->engine->sys->getsockopt(stream->fd, IPPROTO_TCP, TCP_INFO, &info,
						&length) &&
	       info.tcpi_state == 7 /* TCP_CLOSE */;
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
