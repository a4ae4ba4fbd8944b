/* SPDX-License-Identifier: MIT */
#include "core/stream/kernel_tcp.h"
#include <errno.h>
#include <netinet/in.h>
#include <linux/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include "core/base/sys.h"
#include "core/poll/group.h"
#include "core/stream/proof.h"
#include "core/stream/repeat.h"
#include "core/stream/spare_option.h"
#include "core/stream/backlog.h"

/* tcpi_state; <netinet/tcp.h> has the names, but an older struct tcp_info. */
enum { TIME_WAIT = 6, CLOSE, CLOSE_WAIT, LAST_ACK, CLOSING = 11 };

/* 0: the kernel does not say. */
static uint8_t state_of(struct shunt_stream *stream)
{
	struct tcp_info info = { 0 };
	socklen_t length = sizeof(info);

	stream->group->sys->getsockopt(stream->fd, IPPROTO_TCP, TCP_INFO, &info, &length);
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

bool shunt_streams_kernel_fails(const struct shunt_stream *stream, int fd)
{
	struct pollfd pfd = { .fd = fd };
	struct timespec now = { 0 };

	return shunt_stream_is_kernels(stream) &&
	       stream->group->sys->ppoll(&pfd, 1, &now, NULL) > 0 && pfd.revents & POLLERR;
}

void shunt_streams_reset_tcp(const struct shunt_sys *sys, int fd)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	int saved = errno;

	sys->connect(fd, &none, sizeof(none));
	errno = saved;
}

/* Data nobody read makes close() a reset (RFC 2525 2.17); the kernel does not see the ring's. */
static bool unread_on_link(const struct shunt_stream *stream)
{
	return atomic_load(&stream->seat->in.tail) > atomic_load(&stream->rx.head) &&
	       (shunt_intake_on_link(&stream->seat->in.intake) ||
		atomic_load(&stream->seat->in.boundary) != SHUNT_NEVER);
}

/* SO_LINGER with a time of zero: close() resets. */
bool shunt_streams_lingers_zero(struct shunt_stream *stream, int fd)
{
	struct linger linger = { 0, 0 };
	socklen_t length = sizeof(linger);

	if (shunt_spare_option_lingers_not(stream))
		return false;
	if (!shunt_backlog_linger(stream, &linger))
		stream->group->sys->getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &length);
	return linger.l_onoff && !linger.l_linger;
}

bool shunt_streams_loses(struct shunt_stream *stream, int fd)
{
	int unread = 0;

	stream->group->sys->ioctl(fd, FIONREAD, &unread);
	if (unread > 0)
		unread = shunt_repeat_without(stream, (uint64_t)unread) != 0;
	if (shunt_proof_is_next(stream) && unread <= SHUNT_NONCE_BYTES)
		unread = 0;	/* a part of the nonce */
	return unread || unread_on_link(stream) ||
	       shunt_end_has(&stream->end, SHUNT_END_OWES_RESET);
}

bool shunt_streams_resets(struct shunt_stream *stream, int fd)
{
	return shunt_streams_loses(stream, fd) || shunt_streams_lingers_zero(stream, fd);
}
