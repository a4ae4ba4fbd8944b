/* SPDX-License-Identifier: MIT */
/* The accepting end: one thread, one epoll set, all connections. */
#include "tools/perf_end.h"

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
#define BUFFER (256 << 10)

struct conn {
	int fd;
	uint32_t events;		/* what epoll watches it for */
	struct perf_greeting greeting;
	size_t greeted;			/* bytes of the greeting that have come */
	uint32_t skipped;		/* bytes after it */
	uint64_t rx, tx;		/* bytes of the two sequences */
	uint64_t requests;
	uint64_t owed;			/* replies not begun yet */
	uint32_t replied;		/* bytes of the reply under way */
	bool ended;			/* the client has shut its direction down */
	size_t said;			/* bytes of the final count that have been sent */
};

static struct {
	int epoll, listener;
	uint64_t wanted, finished;	/* connections */
	uint64_t requests, bytes;
	bool begun;
	struct perf_usage before;	/* when the first connection came */
	uint8_t buffer[BUFFER];
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
	free(conn);
}

static bool is_greeting(const struct perf_greeting *greeting)
{
	return !memcmp(greeting->magic, PERF_MAGIC, sizeof(greeting->magic)) &&
	       greeting->request >= 1 && greeting->request <= PERF_MESSAGE_MAX &&
	       greeting->reply <= PERF_MESSAGE_MAX && greeting->skip <= PERF_MESSAGE_MAX &&
	       greeting->index < PERF_CONNS_MAX;
}

/* How many of the bytes lie before the first request. */
static size_t skip_bytes(struct conn *conn, size_t count)
{
	size_t missing = conn->greeting.skip - conn->skipped;

	if (count > missing)
		count = missing;
	conn->skipped += (uint32_t)count;
	return count;
}

/* How many of the bytes were of the greeting; -1 for a stranger. */
static ssize_t greet(struct conn *conn, const uint8_t *bytes, size_t count)
{
	size_t missing = sizeof(conn->greeting) - conn->greeted;

	if (count > missing)
		count = missing;
	memcpy((uint8_t *)&conn->greeting + conn->greeted, bytes, count);
	conn->greeted += count;
	if (conn->greeted == sizeof(conn->greeting) && !is_greeting(&conn->greeting))
		return -1;
	return (ssize_t)count;
}

static void take_requests(struct conn *conn, const uint8_t *bytes, size_t count)
{
	uint64_t requests;

	perf_pattern_check(conn->greeting.index, PERF_REQUESTS, conn->rx, bytes, count);
	conn->rx += count;
	requests = conn->rx / conn->greeting.request - conn->requests;
	conn->requests += requests;
	if (conn->greeting.reply)
		conn->owed += requests;
}

/* Whether all that is owed has gone out. A reply is one send. */
static bool reply(struct conn *conn)
{
	while (conn->owed) {
		ssize_t sent = send(conn->fd, perf_pattern(conn->greeting.index, PERF_REPLIES, conn->tx),
				    conn->greeting.reply - conn->replied, MSG_NOSIGNAL);

		if (sent < 0) {
			if (errno == EINTR)
				continue;
			if (errno == EAGAIN)
				return false;
			perf_end_fail(PERF_END_PEER, "connection %u: send: %m", conn->greeting.index);
		}
		conn->tx += (uint64_t)sent;
		conn->replied += (uint32_t)sent;
		if (conn->replied == conn->greeting.reply) {
			conn->replied = 0;
			conn->owed--;
		}
	}
	return true;
}

/* Whether the connection is done with. */
static bool say_count(struct conn *conn)
{
	while (conn->said < sizeof(conn->requests)) {
		ssize_t sent = send(conn->fd, (uint8_t *)&conn->requests + conn->said,
				    sizeof(conn->requests) - conn->said, MSG_NOSIGNAL);

		if (sent < 0 && errno == EAGAIN)
			return false;
		if (sent < 0 && errno != EINTR)
			perf_end_fail(PERF_END_PEER, "connection %u: send: %m", conn->greeting.index);
		if (sent > 0)
			conn->said += (size_t)sent;
	}
	return true;
}

/* Whether the connection may go on. */
static bool take_bytes(struct conn *conn)
{
	ssize_t got = recv(conn->fd, server.buffer, sizeof(server.buffer), 0), skip = 0;

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (conn->greeted < sizeof(conn->greeting)) {
		if (got <= 0)
			return false;
		skip = greet(conn, server.buffer, (size_t)got);
		if (skip < 0)
			return false;
	}
	if (got > skip)
		skip += (ssize_t)skip_bytes(conn, (size_t)(got - skip));
	if (got < 0)
		perf_end_fail(PERF_END_PEER, "connection %u: recv: %m", conn->greeting.index);
	if (got > skip)
		take_requests(conn, server.buffer + skip, (size_t)(got - skip));
	if (got == 0 && conn->rx % conn->greeting.request)
		perf_end_fail(PERF_END_PEER, "connection %u ended inside request %llu",
			      conn->greeting.index, (unsigned long long)conn->requests + 1);
	conn->ended = got == 0;
	return true;
}

static void finish(struct conn *conn)
{
	server.finished++;
	server.requests += conn->requests;
	server.bytes += conn->rx;
	drop(conn);
}

/* While replies do not get out, no more requests are taken in. */
static void serve(struct conn *conn, uint32_t events)
{
	if ((events & ~(uint32_t)EPOLLOUT) && (conn->events & EPOLLIN) && !take_bytes(conn)) {
		drop(conn);
		return;
	}
	if (!reply(conn) || (conn->ended && !say_count(conn)))
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
