/* SPDX-License-Identifier: MIT */
/*
 * The accepting end: one thread, one epoll set, all connections. It serves one run of this host, whose
 * first failure ends it, or, as open-server, the runs of anybody, whose failures end their connections.
 * Then nothing is believed of a client: sizes, memory, connections and time have limits.
 */
#include "tools/perf/end/perf_server.h"

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

#include "tools/bench/bench.h"
#include "tools/common/host.h"
#include "tools/ping/ping.h"
#include "tools/shunt.h"

#define EVENTS 64

/* Of an open server. */
#define OPEN_CONNS (PERF_CONNS_MAX + 64)
#define OPEN_GREETING 30000000000ULL /* ns without a byte before requests */
#define OPEN_SILENCE 120000000000ULL /* ns without a byte later on, in any direction */
#define OPEN_LENGTH 660000000000ULL /* ns of a connection: the longest run, and a minute */
#define SWEEP_MS 1000

static struct perf_server server;

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

static void drop(struct perf_server_conn *conn)
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

static void add_connection(int fd)
{
	struct perf_server_conn *conn = calloc(1, sizeof(*conn));
	int on = 1;

	if (!conn)
		perf_end_fail(PERF_END_FAILED, "out of memory");
	if (!server.conn_count && (server.open || !server.begun))
		server.before = perf_usage_now();
	server.begun = true;
	conn->server = &server;
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
	perf_server_watch(&server, EPOLL_CTL_ADD, fd, EPOLLIN, conn);
}

/* The one that has not greeted for longest goes, so a crowd that says nothing keeps nobody out. */
static bool make_room(void)
{
	struct perf_server_conn *oldest = NULL;

	for (struct perf_server_conn *conn = server.conns; conn; conn = conn->next)
		if (!conn->talks && !conn->lost && (!oldest || conn->heard < oldest->heard))
			oldest = conn;
	if (oldest)
		perf_server_give_up(oldest, PERF_END_PEER, "others came, and it had said nothing");
	return oldest;
}

static void take_connection(void)
{
	union ping_address peer;
	socklen_t length = sizeof(peer);
	int fd = accept4(server.listener, &peer.any, &length, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0) {
		/* Without a descriptor for it, it would be announced for ever. */
		if (server.open && (errno == EMFILE || errno == ENFILE))
			make_room();
		if (errno == EBADF || errno == EINVAL ||
		    (!server.open && errno != EAGAIN && errno != ECONNABORTED && errno != EINTR))
			perf_end_fail(PERF_END_FAILED, "accept: %m");
		return;
	}
	if (server.open && server.conn_count >= OPEN_CONNS && !make_room()) {
		perf_server_tell(&server, "a connection was refused", "there are too many");
		close(fd);
		return;
	}
	add_connection(fd);
}

/* Clients that went away without a word, that are silent, or that stay for ever. */
static void sweep(uint64_t now)
{
	struct perf_server_conn *next;

	for (struct perf_server_conn *conn = server.conns; conn; conn = next) {
		next = conn->next;
		if (now - conn->heard > (conn->talks ? OPEN_SILENCE : OPEN_GREETING))
			perf_server_give_up(conn, PERF_END_PEER, "it was silent for too long");
		else if (now - conn->came > OPEN_LENGTH)
			perf_server_give_up(conn, PERF_END_PEER, "it is older than any run");
		if (conn->lost)
			drop(conn);
	}
}

/* Also of one that was given up, and of a stranger, which count for nothing. */
static void finish(struct perf_server_conn *conn)
{
	if (conn->finished) {
		server.finished++;
		server.requests += conn->talk.received;
		server.bytes += conn->talk.rx;
	}
	drop(conn);
}

/* Those that had to make room, too late for events that were already there. */
static void drop_lost(void)
{
	struct perf_server_conn *next;

	for (struct perf_server_conn *conn = server.conns; conn; conn = next) {
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
		struct perf_server_conn *conn = events[i].data.ptr;

		if (!conn)
			take_connection();
		else if (!perf_server_serve(conn, events[i].events))
			finish(conn);
	}
}

static void begin(uint16_t port)
{
	server.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (server.epoll < 0)
		perf_end_fail(PERF_END_FAILED, "epoll_create1: %m");
	perf_server_watch(&server, EPOLL_CTL_ADD, server.listener, EPOLLIN, NULL);
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
	struct shunt_host machine;

	memcpy(server.hello.magic, PERF_MAGIC_HELLO, sizeof(server.hello.magic));
	server.hello.version = PERF_VERSION;
	server.hello.shunt_port = shunt_port;
	shunt_host_read(&machine, "");
	shunt_host_text(&machine, server.hello.machine, sizeof(server.hello.machine));
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
