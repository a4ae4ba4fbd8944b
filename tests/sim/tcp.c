/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <linux/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include "tests/sim/random.h"
#include "tests/sim/tcp.h"
#include "tests/sim/witness.h"

static void wake(struct sim_sock *sock, uint32_t what)
{
	sim_epoll_wake(sock->items, what);
}

static void pipe_init(struct sim_pipe *pipe, uint8_t *ring)
{
	*pipe = (struct sim_pipe) { .data = ring,
				    .sndbuf = 256 << sim_below(9),
				    .rcvbuf = 256 << sim_below(9) };
}

static void sock_init(struct sim_sock *sock, struct sim_sock *peer, uint8_t *ring, bool connector)
{
	*sock = (struct sim_sock) { .peer = peer, .connector = connector,
				    .state = SIM_TCP_CONNECTING, .options = SIM_OPTIONS_FIRST };
	pipe_init(&sock->out, ring);
}

void sim_tcp_pair(struct sim_sock a[2], uint8_t *rings[2], struct in_addr address, uint16_t port,
		  uint16_t from)
{
	sock_init(&a[0], &a[1], rings[0], true);
	sock_init(&a[1], &a[0], rings[1], false);
	a[0].local = a[1].remote = (struct sockaddr_in) { .sin_family = AF_INET, .sin_addr = address,
							  .sin_port = htons(from) };
	a[1].local = a[0].remote = (struct sockaddr_in) { .sin_family = AF_INET, .sin_addr = address,
							  .sin_port = htons(port) };
}

void sim_tcp_establish(struct sim_sock *connector)
{
	if (connector->state != SIM_TCP_CONNECTING)
		return;
	connector->state = SIM_TCP_OPEN;
	connector->peer->state = SIM_TCP_OPEN;
	wake(connector, 0);
}

static uint64_t room(const struct sim_sock *sock)
{
	return sock->out.sndbuf - (sock->out.written - sock->out.acked);
}

static void ring_put(struct sim_pipe *pipe, const uint8_t *from, uint64_t bytes)
{
	while (bytes) {
		uint64_t at = pipe->written % SIM_PIPE_BYTES;
		uint64_t part = bytes < SIM_PIPE_BYTES - at ? bytes : SIM_PIPE_BYTES - at;

		memcpy(pipe->data + at, from, part);
		pipe->written += part;
		from += part;
		bytes -= part;
	}
}

static void ring_get(const struct sim_pipe *pipe, uint64_t offset, uint8_t *to, uint64_t bytes)
{
	while (bytes) {
		uint64_t at = offset % SIM_PIPE_BYTES;
		uint64_t part = bytes < SIM_PIPE_BYTES - at ? bytes : SIM_PIPE_BYTES - at;

		memcpy(to, pipe->data + at, part);
		offset += part;
		to += part;
		bytes -= part;
	}
}

static int take_error(struct sim_sock *sock)
{
	int error = sock->error;

	sock->error = 0;
	return error;
}

ssize_t sim_tcp_send(struct sim_sock *sock, const struct iovec *iov, size_t count)
{
	uint64_t limit, done = 0;

	if (sock->error || sock->shut_write)
		return -(take_error(sock) ?: EPIPE);
	if (sock->state == SIM_TCP_CLOSED)
		return -EPIPE;
	limit = sock->state == SIM_TCP_OPEN ? room(sock) : 0;
	if (limit && sim_one_in(8))
		limit = 1 + sim_below(limit);
	for (size_t i = 0; i < count && done < limit; i++) {
		uint64_t part = iov[i].iov_len < limit - done ? iov[i].iov_len : limit - done;

		ring_put(&sock->out, iov[i].iov_base, part);
		done += part;
	}
	for (size_t i = 0, all = 0; i < count; i++)
		if ((all += iov[i].iov_len) > done)
			sock->nospace = true;
	return done ? (ssize_t)done : -EAGAIN;
}

static uint64_t available(const struct sim_sock *sock)
{
	return sock->peer->out.acked - sock->peer->out.read;
}

static ssize_t nothing_to_read(struct sim_sock *sock)
{
	if (sock->done)
		return 0;
	if (sock->error)
		return -take_error(sock);
	if (sock->shut_read)
		return 0;
	return sock->state == SIM_TCP_CLOSED ? -ENOTCONN : -EAGAIN;
}

ssize_t sim_tcp_receive(struct sim_sock *sock, const struct iovec *iov, size_t count, int flags)
{
	struct sim_pipe *in = &sock->peer->out;
	uint64_t limit = available(sock), done = 0;

	if (!limit)
		return nothing_to_read(sock);
	for (size_t i = 0; i < count && done < limit; i++) {
		uint64_t part = iov[i].iov_len < limit - done ? iov[i].iov_len : limit - done;

		if (!(flags & MSG_TRUNC))
			ring_get(in, in->read + done, iov[i].iov_base, part);
		done += part;
	}
	if (!(flags & MSG_PEEK))
		in->read += done;
	return done;
}

uint32_t sim_tcp_poll(struct sim_sock *sock)
{
	uint32_t ready = 0;

	if (sock->listens)
		return sock->queued ? EPOLLIN | EPOLLRDNORM : 0;
	if ((sock->shut_read && sock->shut_write) || sock->state == SIM_TCP_CLOSED)
		ready |= EPOLLHUP;
	if (sock->shut_read)
		ready |= EPOLLIN | EPOLLRDNORM | EPOLLRDHUP;
	if (sock->error)
		ready |= EPOLLERR;
	if (sock->state == SIM_TCP_CONNECTING)
		return ready;
	if (available(sock))
		ready |= EPOLLIN | EPOLLRDNORM;
	if (sock->shut_write || room(sock) >= sock->out.sndbuf / 3 + 1)
		ready |= EPOLLOUT | EPOLLWRNORM;
	else
		sock->nospace = true;
	return ready;
}

