/* SPDX-License-Identifier: MIT */
/* Options and counters: what they say, what they change, and what an accepted socket inherits. */
#include "cases.h"

#include <linux/sockios.h>
#include <sys/time.h>

static void inherited(struct end *e)
{
	int l = make_listener(e, 0), fd, got;

	SET(l, IPPROTO_TCP, TCP_NODELAY, 1);
	SET(l, SOL_SOCKET, SO_KEEPALIVE, 1);
	SET(l, IPPROTO_TCP, TCP_KEEPIDLE, 123);
	SET(l, SOL_SOCKET, SO_RCVLOWAT, 3);
	SET(l, SOL_SOCKET, SO_OOBINLINE, 1);
	TRY(e, setsockopt(l, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){.tv_usec = 20000}, sizeof(struct timeval)));
	nonblock(e, l, 1);
	fd = dial(e);
	ended(e, l, POLLIN);
	got = MUST(e, accept(l, NULL, NULL));
	say(e, "nonblocking %d", (fcntl(got, F_GETFL) & O_NONBLOCK) != 0);
	GET(got, IPPROTO_TCP, TCP_NODELAY);
	GET(got, SOL_SOCKET, SO_KEEPALIVE);
	GET(got, IPPROTO_TCP, TCP_KEEPIDLE);
	GET(got, SOL_SOCKET, SO_RCVLOWAT);
	GET(got, SOL_SOCKET, SO_OOBINLINE);
	show(e, got, 10, 0);
	put(e, fd, "ab");
	show(e, got, 10, 0);
	close(fd);
	show(e, got, 10, 0);
	close(got);
	close(l);
}

/* Room for what is sent and received, asked for and given twice. */
static void buffers(struct end *e)
{
	SET(e->fd, SOL_SOCKET, SO_RCVBUF, 30000);
	GET(e->fd, SOL_SOCKET, SO_RCVBUF);
	SET(e->fd, SOL_SOCKET, SO_SNDBUF, 30000);
	GET(e->fd, SOL_SOCKET, SO_SNDBUF);
	SET(e->fd, SOL_SOCKET, SO_SNDBUF, -1);
	SET(e->fd, SOL_SOCKET, SO_SNDBUF, 100000);
	tell(e);
	recv_pattern(e, e->fd, 0, 300000, 5000);
	ask(e, e->fd);
	finish(e, e->fd);
}

static void buffers_peer(struct end *e)
{
	await(e);
	send_pattern(e, e->fd, 0, 300000, 20000);
	echo_peer(e);
}

static void refused(struct end *e)
{
	int v = 1;
	char c = 1;

	SET(e->fd, SOL_SOCKET, SO_SNDLOWAT, 5);
	SET(e->fd, SOL_SOCKET, SO_TYPE, 1);
	SET(e->fd, SOL_SOCKET, SO_ERROR, 1);
	SET(e->fd, SOL_SOCKET, SO_ACCEPTCONN, 1);
	SET(e->fd, IPPROTO_TCP, TCP_KEEPIDLE, 0);
	SET(e->fd, IPPROTO_TCP, TCP_KEEPCNT, 1000);
	SET(e->fd, IPPROTO_TCP, TCP_MAXSEG, 1);
	SET(e->fd, IPPROTO_TCP, 9999, 1);
	SET(e->fd, IPPROTO_UDP, 1, 1);
	SET(e->fd, IPPROTO_IP, 9999, 1);
	TRY(e, setsockopt(e->fd, IPPROTO_TCP, TCP_NODELAY, &c, 1));
	TRY(e, setsockopt(e->fd, IPPROTO_TCP, TCP_NODELAY, &v, 0));
	TRY(e, setsockopt(e->fd, SOL_SOCKET, SO_RCVTIMEO, &v, sizeof(v)));
	TRY(e, setsockopt(e->fd, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){.tv_usec = 1000000}, sizeof(struct timeval)));
	TRY(e, setsockopt(e->fd, IPPROTO_TCP, TCP_ULP, "nothing", 7));
	TRY(e, setsockopt(e->fd, IPPROTO_TCP, TCP_CONGESTION, "nothing", 7));
	ask(e, e->fd);
	finish(e, e->fd);
}

