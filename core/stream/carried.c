/* SPDX-License-Identifier: MIT */
#define SHUNT_ITSELF
#include "core/stream/carried.h"
#include "core/engine.h"
#include <errno.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include "core/stream/rx.h"
#include "shunt/shunt.h"

/* tcpi_state; <netinet/tcp.h> has the names, but an older struct tcp_info. */
enum { FIN_WAIT1 = 4, FIN_WAIT2, TIME_WAIT, CLOSE, CLOSE_WAIT, LAST_ACK, CLOSING = 11 };

/* A FIN is one byte more to the kernel. In CLOSE there may have been any. */
#define FIN_SENT (1u << FIN_WAIT1 | 1u << FIN_WAIT2 | 1u << TIME_WAIT | 1u << LAST_ACK | 1u << CLOSING)
#define FIN_CAME (1u << CLOSE_WAIT | 1u << TIME_WAIT | 1u << LAST_ACK | 1u << CLOSING)

static bool in(uint8_t state, uint32_t states)
{
	return state < 32 && states & 1u << state;
}

/* `all`: what the kernel has carried, `known`: what of it was counted already, or is no byte of the stream. */
static void add(struct shunt_bytes *bytes, uint64_t all, uint64_t known)
{
	known += bytes->tcp;
	if (all > known && all - known < UINT64_MAX / 2)
		shunt_bytes_add(bytes, bytes->tcp + bytes->link, all - known, false);
}

/* False: the kernel does not say. */
static bool ask(struct shunt_stream *stream, struct tcp_info *info, int *unsent)
{
	const struct shunt_sys *sys = stream->group->sys;
	socklen_t length = sizeof(*info);

	if (sys->getsockopt(stream->fd, IPPROTO_TCP, TCP_INFO, info, &length) ||
	    length < offsetof(struct tcp_info, tcpi_bytes_received) +
			     sizeof(info->tcpi_bytes_received))
		return false;
	sys->ioctl(stream->fd, SIOCOUTQ, unsent);
	return true;
}

/* Of what the kernel calls written: no bytes of the program, or bytes that bytes.tcp does not count. */
static uint64_t aside(const struct shunt_stream *stream, const struct tcp_info *info)
{
	/* The SYN of the connecting side is acknowledged like a byte. */
	return stream->tx.backlog.written + (stream->role == SHUNT_CONNECTOR) +
	       in(info->tcpi_state, FIN_SENT);
}

uint64_t shunt_carried_past(struct shunt_stream *stream)
{
	struct tcp_info info = { 0 };
	int unsent = 0, saved = errno;
	uint64_t written, known;

	if (!ask(stream, &info, &unsent))
		unsent = -1;
	errno = saved;
	if (unsent < 0)
		return 0;
	written = info.tcpi_bytes_acked + (uint32_t)unsent;
	known = stream->tx.bytes.tcp + aside(stream, &info) +
		(info.tcpi_state == CLOSE && shunt_end_has(&stream->end, SHUNT_END_SHUT_WRITE));
	return written > known ? written - known : 0;
}

void shunt_carried_add(struct shunt_stream *stream, struct shunt_bytes *tx, struct shunt_bytes *rx)
{
	struct tcp_info info = { 0 };
	int unsent = 0, unread = 0;

	if (atomic_load(&stream->state) != SHUNT_PLAIN || stream->fd < 0 ||
	    !ask(stream, &info, &unsent))
		return;
	stream->group->sys->ioctl(stream->fd, SIOCINQ, &unread);
	add(tx, info.tcpi_bytes_acked + (unsent > 0 ? (uint32_t)unsent : 0), aside(stream, &info));
	add(rx, info.tcpi_bytes_received,
	    stream->rx.nonce.aside + (unread > 0 ? (uint32_t)unread : 0) +
		    in(info.tcpi_state, FIN_CAME));
}

/* Neither lock of the stream is held: the answer is of some moment of the call. */
int shunt_stream_tracks(struct shunt_stream *stream)
{
	if (!shunt_stream_is_linked(stream))
		return 0;
	return (shunt_heading_on_link(&stream->seat->out.heading) ? SHUNT_SENDS : 0) |
	       (shunt_intake_on_link(&stream->seat->in.intake) ? SHUNT_RECEIVES : 0);
}

int shunt_stream_traffic(struct shunt_engine *engine, struct shunt_stream *stream,
			 struct shunt_traffic *traffic)
{
	struct shunt_bytes tx, rx;
	bool connected;

	shunt_lock_take(&engine->streams_lock);
	connected = stream->fd >= 0 && stream->role != SHUNT_LISTENER &&
		    atomic_load(&stream->state) != SHUNT_FRESH;
	tx = stream->tx.bytes;
	rx = stream->rx.bytes;
	if (connected)
		shunt_carried_add(stream, &tx, &rx);
	shunt_lock_leave(&engine->streams_lock);
	if (!connected)
		return -ENOTCONN;
	*traffic = (struct shunt_traffic) { tx.link, tx.tcp, rx.link, rx.tcp };
	return 0;
}
