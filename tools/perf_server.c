/* SPDX-License-Identifier: MIT */
/*
 * The accepting end: one thread, one epoll set, all connections. It serves one run of this host, whose
 * first failure ends it, or, as open-server, the runs of anybody, whose failures end their connections.
 * Then nothing is believed of a client: sizes, memory, connections and time have limits.
 */
#include "tools/perf_talk.h"

#include <arpa/inet.h>
#include <errno.h>
#include <jansson.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/bench.h"
#include "tools/perf_machine.h"
#include "tools/ping.h"
#include "tools/shunt.h"

#define EVENTS 64

/* Of an open server. */
#define OPEN_CONNS (PERF_CONNS_MAX + 64)
#define OPEN_MEMORY (2ULL << 30) /* bytes of buffers */
#define OPEN_GREETING 30000000000ULL /* ns without a byte before requests */
#define OPEN_SILENCE 120000000000ULL /* ns without a byte later on, in any direction */
#define OPEN_LENGTH 660000000000ULL /* ns of a connection: the longest run, and a minute */
#define SWEEP_MS 1000
#define TURN (16 << 20) /* bytes of replies before the others' turn */

struct conn {
	struct conn *next, **link; /* of all */
	uint64_t came, heard; /* ns; open server only */
	uint64_t memory; /* bytes, at most */
	bool lost; /* is to be dropped */
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
	struct perf_usage before; /* when the first connection of the run came */
	bool open; /* an open server */
	struct conn *conns;
	uint64_t conn_count, memory;
	struct perf_hello hello;
	uint8_t buffer[PERF_CHUNK_MAX];
} server;

static int listen_at(const union ping_address *address, uint16_t *port)
{
	union ping_address at = *address;
	socklen_t length = sizeof(at);
	char text[PING_ADDRESS_TEXT];
	int on = 1, fd = socket(at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    bind(fd, &at.any, ping_address_length(&at)) || listen(fd, PERF_CONNS_MAX) ||
	    getsockname(fd, &at.any, &length))
		perf_end_fail(PERF_END_FAILED, "cannot listen at %s port %u: %m",
			      ping_address_text(address, text), ntohs(address->v4.sin_port));
	*port = ntohs(at.v4.sin_port);
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

static void drop(struct conn *conn)
{
	*conn->link = conn->next;
	if (conn->next)
		conn->next->link = conn->link;
	server.conn_count--;
	server.memory -= conn->memory;
	close(conn->fd);
	perf_talk_free(&conn->talk);
	free(conn);
}

/* Ends the run, or the connection where there are others'. */
static void __attribute__((format(printf, 3, 4)))
give_up(struct conn *conn, int status, const char *format, ...)
{
	char why[256];
	va_list args;

	va_start(args, format);
	vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	if (!server.open)
		perf_end_fail(status, "connection %u: %s", conn->greeting.index, why);
	fprintf(stderr, "shunt perf: a connection was dropped: %s\n", why);
	conn->lost = true;
}

static void add_connection(int fd)
{
	struct conn *conn = calloc(1, sizeof(*conn));
	int on = 1;

	if (!conn)
		perf_end_fail(PERF_END_FAILED, "out of memory");
	if (!server.conn_count && (server.open || !server.begun))
		server.before = perf_usage_now();
	server.begun = true;
	conn->next = server.conns;
	conn->link = &server.conns;
	if (conn->next)
		conn->next->link = &conn->next;
	server.conns = conn;
	server.conn_count++;
	conn->fd = fd;
	conn->events = EPOLLIN;
	conn->came = conn->heard = server.open ? perf_now() : 0;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	watch(EPOLL_CTL_ADD, fd, EPOLLIN, conn);
}

/* The one that has not greeted for longest goes, so a crowd that says nothing keeps nobody out. */
static bool make_room(void)
{
	struct conn *oldest = NULL;

	for (struct conn *conn = server.conns; conn; conn = conn->next)
		if (!conn->talks && !conn->lost && (!oldest || conn->heard < oldest->heard))
			oldest = conn;
	if (oldest)
		give_up(oldest, PERF_END_PEER, "others came, and it had said nothing");
	return oldest;
}

static void take_connection(void)
{
	int fd = accept4(server.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0) {
		if (errno == EBADF || errno == EINVAL ||
		    (!server.open && errno != EAGAIN && errno != ECONNABORTED && errno != EINTR))
			perf_end_fail(PERF_END_FAILED, "accept: %m");
		return;
	}
	if (server.open && server.conn_count >= OPEN_CONNS && !make_room()) {
		fprintf(stderr, "shunt perf: a connection was refused: there are %d\n", OPEN_CONNS);
		close(fd);
		return;
	}
	add_connection(fd);
}

/* Clients that went away without a word, that are silent, or that stay for ever. */
static void sweep(uint64_t now)
{
	struct conn *next;

	for (struct conn *conn = server.conns; conn; conn = next) {
		next = conn->next;
		if (now - conn->heard > (conn->talks ? OPEN_SILENCE : OPEN_GREETING))
			give_up(conn, PERF_END_PEER, "it was silent for too long");
		else if (now - conn->came > OPEN_LENGTH)
			give_up(conn, PERF_END_PEER, "it is older than any run");
		if (conn->lost)
			drop(conn);
	}
}

/* ---- the greeting ---- */

/* The answer fits into any socket's buffer. */
static void say_hello(struct conn *conn)
{
	if (send(conn->fd, &server.hello, sizeof(server.hello), MSG_NOSIGNAL) < 0)
		give_up(conn, PERF_END_PEER, "send: %m");
}

static bool is_welcome(struct conn *conn)
{
	struct perf_greeting *greeting = &conn->greeting;

	if (server.open && server.hello.shunt_port &&
	    !memcmp(greeting->magic, PERF_MAGIC_HELLO, sizeof(greeting->magic))) {
		say_hello(conn);
		return false;
	}
	if (!perf_greeting_valid(greeting)) {
		if (server.open)
			give_up(conn, PERF_END_PEER, "it is no client of this version");
		return false;
	}
	conn->memory = perf_talk_memory(greeting);
	server.memory += conn->memory;
	if (server.open && server.memory > OPEN_MEMORY) {
		give_up(conn, PERF_END_PEER, "the buffers of all would be larger than 2 GiB");
		return false;
	}
	return true;
}

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
		if (conn->greeted == sizeof(conn->greeting) && !is_welcome(conn))
			return false;
	}
	return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

