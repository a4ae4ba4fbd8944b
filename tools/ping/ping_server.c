/* SPDX-License-Identifier: MIT */
/*
 * The answering end: an ordinary echo server that knows nothing of Shunt but what its own engine and this machine say.
 * The server speaks first, so nobody has to send a byte to find out whether it is one. One thread, one epoll set, at most
 * CONNS connections: the one that was silent for longest makes room. Requests are bounded, and nothing is believed of
 * them.
 */
#include "tools/ping/ping.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "core/base/conf.h"
#include "core/base/address.h"
#include "tools/perf/end/perf_end.h"
#include "tools/shunt.h"
#include "tools/stat/stat.h"

#define CONNS 64
#define EVENTS 32

struct conn {
	int fd; /* -1: free */
	uint64_t heard; /* ns: when it did something last */
	uint8_t *in; /* a request */
	size_t in_bytes;
	char *out; /* what has not been sent */
	size_t out_bytes, out_sent;
	bool waits; /* for room to send */
	char peer[SHUNT_ADDRESS_ROOM];
};

static struct {
	int epoll, listener;
	const struct shunt_config *config;
	struct conn conns[CONNS];
} server;

static void drop(struct conn *conn)
{
	close(conn->fd);
	free(conn->in);
	free(conn->out);
	*conn = (struct conn) { .fd = -1 };
}

static void watch(int op, struct conn *conn)
{
	struct epoll_event event = { .events = conn->waits ? EPOLLOUT : EPOLLIN, .data.ptr = conn };

	if (epoll_ctl(server.epoll, op, conn->fd, &event))
		drop(conn);
}

/* False: the connection is over. */
static bool flush(struct conn *conn)
{
	while (conn->out_sent < conn->out_bytes) {
		ssize_t sent = send(conn->fd, conn->out + conn->out_sent,
				    conn->out_bytes - conn->out_sent, MSG_NOSIGNAL);

		if (sent < 0 && errno == EAGAIN)
			return true;
		if (sent < 0 && errno != EINTR)
			return false;
		if (sent > 0)
			conn->out_sent += (size_t)sent;
	}
	free(conn->out);
	conn->out = NULL;
	conn->out_bytes = conn->out_sent = 0;
	return true;
}

/* The text is the connection's from here on. */
static bool say(struct conn *conn, char *text, size_t bytes)
{
	conn->out = text;
	conn->out_bytes = text ? bytes : 0;
	conn->out_sent = 0;
	return text && flush(conn);
}

/* --- what it says of itself --- */

static void put_address(json_t *object, const char *key, int fd,
			int (*name)(int, struct sockaddr *, socklen_t *),
			char text[SHUNT_ADDRESS_ROOM])
{
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);
	uint8_t ip[16];
	uint16_t port;

	text[0] = '\0';
	if (!name(fd, (struct sockaddr *)&address, &length) &&
	    !shunt_address_of(&address, ip, &port))
		shunt_address_text(ip, port, text);
	json_object_set_new(object, key, json_string(text));
}

static bool say_banner(struct conn *conn)
{
	json_t *machine = ping_machine(server.config);
	char local[SHUNT_ADDRESS_ROOM], interface[32], *json, *text = NULL;
	union ping_address peer = { 0 };
	socklen_t length = sizeof(peer);
	int bytes = -1;

	put_address(machine, "local", conn->fd, getsockname, local);
	put_address(machine, "peer", conn->fd, getpeername, conn->peer);
	if (!getpeername(conn->fd, &peer.any, &length)) {
		ping_interface(&peer, NULL, interface);
		json_object_set_new(machine, "interface", json_string(interface));
	}
	json = json_dumps(machine, JSON_COMPACT | JSON_ENSURE_ASCII);
	if (json)
		bytes = asprintf(&text, PING_BANNER "%s\n", json);
	free(json);
	json_decref(machine);
	return bytes > 0 && say(conn, text, (size_t)bytes);
}

