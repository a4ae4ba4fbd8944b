/* SPDX-License-Identifier: MIT */
/* Socket options, addresses, and what belongs to the kernel's socket whichever way the bytes go. */
#include "cases.h"

static void common(struct end *e)
{
	GET(e->fd, SOL_SOCKET, SO_ERROR);
	GET(e->fd, SOL_SOCKET, SO_TYPE);
	GET(e->fd, SOL_SOCKET, SO_DOMAIN);
	GET(e->fd, SOL_SOCKET, SO_PROTOCOL);
	GET(e->fd, SOL_SOCKET, SO_ACCEPTCONN);
	GET(e->fd, SOL_SOCKET, SO_KEEPALIVE);
	SET(e->fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	GET(e->fd, SOL_SOCKET, SO_KEEPALIVE);
	GET(e->fd, IPPROTO_TCP, TCP_NODELAY);
	SET(e->fd, IPPROTO_TCP, TCP_NODELAY, 1);
	GET(e->fd, IPPROTO_TCP, TCP_NODELAY);
	SET(e->fd, IPPROTO_TCP, TCP_KEEPIDLE, 300);
	SET(e->fd, IPPROTO_TCP, TCP_KEEPINTVL, 100);
	SET(e->fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
	GET(e->fd, IPPROTO_TCP, TCP_KEEPIDLE);
	GET(e->fd, IPPROTO_TCP, TCP_KEEPINTVL);
	GET(e->fd, IPPROTO_TCP, TCP_KEEPCNT);
	SET(e->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 5000);
	GET(e->fd, IPPROTO_TCP, TCP_USER_TIMEOUT);
	SET(e->fd, IPPROTO_TCP, TCP_QUICKACK, 1);
	GET(e->fd, SOL_SOCKET, SO_RCVLOWAT);
	GET(e->fd, SOL_SOCKET, 9999);
	GET(e->fd, 9999, 1);
	SET(e->fd, SOL_SOCKET, 9999, 1);
	SET(e->fd, SOL_SOCKET, SO_SNDBUF, 200000);
	GET(e->fd, SOL_SOCKET, SO_SNDBUF);
	TRY(e, getsockopt(e->fd, SOL_SOCKET, SO_ERROR, NULL, NULL));
	TRY(e, setsockopt(e->fd, SOL_SOCKET, SO_KEEPALIVE, NULL, 4));
	put(e, e->fd, "still here");
	meet(e);
}

static void read_ten(struct end *e)
{
	show(e, e->fd, 10, MSG_WAITALL);
	meet(e);
}

/* iperf3 asks for these; that they are answered counts, and the state. */
static void tcp_info(struct end *e)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);
	char name[32] = "";
	int mss = 0;

	TRY(e, getsockopt(e->fd, IPPROTO_TCP, TCP_INFO, &info, &len));
	say(e, "state %d, length %u", info.tcpi_state, len);
	len = sizeof(name);
	TRY(e, getsockopt(e->fd, IPPROTO_TCP, TCP_CONGESTION, name, &len));
	say(e, "congestion control %s", *name ? "has a name" : "has none");
	len = sizeof(mss);
	TRY(e, getsockopt(e->fd, IPPROTO_TCP, TCP_MAXSEG, &mss, &len));
	say(e, "segment size %s", mss > 0 ? "known" : "unknown");
	put(e, e->fd, "0123456789");
	meet(e);
	len = sizeof(info);
	TRY(e, shutdown(e->fd, SHUT_WR));
	meet(e);
	show(e, e->fd, 1, 0);
	TRY(e, getsockopt(e->fd, IPPROTO_TCP, TCP_INFO, &info, &len));
	say(e, "state %d", info.tcpi_state);
}

static void tcp_info_peer(struct end *e)
{
	show(e, e->fd, 10, MSG_WAITALL);
	meet(e);
	meet(e);
	show(e, e->fd, 1, 0);
	shutdown(e->fd, SHUT_WR);
}

static void names(struct end *e)
{
	struct sockaddr_in me, you, other;
	socklen_t len = sizeof(me);

	TRY(e, getsockname(e->fd, (struct sockaddr *)&me, &len));
	TRY(e, getpeername(e->fd, (struct sockaddr *)&you, &len));
	say(e, "%s", inet_ntoa(me.sin_addr));
	say(e, "%s", inet_ntoa(you.sin_addr));
	pass(e, &me, sizeof(me));
	take(e, &other, sizeof(other));
	say(e, "peer is %s", memcmp(&you, &other, sizeof(you)) ? "another" : "the peer");
	len = 4;
	TRY(e, getpeername(e->fd, (struct sockaddr *)&you, &len));
	say(e, "length %u", len);
	TRY(e, getpeername(e->fd, NULL, &len));
	TRY(e, getpeername(-1, (struct sockaddr *)&you, &len));
	meet(e);
	shutdown(e->fd, SHUT_RDWR);
	len = sizeof(me);
	say(e, "getsockname %d", getsockname(e->fd, (struct sockaddr *)&me, &len));
	meet(e);
}

/* Small buffers hold less; nothing is lost and nobody blocks for ever. */
static void small_buffers(struct end *e)
{
	SET(e->fd, SOL_SOCKET, SO_SNDBUF, 4096);
	send_pattern(e, e->fd, 0, 100000, 20000);
	shutdown(e->fd, SHUT_WR);
	drain(e, e->fd);
}

static void small_buffers_peer(struct end *e)
{
	SET(e->fd, SOL_SOCKET, SO_RCVBUF, 16384);
	recv_pattern(e, e->fd, 0, 100000, 3333);
	drain(e, e->fd);
	close(e->fd);
}

/* A program that gives its sockets little room does not find that megabytes are on their way. */
static void little_room(struct end *e)
{
	static char buf[20000];
	struct pollfd room = {.fd = e->fd, .events = POLLOUT};
	uint64_t sum = 0;
	ssize_t r;

	SET(e->fd, SOL_SOCKET, SO_SNDBUF, 4096);
	meet(e);
	do {
		while ((r = send(e->fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0)
			sum += r;
	} while (poll(&room, 1, 20) > 0);
	say(e, "%s", sum < 200000 ? "little" : "much");
	pass(e, &sum, sizeof(sum));
	await(e);
}

static void little_room_peer(struct end *e)
{
	static char buf[20000];
	uint64_t sum;

	SET(e->fd, SOL_SOCKET, SO_RCVBUF, 4096);
	meet(e);
	take(e, &sum, sizeof(sum));
	while (sum)
		sum -= MUST(e, recv(e->fd, buf, sum < sizeof(buf) ? sum : sizeof(buf), 0));
	tell(e);
}

const struct test cases_options[] = {
	{"option_common", 0, common, read_ten},
	{"option_tcp_info", 0, tcp_info, tcp_info_peer},
	{"option_names", 0, names, names},
	{"option_small_buffers", 0, small_buffers, small_buffers_peer},
	{"option_little_room", 0, little_room, little_room_peer},
	{NULL, 0, NULL, NULL},
};
