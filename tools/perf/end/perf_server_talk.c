/* SPDX-License-Identifier: MIT */
/* One connection at the accepting end: its greeting, its requests and replies, and its account. */
#include "tools/perf/end/perf_server.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define OPEN_MEMORY (2ULL << 30) /* bytes of an open server's buffers, where caches are not larger */
#define TURN (16 << 20) /* bytes of replies before the others' turn */
#define LINES 16 /* about clients, in a minute */
#define MINUTE 60000000000ULL /* ns */

void perf_server_watch(struct perf_server *server, int op, int fd, uint32_t events, void *of)
{
	struct epoll_event event = { .events = events, .data.ptr = of };

	if (epoll_ctl(server->epoll, op, fd, &event))
		perf_end_fail(PERF_END_FAILED, "epoll_ctl: %m");
}

static void want(struct perf_server_conn *conn, uint32_t events)
{
	if (conn->events != events)
		perf_server_watch(conn->server, EPOLL_CTL_MOD, conn->fd, events, conn);
	conn->events = events;
}

void perf_server_tell(struct perf_server *server, const char *what, const char *why)
{
	uint64_t now = perf_now();

	if (!server->lines_since || now - server->lines_since >= MINUTE) {
		if (server->unsaid)
			fprintf(stderr, "shunt perf: %u more connections were dropped or refused\n",
				server->unsaid);
		server->lines_since = now;
		server->lines = server->unsaid = 0;
	}
	if (server->lines == LINES) {
		server->unsaid++;
		return;
	}
	server->lines++;
	fprintf(stderr, "shunt perf: %s: %s%s\n", what, why,
		server->lines == LINES ? "; no more such lines for a minute" : "");
}

/* Ends the run, or the connection where there are others'. */
void perf_server_give_up(struct perf_server_conn *conn, int status, const char *format, ...)
{
	char why[256];
	va_list args;

	va_start(args, format);
	vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	if (!conn->server->open)
		perf_end_fail(status, "connection %u: %s", conn->greeting.index, why);
	perf_server_tell(conn->server, "a connection was dropped", why);
	conn->lost = true;
}

/* ---- the greeting ---- */

/* The answer fits into any socket's buffer. */
static void say_hello(struct perf_server_conn *conn)
{
	if (send(conn->fd, &conn->server->hello, sizeof(conn->server->hello), MSG_NOSIGNAL) < 0)
		perf_server_give_up(conn, PERF_END_PEER, "send: %m");
}

/* Room for one client whose buffers are cold, however large the caches are, and for others. */
static uint64_t most_memory(void)
{
	uint64_t cold = 4ULL * perf_buffers_fresh();

	return cold > OPEN_MEMORY ? cold : OPEN_MEMORY;
}

static bool is_welcome(struct perf_server_conn *conn)
{
	struct perf_greeting *greeting = &conn->greeting;

	if (conn->server->open && conn->server->hello.shunt_port &&
	    !memcmp(greeting->magic, PERF_MAGIC_HELLO, sizeof(greeting->magic))) {
		say_hello(conn);
		return false;
	}
	if (!perf_greeting_valid(greeting)) {
		if (conn->server->open)
			perf_server_give_up(conn, PERF_END_PEER, "it is no client of this version");
		return false;
	}
	conn->memory = perf_talk_memory(greeting);
	conn->server->memory += conn->memory;
	if (conn->server->open && conn->server->memory > most_memory()) {
		perf_server_give_up(conn, PERF_END_PEER,
				    "the buffers of all would be larger than %llu MiB",
				    (unsigned long long)most_memory() >> 20);
		return false;
	}
	return true;
}

