/* SPDX-License-Identifier: MIT */
/* Connections: how they are made, warmed up and used. */
#include "cases.h"
#include "tests/calls/carried.h"

int make_listener(struct end *e, int flags)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	int family = flags & (DUAL | IPV6) ? AF_INET6 : AF_INET;
	int fd = MUST(e, socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
	int zero = 0;

	v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (family == AF_INET) {
		MUST(e, bind(fd, (struct sockaddr *)&v4, sizeof(v4)));
	} else {
		if (flags & DUAL)
			v6.sin6_addr = in6addr_any;
		MUST(e, setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero)));
		MUST(e, bind(fd, (struct sockaddr *)&v6, sizeof(v6)));
	}
	MUST(e, listen(fd, 512));
	e->addrlen = sizeof(e->addr);
	MUST(e, getsockname(fd, (struct sockaddr *)&e->addr, &e->addrlen));
	if (flags & DUAL) {
		v4.sin_port = ((struct sockaddr_in6 *)&e->addr)->sin6_port;
		memcpy(&e->addr, &v4, sizeof(v4));
		e->addrlen = sizeof(v4);
	}
	return fd;
}

int dial(struct end *e)
{
	int fd = MUST(e, socket(e->addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));

	MUST(e, connect(fd, (struct sockaddr *)&e->addr, e->addrlen));
	return fd;
}

int pick_up(struct end *e)
{
	return MUST(e, accept4(e->lfd, NULL, NULL, SOCK_CLOEXEC));
}

int dial_warm(struct end *e)
{
	int fd = dial(e);

	warm(e, fd);
	return fd;
}

int pick_up_warm(struct end *e)
{
	int fd = pick_up(e);

	warm(e, fd);
	return fd;
}

/* The client asks and the server answers until the client has had enough and says so. */
void warm(struct end *e, int fd)
{
	const char *ms = getenv("TEST_WARM"), *link = getenv("TEST_LINK");
	double begun = now();
	uint64_t before = 0;
	char c = 0;

	if (!ms || atoi(ms) <= 0)
		return;
	while (c != 'd') {
		if (e->client) {
			c = now() < begun + atoi(ms) / 1e3 ||
			    (link && *link && now() < begun + atoi(link) / 1e3 && before != carried(fd)) ? 'w' : 'd';
			before = carried(fd);
			MUST(e, send(fd, &c, 1, 0) - 1);
		}
		get(e, fd, &c, 1);
		if (!e->client)
			MUST(e, send(fd, &c, 1, 0) - 1);
	}
}

void put(struct end *e, int fd, const char *s)
{
	size_t len = strlen(s);

	for (size_t n = 0; n < len;)
		n += MUST(e, send(fd, s + n, len - n, MSG_NOSIGNAL));
}

void get(struct end *e, int fd, void *buf, size_t len)
{
	for (size_t n = 0; n < len;) {
		ssize_t r = MUST(e, recv(fd, (char *)buf + n, len - n, 0));

		if (!r) {
			say(e, "FAILED: the stream ended %zu bytes early", len - n);
			exit(3);
		}
		n += r;
	}
}

void show(struct end *e, int fd, size_t len, int flags)
{
	char buf[4096];
	char what[40];

	snprintf(what, sizeof(what), "recv %zu%s%s%s", len, flags & MSG_PEEK ? " PEEK" : "",
		 flags & MSG_WAITALL ? " WAITALL" : "", flags & MSG_DONTWAIT ? " DONTWAIT" : "");
	text(e, what, buf, recv(fd, buf, len, flags));
}

void drain(struct end *e, int fd)
{
	char buf[4096];
	size_t sum = 0;
	ssize_t r;

	while ((r = recv(fd, buf, sizeof(buf), 0)) > 0)
		sum += r;
	say(e, "drained %zu bytes", sum);
	result(e, "then recv", r);
}

void nonblock(struct end *e, int fd, int on)
{
	int flags = MUST(e, fcntl(fd, F_GETFL));

	MUST(e, fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK));
}

void reset_on_close(struct end *e, int fd)
{
	struct linger l = {.l_onoff = 1, .l_linger = 0};

	MUST(e, setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l)));
}