/* Whether requests are next. */
static bool is_greeted(struct conn *conn)
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
		give_up(conn, PERF_END_FAILED, "out of memory");
		return false;
	}
	conn->talks = true;
	if (perf_greeting_waits(greeting) &&
	    send(conn->fd, &ready, sizeof(ready), MSG_NOSIGNAL) < 0)
		give_up(conn, PERF_END_PEER, "send: %m");
	return true;
}

/* ---- requests and replies ---- */

/* Whether all that is owed has gone out. A reply is one send. */
static bool reply(struct conn *conn)
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
			give_up(conn, PERF_END_PEER, "send: %s", strerror(-rc));
		if (rc || (server.open && talk->tx >= turn))
			return false;
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
			give_up(conn, PERF_END_PEER, "send: %m");
		if (conn->lost)
			return false;
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
		give_up(conn, PERF_END_FAILED, "%s", talk->why);
	else if (got < 0)
		give_up(conn, PERF_END_PEER, "recv: %s", strerror(-(int)got));
	else if (!got && !perf_talk_between(talk))
		give_up(conn, PERF_END_PEER, "it ended inside request %llu",
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
static void serve_requests(struct conn *conn, bool readable)
{
	if (readable)
		take_requests(conn);
	if (conn->lost)
		return;
	if (!reply(conn) || (conn->ended && !say_account(conn)))
		want(conn, EPOLLOUT);
	else if (conn->ended)
		finish(conn);
	else
		want(conn, EPOLLIN);
}

static void serve(struct conn *conn, uint32_t events)
{
	bool readable = (events & ~(uint32_t)EPOLLOUT) && (conn->events & EPOLLIN);

	if (conn->lost)
		return;
	if (server.open)
		conn->heard = perf_now();
	if (readable && !is_greeted(conn)) {
		if (!take_greeting(conn)) {
			drop(conn);
			return;
		}
		readable = false;
	}
	if (is_greeted(conn))
		serve_requests(conn, readable);
}

/* serve() may have freed it; a lost one is still there. */
static void drop_lost(void)
{
	struct conn *next;

	for (struct conn *conn = server.conns; conn; conn = next) {
		next = conn->next;
		if (conn->lost)
			drop(conn);
	}
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

static void handle_events(int timeout_ms)
{
	struct epoll_event events[EVENTS];
	int count = epoll_wait(server.epoll, events, EVENTS, timeout_ms);

	if (count < 0 && errno != EINTR)
		perf_end_fail(PERF_END_FAILED, "epoll_wait: %m");
	for (int i = 0; i < count; i++) {
		if (events[i].data.ptr)
			serve(events[i].data.ptr, events[i].events);
		else
			take_connection();
	}
}

static void begin(uint16_t port)
{
	server.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (server.epoll < 0)
		perf_end_fail(PERF_END_FAILED, "epoll_create1: %m");
	watch(EPOLL_CTL_ADD, server.listener, EPOLLIN, NULL);
	say_ready(port);
}

/* server CONNECTIONS: serves as many, then says what it had. */
int perf_server(int argc, char **argv)
{
	union ping_address loopback = { .v4 = { .sin_family = AF_INET } };
	uint16_t port;

	if (argc != 2 || perf_number(argv[1], 1, PERF_CONNS_MAX, &server.wanted))
		return EXIT_USAGE;
	loopback.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	server.listener = listen_at(&loopback, &port);
	begin(port);
	while (server.finished < server.wanted)
		handle_events(-1);
	report();
	close(server.epoll);
	close(server.listener);
	return 0;
}

static void make_hello(uint32_t shunt_port)
{
	struct perf_machine machine;

	memcpy(server.hello.magic, PERF_MAGIC_HELLO, sizeof(server.hello.magic));
	server.hello.version = PERF_VERSION;
	server.hello.shunt_port = shunt_port;
	perf_machine_read(&machine, "");
	perf_machine_text(&machine, server.hello.machine, sizeof(server.hello.machine));
}

/* open-server ADDRESS PORT SHUNT-PORT: until a signal. SHUNT-PORT is 0 in the shunted process. */
int perf_open_server(int argc, char **argv)
{
	union ping_address address;
	uint64_t port, shunt_port, swept = perf_now();
	uint16_t bound;

	if (argc != 4 || ping_address_parse(argv[1], &address) ||
	    perf_number(argv[2], 0, 65535, &port) || perf_number(argv[3], 0, 65535, &shunt_port))
		return EXIT_USAGE;
	server.open = true;
	/* The table does not move while replies are sent from it. */
	if (perf_pattern_make(PERF_LARGE_MAX))
		perf_end_fail(PERF_END_FAILED, "out of memory");
	make_hello((uint32_t)shunt_port);
	address.v4.sin_port = htons((uint16_t)port);
	server.listener = listen_at(&address, &bound);
	begin(bound);
	for (;;) {
		handle_events(SWEEP_MS);
		drop_lost();
		if (perf_now() - swept > SWEEP_MS * 1000000ULL) {
			swept = perf_now();
			sweep(swept);
		}
	}
}