/* Also the bytes that are skipped after it. Whether the connection may go on; not for a stranger. */
static bool take_greeting(struct perf_server_conn *conn)
{
	size_t missing = sizeof(conn->greeting) - conn->greeted;
	ssize_t got;

	if (!missing) {
		missing = conn->greeting.skip - conn->skipped;
		got = recv(conn->fd, conn->server->buffer,
			   missing < sizeof(conn->server->buffer) ? missing :
								    sizeof(conn->server->buffer),
			   0);
		conn->skipped += got > 0 ? (uint32_t)got : 0;
	} else {
		got = recv(conn->fd, (uint8_t *)&conn->greeting + conn->greeted, missing, 0);
		conn->greeted += got > 0 ? (size_t)got : 0;
		if (conn->greeted == sizeof(conn->greeting) && !is_welcome(conn))
			return false;
	}
	return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

/* Whether requests are next. */
static bool is_greeted(struct perf_server_conn *conn)
{
	const struct perf_greeting *greeting = &conn->greeting;
	uint32_t request = greeting->sizes.request, reply = greeting->sizes.reply;
	const char ready = PERF_READY;

	if (conn->talks)
		return true;
	if (conn->greeted < sizeof(*greeting) || conn->skipped < greeting->skip)
		return false;
	if (perf_pattern_make(request > reply ? request : reply) ||
	    perf_talk_init(&conn->talk, PERF_AT_SERVER, greeting)) {
		perf_server_give_up(conn, PERF_END_FAILED, "out of memory");
		return false;
	}
	conn->talks = true;
	if (perf_greeting_waits(greeting) &&
	    send(conn->fd, &ready, sizeof(ready), MSG_NOSIGNAL) < 0)
		perf_server_give_up(conn, PERF_END_PEER, "send: %m");
	return true;
}

/* ---- requests and replies ---- */

/* Whether all that is owed has gone out. A reply is one send. */
static bool reply(struct perf_server_conn *conn)
{
	struct perf_talk *talk = &conn->talk;
	uint64_t turn = talk->tx + TURN;

	while (perf_talk_sends(talk) || (talk->sizes.reply && talk->sent < talk->received)) {
		int rc;

		if (!perf_talk_sends(talk))
			perf_talk_begin(talk);
		rc = perf_talk_send(talk, conn->fd);
		if (rc == -EAGAIN)
			return false;
		if (rc)
			perf_server_give_up(conn, PERF_END_PEER, "send: %s", strerror(-rc));
		if (rc || (conn->server->open && talk->tx >= turn))
			return false;
	}
	return true;
}

static void make_account(struct perf_server_conn *conn)
{
	struct perf_usage now = perf_usage_now();

	conn->account = conn->talk.account;
	conn->account.requests = conn->talk.received;
	conn->account.cpu_ns = (uint64_t)((now.cpu - conn->server->before.cpu) * 1e9);
	conn->account.switches = (uint64_t)(now.switches - conn->server->before.switches);
}

/* Whether the connection is done with. */
static bool say_account(struct perf_server_conn *conn)
{
	if (!conn->said)
		make_account(conn);
	while (conn->said < sizeof(conn->account)) {
		ssize_t sent = send(conn->fd, (uint8_t *)&conn->account + conn->said,
				    sizeof(conn->account) - conn->said, MSG_NOSIGNAL);

		if (sent < 0 && errno == EAGAIN)
			return false;
		if (sent < 0 && errno != EINTR)
			perf_server_give_up(conn, PERF_END_PEER, "send: %m");
		if (conn->lost)
			return false;
		if (sent > 0)
			conn->said += (size_t)sent;
	}
	return true;
}

static void take_requests(struct perf_server_conn *conn)
{
	struct perf_talk *talk = &conn->talk;
	ssize_t got = perf_talk_receive(talk, conn->fd, conn->server->buffer,
					sizeof(conn->server->buffer));

	if (got == -EAGAIN || got == -EINTR)
		return;
	if (got == -EBADMSG)
		perf_server_give_up(conn, PERF_END_FAILED, "%s", talk->why);
	else if (got < 0)
		perf_server_give_up(conn, PERF_END_PEER, "recv: %s", strerror(-(int)got));
	else if (!got && !perf_talk_between(talk))
		perf_server_give_up(conn, PERF_END_PEER, "it ended inside request %llu",
				    (unsigned long long)talk->received + 1);
	conn->ended = !got;
}

/* While replies do not get out, no more requests are taken in. Whether there is more to do. */
static bool serve_requests(struct perf_server_conn *conn, bool readable)
{
	if (readable)
		take_requests(conn);
	if (conn->lost)
		return false;
	if (!reply(conn) || (conn->ended && !say_account(conn)))
		want(conn, EPOLLOUT);
	else if (conn->ended)
		conn->finished = true;
	else
		want(conn, EPOLLIN);
	return !conn->finished && !conn->lost;
}

bool perf_server_serve(struct perf_server_conn *conn, uint32_t events)
{
	bool readable = (events & ~(uint32_t)EPOLLOUT) && (conn->events & EPOLLIN);

	if (conn->lost)
		return false;
	if (conn->server->open)
		conn->heard = perf_now();
	if (readable && !is_greeted(conn)) {
		if (!take_greeting(conn))
			return false;
		readable = false;
	}
	return !is_greeted(conn) ? !conn->lost : serve_requests(conn, readable);
}
