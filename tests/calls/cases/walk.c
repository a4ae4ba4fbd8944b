/* SPDX-License-Identifier: MIT */
/*
 * Every socket option by number, switched off and on and given what is wrong: what the kernel answers, and whether the
 * connection stays on its link. It may leave the link for an option that is on and concerns the bytes, and for nothing
 * else. The transcript names the options that take it off the link by mistake, or fail to.
 */
#include "cases.h"
#include "tests/calls/carried.h"

#include <linux/filter.h>
#include <sys/time.h>

enum {
	BY_TCP = 1,	/* while it is on */
	SKIPS = 2,	/* not for this test: why is said beside it */
	UNEQUAL = 4,	/* what getsockopt() says is no constant */
	NO_FAR = 8,	/* no large value: the connection would not work with it */
	HOLDS = 16,	/* nothing is sent while it is on */
};

struct row {
	int level, name;
	unsigned flags;
	int on;	/* 0: 1 */
};

/* Options that are not like most. By number: the headers of some systems know fewer than the kernel. */
static const struct row rows[] = {
	{SOL_SOCKET, SO_RCVLOWAT, NO_FAR, 0},
	{SOL_SOCKET, SO_MAX_PACING_RATE, SKIPS, 0},	/* of a byte a second */
	{SOL_SOCKET, 62 /* SO_BINDTOIFINDEX */, NO_FAR, 0},
	{SOL_SOCKET, 73 /* SO_RESERVE_MEM */, NO_FAR, 0},
	{SOL_SOCKET, 37 /* SO_TIMESTAMPING */, BY_TCP, 0},
	{SOL_SOCKET, 65 /* SO_TIMESTAMPING_NEW */, BY_TCP, 0},
	{SOL_SOCKET, 42 /* SO_PEEK_OFF */, BY_TCP | UNEQUAL, 0},
	{IPPROTO_TCP, TCP_MAXSEG, UNEQUAL, 0},
	{IPPROTO_TCP, TCP_CORK, HOLDS, 0},
	{IPPROTO_TCP, TCP_WINDOW_CLAMP, UNEQUAL, 0},
	{IPPROTO_TCP, TCP_QUICKACK, UNEQUAL, 0},
	{IPPROTO_TCP, TCP_USER_TIMEOUT, 0, 60000},
	{IPPROTO_TCP, TCP_REPAIR, BY_TCP | HOLDS, 0},
	{IPPROTO_TCP, 37 /* TCP_TX_DELAY */, BY_TCP, 0},
	{IPPROTO_IP, 21 /* IP_MINTTL */, BY_TCP, 0},
	{IPPROTO_IPV6, 73 /* IPV6_MINHOPCOUNT */, BY_TCP, 0},
	{IPPROTO_IPV6, 64, SKIPS, 0},	/* tables of the packet filter, which the kernel would load for this */
	{IPPROTO_IPV6, 65, SKIPS, 0},
};

static struct row row_of(int level, int name)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].level == level && rows[i].name == name)
			return rows[i];
	return (struct row){level, name, 0, 0};
}

static int links;	/* connections of this process that have been on a link */

static void turn(struct end *e, int fd)
{
	char c = 'x';

	MUST(e, send(fd, &c, 1, 0) - 1);
	get(e, fd, &c, 1);
}

static int goes_by_tcp(struct end *e, int fd)
{
	uint64_t before = carried(fd);

	turn(e, fd);
	return carried(fd) != before;
}

/* Within the time that it has. */
static int comes_to_link(struct end *e, int fd)
{
	const char *link = getenv("TEST_LINK");
	double until = now() + (link ? atoi(link) : 0) / 1e3;
	int linked;

	do {
		linked = !goes_by_tcp(e, fd);
	} while (!linked && now() < until);
	links += linked;
	return linked;
}

/* Connected; and on a link, if there are links here and it comes to one in time. */
static int dial_linked(struct end *e, int *linked)
{
	int fd = dial(e);

	MUST(e, setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)));
	*linked = comes_to_link(e, fd);
	return fd;
}

