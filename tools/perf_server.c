/* SPDX-License-Identifier: MIT */
/* The accepting end: one thread, one epoll set, all connections. */
#include "tools/perf_talk.h"

#include <arpa/inet.h>
#include <errno.h>
#include <jansson.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/bench.h"
#include "tools/shunt.h"

#define EVENTS 64

struct conn {
	int fd;
	uint32_t events;		/* what epoll watches it for */
	struct perf_greeting greeting;
	size_t greeted;			/* bytes of the greeting that have come */
	uint32_t skipped;		/* bytes after it */
	bool talks; /* the greeting has been taken */
	struct perf_talk talk;
	bool ended;			/* the client has shut its direction down */
	struct perf_account account; /* as it is sent */
	size_t said; /* bytes of it that have been sent */
};

static struct {
	int epoll, listener;
	uint64_t wanted, finished;	/* connections */
	uint64_t requests, bytes;
	bool begun;
	struct perf_usage before;	/* when the first connection came */
	uint8_t buffer[PERF_CHUNK_MAX];
} server;

static int listen_loopback(uint16_t *port)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) ||
	    listen(fd, PERF_CONNS_MAX) || getsockname(fd, (struct sockaddr *)&address, &length))
		perf_end_fail(PERF_END_FAILED, "cannot listen on 127.0.0.1: %m");
	*port = ntohs(address.sin_port);
	return fd;
}

static void watch(int op, int fd, uint32_t events, void *of)
{
	struct epoll_event event = { .events = events, .data.ptr = of };

	if (epoll_ctl(server.epoll, op, fd, &event))
		perf_end_fail(PERF_END_FAILED, "epoll_ctl: %m");
}

static void want(struct conn *conn, uint32_t events)
{
	if (conn->events != events)
		watch(EPOLL_CTL_MOD, conn->fd, events, conn);
	conn->events = events;
}