/* This process as its engine sees it; an object without members where it cannot be asked. */
static json_t *ask_engine(const struct conn *conn)
{
	json_t *status = json_object(), *stream;
	struct shunt_look look;
	struct shunt_door self;
	char pid[24];
	size_t i;

	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	if (!shunt_door_parse(pid, &self) || shunt_look_ask(&look, &self, 1))
		return status;
	for (size_t n = 0; n < look.count; n++) {
		const json_t *process = look.processes[n].process;

		if (!process)
			continue;
		json_object_set_new(status, "engine_reason",
				    json_string(ping_json_text(process, "reason")));
		json_object_set(status, "reasons", json_object_get(process, "reasons"));
		json_array_foreach(json_object_get(process, "streams"), i,
				   stream) if (!strcmp(ping_json_text(stream, "peer"), conn->peer))
			json_object_set(status, "stream", stream);
	}
	shunt_look_free(&look);
	return status;
}

static bool say_status(struct conn *conn)
{
	struct ping_request head = { .magic = PING_MAGIC, .kind = 's' };
	json_t *status = ask_engine(conn);
	char *json = json_dumps(status, JSON_COMPACT | JSON_ENSURE_ASCII), *text;
	size_t bytes = json ? strlen(json) : 0;

	json_decref(status);
	text = bytes && bytes <= PING_BYTES_MAX ? malloc(sizeof(head) + bytes) : NULL;
	if (text) {
		head.bytes = htonl((uint32_t)bytes);
		memcpy(text, &head, sizeof(head));
		memcpy(text + sizeof(head), json, bytes);
	}
	free(json);
	return say(conn, text, sizeof(head) + bytes);
}

/* --- requests --- */

/* How long the request is in all, 0 where its head has not come; -1: it is none. */
static ssize_t length_of(const struct conn *conn)
{
	struct ping_request head;
	uint32_t bytes;

	if (conn->in_bytes < sizeof(head))
		return 0;
	memcpy(&head, conn->in, sizeof(head));
	bytes = ntohl(head.bytes);
	if (memcmp(head.magic, PING_MAGIC, sizeof(head.magic)) || bytes > PING_BYTES_MAX ||
	    (head.kind != 'e' && (head.kind != 's' || bytes)))
		return -1;
	return (ssize_t)(sizeof(head) + bytes);
}

static bool answer(struct conn *conn, size_t bytes)
{
	uint8_t *request = conn->in;
	bool status = request[offsetof(struct ping_request, kind)] == 's';

	conn->in = NULL;
	conn->in_bytes = 0;
	if (!status)
		return say(conn, (char *)request, bytes);
	free(request);
	return say_status(conn);
}

/* One request at a time: the next is not read before its answer has gone out. */
static bool hear(struct conn *conn)
{
	size_t room = sizeof(struct ping_request);
	ssize_t length, got;

	while (!conn->out) {
		length = length_of(conn);
		if (length < 0)
			return false;
		if (length > 0 && conn->in_bytes == (size_t)length) {
			if (!answer(conn, (size_t)length))
				return false;
			continue;
		}
		if (!conn->in)
			conn->in = malloc(sizeof(struct ping_request) + PING_BYTES_MAX);
		if (!conn->in)
			return false;
		room = length > 0 ? (size_t)length : sizeof(struct ping_request);
		got = recv(conn->fd, conn->in + conn->in_bytes, room - conn->in_bytes, 0);
		if (got < 0 && errno == EAGAIN)
			return true;
		if (!got || (got < 0 && errno != EINTR))
			return false;
		if (got > 0)
			conn->in_bytes += (size_t)got;
	}
	return true;
}

static void serve(struct conn *conn)
{
	bool waits = conn->waits;

	conn->heard = perf_now();
	if (!flush(conn) || !hear(conn)) {
		drop(conn);
		return;
	}
	conn->waits = conn->out != NULL;
	if (conn->waits != waits)
		watch(EPOLL_CTL_MOD, conn);
}

/* --- connections --- */

static struct conn *seat(void)
{
	struct conn *oldest = &server.conns[0];

	for (size_t i = 0; i < CONNS; i++) {
		if (server.conns[i].fd < 0)
			return &server.conns[i];
		if (server.conns[i].heard < oldest->heard)
			oldest = &server.conns[i];
	}
	drop(oldest);
	return oldest;
}

static void take_connection(void)
{
	union ping_address peer;
	socklen_t length = sizeof(peer);
	int fd = accept4(server.listener, &peer.any, &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct conn *conn;

	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == EBADF || errno == EINVAL)
			perf_end_fail(PERF_END_FAILED, "shunt ping: accept: %m");
		return;
	}
	conn = seat();
	*conn = (struct conn) { .fd = fd, .heard = perf_now() };
	if (!say_banner(conn)) {
		drop(conn);
		return;
	}
	conn->waits = conn->out != NULL;
	watch(EPOLL_CTL_ADD, conn);
}