int sim_tcp_shutdown(struct sim_sock *sock, int how)
{
	if (sock->state != SIM_TCP_OPEN)
		return -ENOTCONN;
	if (how != SHUT_WR)
		sock->shut_read = true;
	if (how != SHUT_RD) {
		sock->shut_write = true;
		sock->out.fin_sent = true;
	}
	wake(sock, 0);
	return 0;
}

/* tcp_done(): what was received stays readable, what was not sent is gone. */
static void end(struct sim_sock *sock, int error)
{
	if (sock->state == SIM_TCP_CLOSED)
		return;
	sock->state = SIM_TCP_CLOSED;
	sock->error = error;
	sock->shut_read = sock->shut_write = true;
	wake(sock, 0);
}

static void reset_peer(struct sim_sock *sock)
{
	if (sock->state == SIM_TCP_OPEN)
		sock->out.rst_sent = true;
}

void sim_tcp_disconnect(struct sim_sock *sock)
{
	reset_peer(sock);
	end(sock, ECONNRESET);
	sock->peer->out.read = sock->peer->out.acked;
	memset(&sock->remote, 0, sizeof(sock->remote));
}

void sim_tcp_abort(struct sim_sock *sock)
{
	sock->orphan = true;
	reset_peer(sock);
	end(sock, 0);
}

void sim_tcp_close(struct sim_sock *sock)
{
	sock->orphan = true;
	if (sock->state == SIM_TCP_CLOSED)
		return;
	if (available(sock) || sock->state == SIM_TCP_CONNECTING) {
		reset_peer(sock);
		end(sock, 0);
		return;
	}
	sock->shut_read = sock->shut_write = true;
	sock->out.fin_sent = true;
}

void sim_tcp_info(struct sim_sock *sock, struct tcp_info *info)
{
	memset(info, 0, sizeof(*info));
	info->tcpi_state = sock->state == SIM_TCP_OPEN ? 1 : 2;
	if (sock->state == SIM_TCP_CLOSED)
		info->tcpi_state = 7;
	else if (sock->out.fin_sent)
		info->tcpi_state = sock->peer->out.fin_arrived ? 11 : 4;	/* CLOSING, FIN_WAIT */
	else if (sock->peer->out.fin_arrived)
		info->tcpi_state = 8;
	if (sock->listens) {
		info->tcpi_unacked = sock->queued;
		info->tcpi_sacked = SIM_BACKLOG;
	}
	info->tcpi_bytes_acked = sock->out.acked + sock->connector + sock->out.fin_arrived;
	info->tcpi_bytes_sent = sock->out.acked + sock->out.fin_arrived +
				(uint64_t)sim_tcp_unsent(sock);
	info->tcpi_bytes_received = sock->peer->out.acked + sock->peer->out.fin_arrived;
}

int sim_tcp_unread(struct sim_sock *sock)
{
	return available(sock);
}

int sim_tcp_unsent(struct sim_sock *sock)
{
	return sock->out.written - sock->out.acked + (sock->out.fin_sent && !sock->out.fin_arrived);
}

bool sim_tcp_is_full(const struct sim_sock *sock)
{
	return !room(sock);
}

static void deliver_fin(struct sim_sock *sock)
{
	struct sim_sock *peer = sock->peer;

	sock->out.fin_arrived = true;
	peer->shut_read = true;
	peer->done = true;
	wake(peer, 0);
}

/* tcp_reset() */
static void deliver_reset(struct sim_sock *sock)
{
	struct sim_sock *peer = sock->peer;

	sock->out.rst_sent = false;
	peer->out.written = peer->out.acked;
	end(peer, sock->out.fin_arrived ? EPIPE : ECONNRESET);
}

/* Bytes for a socket that nobody will read from: answered by a reset. */
static void refuse(struct sim_sock *sock)
{
	reset_peer(sock->peer);
	sock->out.acked = sock->out.read = sock->out.written;
	end(sock->peer, 0);
}

bool sim_tcp_deliver(struct sim_sock *sock, uint64_t bytes)
{
	struct sim_pipe *pipe = &sock->out;
	struct sim_sock *peer = sock->peer;
	uint64_t waiting = pipe->written - pipe->acked;
	uint64_t space = pipe->rcvbuf - (pipe->acked - pipe->read);

	if (peer->state == SIM_TCP_CLOSED || sock->state == SIM_TCP_CONNECTING)
		return false;
	if (pipe->rst_sent) {
		deliver_reset(sock);
		return true;
	}
	if (waiting && (peer->orphan || (peer->shut_write && peer->shut_read && !peer->done))) {
		refuse(sock);
		return true;
	}
	if (bytes > waiting)
		bytes = waiting;
	if (bytes > space)
		bytes = space;
	pipe->acked += bytes;
	if (bytes) {
		wake(peer, EPOLLIN | EPOLLRDNORM);
		if (sock->nospace && room(sock) >= pipe->sndbuf / 3 + 1) {
			sock->nospace = false;
			wake(sock, EPOLLOUT | EPOLLWRNORM);
		}
		return true;
	}
	if (waiting || !pipe->fin_sent || pipe->fin_arrived)
		return false;
	deliver_fin(sock);
	return true;
}