static void expect(struct end *e, int fd, int *linked, const char *when, int by_tcp)
{
	if (!*linked)
		turn(e, fd);
	else if (goes_by_tcp(e, fd) != by_tcp)
		say(e, "%s: it %s", when, by_tcp ? "is on the link" : "has left the link");
	*linked = *linked && !by_tcp;
}

static int try(struct end *e, int fd, const struct row *r, const char *what, const void *value,
	       socklen_t length)
{
	char line[40];
	int got = 0, set;

	snprintf(line, sizeof(line), "level %d option %d %s", r->level, r->name, what);
	set = setsockopt(fd, r->level, r->name, value, length);
	result(e, line, set);
	length = sizeof(got);
	if (!set && !(r->flags & UNEQUAL) && !getsockopt(fd, r->level, r->name, &got, &length))
		say(e, "is %d, length %u", got, length);
	return !set;
}

/* Each value with its traffic: a link that was left for nothing shows at once. */
static void one_option(struct end *e, struct row r)
{
	int off = r.level == SOL_SOCKET && r.name == 42 ? -1 : 0, on = r.on ? r.on : 1;
	int far = 1 << 30, linked, taken;
	int fd = dial_linked(e, &linked);

	try(e, fd, &r, "off", &off, sizeof(off));
	expect(e, fd, &linked, "off", 0);
	try(e, fd, &r, "of a byte", &off, 1);
	try(e, fd, &r, "of none", &off, 0);
	try(e, fd, &r, "nowhere", (void *)hidden(0), sizeof(off));
	expect(e, fd, &linked, "wrong", 0);
	taken = !(r.flags & NO_FAR) && try(e, fd, &r, "far", &far, sizeof(far));
	if (!(r.flags & HOLDS))
		expect(e, fd, &linked, "far", taken && r.flags & BY_TCP);
	taken |= try(e, fd, &r, "on", &on, sizeof(on));
	if (r.flags & HOLDS)
		try(e, fd, &r, "off", &off, sizeof(off));
	expect(e, fd, &linked, "on", taken && r.flags & BY_TCP);
	close(fd);
}

static void walk(struct end *e, int level, int last)
{
	for (int name = 0; name <= last; name++)
		if (!(row_of(level, name).flags & SKIPS))
			one_option(e, row_of(level, name));
	if (getenv("TEST_LINK") && *getenv("TEST_LINK") && !links)
		say(e, "FAILED: no connection has come to a link");
	tell(e);
}

static void of_sockets(struct end *e)
{
	walk(e, SOL_SOCKET, 90);
}

static void of_tcp(struct end *e)
{
	walk(e, IPPROTO_TCP, 50);
}

/* From 64 on they are tables of the packet filter. */
static void of_ip(struct end *e)
{
	walk(e, IPPROTO_IP, 63);
}

static void of_ipv6(struct end *e)
{
	walk(e, IPPROTO_IPV6, 80);
}

/* Echoes on one connection after the other, until the other end has had enough. */
static void walk_peer(struct end *e)
{
	struct pollfd p[2] = {{.fd = e->lfd, .events = POLLIN}, {.fd = e->ctl, .events = POLLIN}};
	char c;

	for (;;) {
		int fd;

		MUST(e, poll(p, 2, -1));
		if (!(p[0].revents & POLLIN)) {
			await(e);
			return;
		}
		fd = pick_up(e);
		MUST(e, setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)));
		while (recv(fd, &c, 1, 0) == 1)
			MUST(e, send(fd, &c, 1, MSG_NOSIGNAL) - 1);
		close(fd);
	}
}