static int listen_at(const char *address, const char *port)
{
	union ping_address at = { .v6 = { .sin6_family = AF_INET6 } };
	socklen_t length = sizeof(at);
	const int on = 1, off = 0;
	char text[SHUNT_ADDRESS_ROOM];
	json_t *said = json_object();

	if (*address && ping_address_parse(address, &at))
		perf_end_fail(PERF_END_FAILED, "shunt ping: '%s' is no address", address);
	at.v4.sin_port = htons((uint16_t)atoi(port));
	server.listener = socket(at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (server.listener < 0 && !*address) { /* a kernel without IPv6 */
		at = (union ping_address) { .v4 = { .sin_family = AF_INET,
						    .sin_port = at.v4.sin_port } };
		server.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	}
	setsockopt(server.listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (!*address && at.any.sa_family == AF_INET6)
		setsockopt(server.listener, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (bind(server.listener, &at.any, ping_address_length(&at)) ||
	    listen(server.listener, CONNS) || getsockname(server.listener, &at.any, &length))
		perf_end_fail(PERF_END_FAILED, "shunt ping: cannot listen at %s port %s: %m",
			      *address ? address : "*", port);
	put_address(said, "local", server.listener, getsockname, text);
	json_decref(said);
	printf("shunt ping: answers at %s\n", text);
	return fflush(stdout);
}

/* server ADDRESS PORT */
int ping_server(int argc, char **argv)
{
	struct shunt_config config;
	struct epoll_event events[EVENTS];
	struct epoll_event event = { .events = EPOLLIN };

	if (argc != 3 || shunt_variables_load("shunt ping", &config, NULL, NULL).values)
		return EXIT_USAGE;
	server.config = &config;
	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < CONNS; i++)
		server.conns[i].fd = -1;
	server.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (server.epoll < 0 || listen_at(argv[1], argv[2]))
		perf_end_fail(PERF_END_FAILED, "shunt ping: %m");
	if (epoll_ctl(server.epoll, EPOLL_CTL_ADD, server.listener, &event))
		perf_end_fail(PERF_END_FAILED, "shunt ping: epoll_ctl: %m");
	for (;;) {
		int count = epoll_wait(server.epoll, events, EVENTS, -1);

		for (int i = 0; i < count; i++) {
			struct conn *conn = events[i].data.ptr;

			if (!conn)
				take_connection();
			else if (conn->fd >= 0)
				serve(conn);
		}
	}
}

/* ADDRESS:PORT, [V6]:PORT, PORT or "" into both. 0 or -1. */
static int cut(const char *where, char host[PING_ADDRESS_TEXT], char port[8])
{
	const char *colon = strrchr(where, ':'), *start = where;
	size_t length = colon ? (size_t)(colon - where) : 0;
	union ping_address address;

	host[0] = '\0';
	if (colon && *where == '[' && length > 1 && colon[-1] == ']') {
		start++;
		length -= 2;
	}
	if (length >= PING_ADDRESS_TEXT)
		return -1;
	memcpy(host, start, length);
	host[length] = '\0';
	snprintf(port, 8, "%d", PING_PORT);
	if (*where) {
		const char *digits = colon ? colon + 1 : where;

		if (!*digits || strlen(digits) > 5 ||
		    strspn(digits, "0123456789") != strlen(digits) || atoi(digits) > 65535)
			return -1;
		strcpy(port, digits);
	}
	return colon && ping_address_parse(host, &address) ? -1 : 0;
}

int ping_serve(const char *where)
{
	char port[8], host[PING_ADDRESS_TEXT], library[PATH_MAX], program[PATH_MAX];
	char *argv[] = { "shunt", "ping-end", "server", host, port, NULL };
	ssize_t length;

	if (cut(where, host, port))
		return EXIT_USAGE;
	length = readlink("/proc/self/exe", program, sizeof(program) - 1);
	if (length < 0 || shunt_variables_check("shunt ping") || shunt_library_find(library) ||
	    shunt_library_preload(library))
		return EXIT_FAILED;
	program[length] = '\0';
	execv(program, argv);
	perror("shunt ping");
	return EXIT_FAILED;
}