static void timeouts(struct end *e)
{
	static const struct timeval given[] = {{5, 250000}, {0, 0}, {-1, 0}, {0, 20000}};
	struct timeval t;
	socklen_t len;

	for (int i = 0; i < 4; i++) {
		TRY(e, setsockopt(e->fd, SOL_SOCKET, SO_RCVTIMEO, &given[i], sizeof(t)));
		TRY(e, setsockopt(e->fd, SOL_SOCKET, SO_SNDTIMEO, &given[i], sizeof(t)));
		len = sizeof(t);
		TRY(e, getsockopt(e->fd, SOL_SOCKET, SO_RCVTIMEO, &t, &len));
		say(e, "%ld %ld %u", (long)t.tv_sec, (long)t.tv_usec / 10000, len);
		if (i == 2 || i == 3)
			show(e, e->fd, 10, 0);
	}
	TRY(e, setsockopt(e->fd, SOL_SOCKET, SO_RCVTIMEO, &given[1], sizeof(t)));
	ask(e, e->fd);
	finish(e, e->fd);
}

/* The count of unacknowledged bytes becomes 0 in the end. */
static void outq(struct end *e)
{
	int n = -1, r;

	put(e, e->fd, "0123456789");
	meet(e);
	do {
		r = ioctl(e->fd, SIOCOUTQ, &n);
	} while (!r && n);
	say(e, "%d %d", r, n);
	TRY(e, ioctl(e->fd, SIOCOUTQNSD, &n));
	say(e, "%d", n);
	meet(e);
}

static void outq_peer(struct end *e)
{
	show(e, e->fd, 10, MSG_WAITALL);
	meet(e);
	meet(e);
}

/* FIONREAD byte by byte, and at the end. */
static void inq(struct end *e)
{
	int n = -1;

	have(e, 10);
	for (int i = 0; i < 11; i++) {
		TRY(e, ioctl(e->fd, SIOCINQ, &n));
		say(e, "%d", n);
		show(e, e->fd, 1, MSG_DONTWAIT);
	}
	meet(e);
	ended(e, e->fd, POLLRDHUP);
	TRY(e, ioctl(e->fd, SIOCINQ, &n));
	say(e, "%d", n);
	show(e, e->fd, 1, 0);
	TRY(e, ioctl(e->fd, SIOCINQ, &n));
	say(e, "%d", n);
}

static void inq_peer(struct end *e)
{
	ten_peer(e);
	shutdown(e->fd, SHUT_WR);
}

/* The same on what is not connected. */
static void counters_elsewhere(struct end *e)
{
	int l = make_listener(e, 0), fd = MUST(e, socket(AF_INET, SOCK_STREAM, 0)), n = -1;

	TRY(e, ioctl(l, SIOCINQ, &n));
	TRY(e, ioctl(l, SIOCOUTQ, &n));
	TRY(e, ioctl(l, SIOCATMARK, &n));
	TRY(e, ioctl(fd, SIOCINQ, &n));
	say(e, "%d", n);
	TRY(e, ioctl(fd, SIOCOUTQ, &n));
	say(e, "%d", n);
	TRY(e, ioctl(fd, SIOCATMARK, &n));
	TRY(e, sockatmark(fd));
	TRY(e, ioctl(fd, 0x12345678, &n));
	TRY(e, ioctl(fd, TCGETS, &n));
	TRY(e, isatty(fd));
	close(fd);
	close(l);
}

/* The low-water mark holds back poll, epoll and recv alike. */
static void low_water(struct end *e)
{
	SET(e->fd, SOL_SOCKET, SO_RCVLOWAT, 6);
	have(e, 3);
	bits(e, "three", polled(e->fd, POLLIN, 0));
	show(e, e->fd, 10, MSG_DONTWAIT | MSG_PEEK);
	have(e, 6);
	bits(e, "six", polled(e->fd, POLLIN, -1));
	show(e, e->fd, 10, 0);
	meet(e);
	meet(e);
	ended(e, e->fd, POLLRDHUP);
	bits(e, "end", polled(e->fd, POLLIN, 0));
	show(e, e->fd, 10, 0);
	show(e, e->fd, 10, 0);
}

static void low_water_peer(struct end *e)
{
	meet(e);
	put(e, e->fd, "abc");
	meet(e);
	put(e, e->fd, "def");
	meet(e);
	put(e, e->fd, "x");
	shutdown(e->fd, SHUT_WR);
	meet(e);
}

/* Pushed by taking away what holds it back. */
static void cork_nodelay(struct end *e)
{
	SET(e->fd, IPPROTO_TCP, TCP_CORK, 1);
	GET(e->fd, IPPROTO_TCP, TCP_CORK);
	put(e, e->fd, "one");
	put(e, e->fd, "two");
	SET(e->fd, IPPROTO_TCP, TCP_CORK, 0);
	meet(e);
	SET(e->fd, IPPROTO_TCP, TCP_CORK, 1);
	put(e, e->fd, "three");
	SET(e->fd, IPPROTO_TCP, TCP_NODELAY, 1);
	GET(e->fd, IPPROTO_TCP, TCP_CORK);
	meet(e);
	put(e, e->fd, "four");
	shutdown(e->fd, SHUT_WR);
	meet(e);
}