/* Options whose value is no int. */
static void filtered(struct end *e)
{
	struct sock_filter all = { BPF_RET | BPF_K, 0, 0, 0xffffffff };
	struct sock_fprog good = { 1, &all }, bad = { 0, &all };
	int linked, fd = dial_linked(e, &linked), n = 0;

	TRY(e, setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &n, sizeof(n)));
	TRY(e, setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &bad, sizeof(bad)));
	expect(e, fd, &linked, "no filter", 0);
	TRY(e, setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &good, sizeof(good)));
	expect(e, fd, &linked, "filter", 1);
	TRY(e, setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &n, sizeof(n)));
	turn(e, fd);
	close(fd);
	tell(e);
}

static void other_protocols(struct end *e)
{
	int linked, fd = dial_linked(e, &linked);

	TRY(e, setsockopt(fd, IPPROTO_TCP, TCP_ULP, "no such", 7));
	TRY(e, setsockopt(fd, 282 /* SOL_TLS */, 1, "nothing", 7));
	TRY(e, setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "no such", 7));
	expect(e, fd, &linked, "no such protocol", 0);
	close(fd);
	tell(e);
}

/* The kernel's structures with 64-bit times: SO_RCVTIMEO_NEW is 66, SO_SNDTIMEO_NEW 67. */
static void wide_times(struct end *e)
{
	int64_t short_while[2] = {0, 20000}, for_ever[2] = {0, 0}, none[2] = {-1, 0};
	int linked, fd = dial_linked(e, &linked);

	TRY(e, setsockopt(fd, SOL_SOCKET, 66, for_ever, sizeof(for_ever)));
	turn(e, fd);
	TRY(e, setsockopt(fd, SOL_SOCKET, 66, short_while, sizeof(short_while)));
	show(e, fd, 1, 0);
	TRY(e, setsockopt(fd, SOL_SOCKET, 66, none, sizeof(none)));
	show(e, fd, 1, 0);
	TRY(e, setsockopt(fd, SOL_SOCKET, 66, for_ever, sizeof(for_ever)));
	TRY(e, setsockopt(fd, SOL_SOCKET, 67, short_while, sizeof(short_while)));
	expect(e, fd, &linked, "times", 0);
	close(fd);
	tell(e);
}

/* Each send, by the kernel's clock (SO_TIMESTAMPING): a byte on a link is none to the kernel. */
static void ask_for_times(struct end *e, int fd)
{
	TRY(e, setsockopt(fd, SOL_SOCKET, 37, &(int){2}, sizeof(int)));
}

static void show_times(struct end *e, int fd, int tcp)
{
	char c;

	say(e, "%s", tcp ? "by TCP" : "on a link");
	TRY(e, recv(fd, &c, 1, MSG_ERRQUEUE | MSG_DONTWAIT));
}

static void before(struct end *e)
{
	int fd = MUST(e, socket(AF_INET, SOCK_STREAM, 0)), tcp = 1;

	ask_for_times(e, fd);
	MUST(e, connect(fd, (struct sockaddr *)&e->addr, e->addrlen));
	for (int i = 0; i < 300; i++)
		tcp &= goes_by_tcp(e, fd);
	show_times(e, fd, tcp);
	close(fd);
	tell(e);
}

static void inherited(struct end *e)
{
	int l = make_listener(e, 0), fd, got, tcp = 1;
	char c;

	ask_for_times(e, l);
	fd = dial(e);
	got = MUST(e, accept(l, NULL, NULL));
	for (int i = 0; i < 300; i++) {
		uint64_t so_far = carried(fd);

		put(e, fd, "x");
		get(e, got, &c, 1);
		put(e, got, "y");
		get(e, fd, &c, 1);
		tcp &= carried(fd) != so_far;
	}
	show_times(e, got, tcp);
	close(fd);
	close(got);
	close(l);
}

static long send_opens(struct end *e, int fd, const char *what, int by_message, int flags)
{
	struct iovec v = piece(what, strlen(what));
	struct msghdr m = {
		.msg_name = &e->addr, .msg_namelen = e->addrlen, .msg_iov = &v, .msg_iovlen = 1
	};

	if (by_message)
		return TRY(e, sendmsg(fd, &m, flags | MSG_FASTOPEN));
	return TRY(e, sendto(fd, v.iov_base, v.iov_len, flags | MSG_FASTOPEN,
			     (struct sockaddr *)&e->addr, e->addrlen));
}