static void take_connection(void)
{
	struct sockaddr_in peer;
	socklen_t length = sizeof(peer);
	int on = 1, fd = accept4(server.listener, (struct sockaddr *)&peer, &length,
				 SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct conn *conn;

	if (fd < 0) {
		if (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR)
			return;
		perf_end_fail(PERF_END_FAILED, "accept: %m");
	}
	if (!server.begun)
		server.before = perf_usage_now();
	server.begun = true;
	conn = calloc(1, sizeof(*conn));
	if (!conn)
		perf_end_fail(PERF_END_FAILED, "out of memory");
	conn->fd = fd;
	conn->events = EPOLLIN;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	watch(EPOLL_CTL_ADD, fd, EPOLLIN, conn);
}

static void drop(struct conn *conn)
{
	close(conn->fd);
	perf_talk_free(&conn->talk);
	free(conn);
}

/* ---- the greeting ---- */

/* Also the bytes that are skipped after it. Whether the connection may go on; not for a stranger. */
static bool take_greeting(struct conn *conn)
{
	size_t missing = sizeof(conn->greeting) - conn->greeted;
	ssize_t got;

	if (!missing) {
		missing = conn->greeting.skip - conn->skipped;
		got = recv(conn->fd, server.buffer,
			   missing < sizeof(server.buffer) ? missing : sizeof(server.buffer), 0);
		conn->skipped += got > 0 ? (uint32_t)got : 0;
	} else {
		got = recv(conn->fd, (uint8_t *)&conn->greeting + conn->greeted, missing, 0);
		conn->greeted += got > 0 ? (size_t)got : 0;
		if (conn->greeted == sizeof(conn->greeting) &&
		    !perf_greeting_valid(&conn->greeting))
			return false;
	}
	return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

/* Whether requests are next. */
static bool is_greeted(struct conn *conn)
{
	const struct perf_greeting *greeting = &conn->greeting;
	uint32_t request = greeting->sizes.request, reply = greeting->sizes.reply;

	if (conn->talks)
		return true;
	if (conn->greeted < sizeof(*greeting) || conn->skipped < greeting->skip)
		return false;
	if (perf_pattern_make(request > reply ? request : reply) ||
	    perf_talk_init(&conn->talk, PERF_AT_SERVER, greeting))
		perf_end_fail(PERF_END_FAILED, "out of memory");
	conn->talks = true;
	return true;
}

/* ---- requests and replies ---- */

/* Whether all that is owed has gone out. A reply is one send. */
static bool reply(struct conn *conn)
{
	struct perf_talk *talk = &conn->talk;

	while (perf_talk_sends(talk) || (talk->sizes.reply && talk->sent < talk->received)) {
		int rc;

		if (!perf_talk_sends(talk))
			perf_talk_begin(talk);
		rc = perf_talk_send(talk, conn->fd);
		if (rc == -EAGAIN)
			return false;
		if (rc)
			perf_end_fail(PERF_END_PEER, "connection %u: send: %s", talk->index,
				      strerror(-rc));
	}
	return true;
}

static void make_account(struct conn *conn)
{
	struct perf_usage now = perf_usage_now();

	conn->account = conn->talk.account;
	conn->account.requests = conn->talk.received;
	conn->account.cpu_ns = (uint64_t)((now.cpu - server.before.cpu) * 1e9);
	conn->account.switches = (uint64_t)(now.switches - server.before.switches);
}

/* Whether the connection is done with. */
static bool say_account(struct conn *conn)
{
	if (!conn->said)
		make_account(conn);
	while (conn->said < sizeof(conn->account)) {
		ssize_t sent = send(conn->fd, (uint8_t *)&conn->account + conn->said,
				    sizeof(conn->account) - conn->said, MSG_NOSIGNAL);

		if (sent < 0 && errno == EAGAIN)
			return false;
		if (sent < 0 && errno != EINTR)
			perf_end_fail(PERF_END_PEER, "connection %u: send: %m", conn->talk.index);
		if (sent > 0)
			conn->said += (size_t)sent;
	}
	return true;
}

static void take_requests(struct conn *conn)
{
	struct perf_talk *talk = &conn->talk;
	ssize_t got = perf_talk_receive(talk, conn->fd, server.buffer, sizeof(server.buffer));

	if (got == -EAGAIN || got == -EINTR)
		return;
	if (got == -EBADMSG)
		perf_end_fail(PERF_END_FAILED, "connection %u: %s", talk->index, talk->why);
	if (got < 0)
		perf_end_fail(PERF_END_PEER, "connection %u: recv: %s", talk->index,
			      strerror(-(int)got));
	if (!got && !perf_talk_between(talk))
		perf_end_fail(PERF_END_PEER, "connection %u ended inside request %llu", talk->index,
			      (unsigned long long)talk->received + 1);
	conn->ended = !got;
}

static void finish(struct conn *conn)
{
	server.finished++;
	server.requests += conn->talk.received;
	server.bytes += conn->talk.rx;
	drop(conn);
}

/* While replies do not get out, no more requests are taken in. */
static void serve(struct conn *conn, uint32_t events)
{
	bool readable = (events & ~(uint32_t)EPOLLOUT) && (conn->events & EPOLLIN);

	if (readable && !is_greeted(conn)) {
		if (!take_greeting(conn)) {
			drop(conn);
			return;
		}
		readable = false;
	}
	if (!is_greeted(conn))
		return;
	if (readable)
		take_requests(conn);
	if (!reply(conn) || (conn->ended && !say_account(conn)))
		want(conn, EPOLLOUT);
	else if (conn->ended)
		finish(conn);
	else
		want(conn, EPOLLIN);
}

static void say_ready(uint16_t port)
{
	char text[16];
	int length = snprintf(text, sizeof(text), "%u\n", port);

	if (write(SHUNT_CHILD_FD, text, (size_t)length) != length)
		perf_end_fail(PERF_END_FAILED, "cannot say which port it is: %m");
	close(SHUNT_CHILD_FD);
}

static void report(void)
{
	struct perf_usage after = perf_usage_now();
	json_t *root = json_pack("{s:I, s:I, s:f, s:f}", "operations", (json_int_t)server.requests,
				 "bytes", (json_int_t)server.bytes, "cpu",
				 after.cpu - server.before.cpu, "switches",
				 after.switches - server.before.switches);

	if (!root || json_dumpf(root, stdout, JSON_COMPACT) || putchar('\n') < 0 || fflush(stdout))
		perf_end_fail(PERF_END_FAILED, "cannot write the result: %m");
	json_decref(root);
}

/* server CONNECTIONS: serves as many, then says what it had. */
int perf_server(int argc, char **argv)
{
	struct epoll_event events[EVENTS];
	uint16_t port;
	int count;

	if (argc != 2 || perf_number(argv[1], 1, PERF_CONNS_MAX, &server.wanted))
		return EXIT_USAGE;
	server.listener = listen_loopback(&port);
	server.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (server.epoll < 0)
		perf_end_fail(PERF_END_FAILED, "epoll_create1: %m");
	watch(EPOLL_CTL_ADD, server.listener, EPOLLIN, NULL);
	say_ready(port);
	while (server.finished < server.wanted) {
		count = epoll_wait(server.epoll, events, EVENTS, -1);
		if (count < 0 && errno != EINTR)
			perf_end_fail(PERF_END_FAILED, "epoll_wait: %m");
		for (int i = 0; i < count; i++) {
			if (events[i].data.ptr)
				serve(events[i].data.ptr, events[i].events);
			else
				take_connection();
		}
	}
	report();
	close(server.epoll);
	close(server.listener);
	return 0;
}