static void cork_nodelay_peer(struct end *e)
{
	show(e, e->fd, 6, MSG_WAITALL);
	meet(e);
	show(e, e->fd, 5, MSG_WAITALL);
	meet(e);
	show(e, e->fd, 4, MSG_WAITALL);
	show(e, e->fd, 4, 0);
	meet(e);
}

/* Nothing changes by asking. */
static void informed(struct end *e)
{
	struct tcp_info i;
	socklen_t len = sizeof(i);
	char name[16] = "";

	TRY(e, getsockopt(e->fd, IPPROTO_TCP, TCP_INFO, &i, &len));
	say(e, "state %d, some %d", i.tcpi_state, len > 100);
	len = 10;
	TRY(e, getsockopt(e->fd, IPPROTO_TCP, TCP_INFO, &i, &len));
	say(e, "length %u", len);
	len = sizeof(name);
	TRY(e, getsockopt(e->fd, IPPROTO_TCP, TCP_CONGESTION, name, &len));
	say(e, "a name %d, length %u", *name != 0, len);
	GET(e->fd, SOL_SOCKET, SO_DOMAIN);
	GET(e->fd, SOL_SOCKET, SO_BROADCAST);
	GET(e->fd, SOL_SOCKET, SO_REUSEADDR);
	GET(e->fd, SOL_SOCKET, SO_PRIORITY);
	GET(e->fd, IPPROTO_IP, 1 /* IP_TOS */);
	GET(e->fd, IPPROTO_IP, 2 /* IP_TTL */);
	GET(e->fd, IPPROTO_TCP, TCP_DEFER_ACCEPT);
	GET(e->fd, IPPROTO_TCP, TCP_SYNCNT);
	ask(e, e->fd);
	finish(e, e->fd);
	len = sizeof(i);
	TRY(e, getsockopt(e->fd, IPPROTO_TCP, TCP_INFO, &i, &len));
}

/* Accepted only when something has been sent. */
static void deferred(struct end *e)
{
	int l = make_listener(e, 0), fd, got;

	SET(l, IPPROTO_TCP, TCP_DEFER_ACCEPT, 1);
	fd = dial(e);
	bits(e, "nothing sent", polled(l, POLLIN, settle()));
	put(e, fd, "now");
	ended(e, l, POLLIN);
	got = MUST(e, accept(l, NULL, NULL));
	show(e, got, 3, 0);
	put(e, got, "yes");
	show(e, fd, 3, MSG_WAITALL);
	close(fd);
	close(got);
	close(l);
}

/* The address is taken while somebody listens, and free again afterwards. */
static void reused(struct end *e)
{
	int l = make_listener(e, 0), other = MUST(e, socket(AF_INET, SOCK_STREAM, 0));

	TRY(e, bind(other, (struct sockaddr *)&e->addr, e->addrlen));
	SET(other, SOL_SOCKET, SO_REUSEADDR, 1);
	TRY(e, bind(other, (struct sockaddr *)&e->addr, e->addrlen));
	close(l);
	TRY(e, bind(other, (struct sockaddr *)&e->addr, e->addrlen));
	TRY(e, listen(other, 1));
	close(dial(e));
	TRY(e, close(accept(other, NULL, NULL)));
	close(other);
}

const struct test cases_tuning[] = {
	{"tuning_inherited", ALONE, inherited, NULL},
	{"tuning_buffers", 0, buffers, buffers_peer},
	{"tuning_refused", 0, refused, echo_peer},
	{"tuning_timeouts", 0, timeouts, echo_peer},
	{"tuning_outq", 0, outq, outq_peer},
	{"tuning_inq", 0, inq, inq_peer},
	{"tuning_counters_elsewhere", ALONE, counters_elsewhere, NULL},
	{"tuning_low_water", 0, low_water, low_water_peer},
	{"tuning_cork_nodelay", 0, cork_nodelay, cork_nodelay_peer},
	{"tuning_informed", 0, informed, echo_peer},
	{"tuning_deferred", ALONE, deferred, NULL},
	{"tuning_reused", ALONE, reused, NULL},
	{NULL, 0, NULL, NULL},
};