/* A connection that its first bytes open; with `early` they are in the SYN. It comes to a link like any other. */
static void fast_open(struct end *e, int by_message, int early, int waits)
{
	int fd = MUST(e, socket(AF_INET, SOCK_STREAM | (waits ? 0 : SOCK_NONBLOCK), 0));
	char back[8] = "";
	long sent, more;

	MUST(e, setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int) { 1 }, sizeof(int)));
	TRY(e, setsockopt(fd, IPPROTO_TCP, 34 /* TCP_FASTOPEN_NO_COOKIE */, &early, sizeof(early)));
	sent = send_opens(e, fd, "abc", by_message, 0);
	ended(e, fd, POLLOUT);
	more = send_opens(e, fd, "de", !by_message, MSG_DONTWAIT);	/* the kernel learns here that it is connected */
	nonblock(e, fd, 0);
	get(e, fd, back, (size_t)((sent > 0 ? sent : 0) + (more > 0 ? more : 0)));
	say(e, "%s", back);
	if (getenv("TEST_LINK") && *getenv("TEST_LINK") && !comes_to_link(e, fd))
		say(e, "by TCP");
	send_opens(e, fd, "no", by_message, 0);
	turn(e, fd);
	close(fd);
}

static void fast_opened(struct end *e)
{
	struct sockaddr_storage served = e->addr;
	int fd;

	for (int i = 0; i < 8; i++)
		fast_open(e, i & 1, i >> 1 & 1, i >> 2 & 1);
	fd = MUST(e, socket(AF_INET, SOCK_STREAM, 0));
	TRY(e, send(fd, "x", 1, MSG_FASTOPEN));
	((struct sockaddr_in *)&e->addr)->sin_port = htons(1); /* nobody listens there */
	count_sigpipe(e);
	send_opens(e, fd, "x", 0, 0);
	TRY(e, send(fd, "x", 1, 0));
	say(e, "%d", sigpipes());
	e->addr = served;
	send_opens(e, fd, "x", 1, 0);
	turn(e, fd);
	close(fd);
	tell(e);
}

/* Taken out by getsockopt(). */
static void taken_out(struct end *e)
{
	static char got[4096] __attribute__((aligned(4096)));
	struct {
		uint64_t address;
		uint32_t length, skip, inq;
		int32_t err;
		uint64_t copy;
		int32_t copied;
		uint32_t flags;
	} ask = {.copy = (uintptr_t)got, .copied = sizeof(got)};
	socklen_t length = sizeof(ask);

	have(e, 10);
	TRY(e, getsockopt(e->fd, IPPROTO_TCP, 35 /* TCP_ZEROCOPY_RECEIVE */, &ask, &length));
	text(e, "copied", got, ask.copied);
	meet(e);
	show(e, e->fd, 10, 0);
	shutdown(e->fd, SHUT_WR);
}

static void taken_out_peer(struct end *e)
{
	ten_peer(e);
	put(e, e->fd, "and more");
	drain(e, e->fd);
}

#define WALK(name, walks) { "walk_" #name, RAW | NOFLIP, walks, walk_peer }

const struct test cases_walk[] = {
	WALK(socket, of_sockets),
	WALK(tcp, of_tcp),
	WALK(ip, of_ip),
	{ "walk_ipv6", RAW | IPV6 | NOFLIP, of_ipv6, walk_peer },
	WALK(filtered, filtered),
	WALK(other_protocols, other_protocols),
	WALK(wide_times, wide_times),
	WALK(before, before),
	{ "walk_inherited", ALONE | NOFLIP, inherited, NULL },
	WALK(fast_opened, fast_opened),
	{ "walk_taken_out", 0, taken_out, taken_out_peer },
	{ NULL, 0, NULL, NULL },
};
