/* SPDX-License-Identifier: MIT */
/*
 * The HTTP server, libmicrohttpd's, in a thread of its own. A connection has one request. A request that needs a newer
 * look is suspended until the main thread has one. All that clients can hold is bounded: connections, memory for a
 * request, and time. When there are many, a new connection ends one: the oldest one of the user who has most, and strangers'
 * before those of users who may ask. So slow clients and crowds keep nobody out.
 */
#include <microhttpd.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/monitor/monitor.h"
#include "tools/shunt.h"

#define CONNECTIONS 64
#define CROWD 48 /* from here on the oldest one ends */
#define MEMORY 16384 /* bytes of a connection: its request and the head of its answer */
#define PATIENCE 10 /* seconds without a byte */

/* ---- requests ---- */

struct monitor_waiter {
	struct monitor_waiter *next;
	struct MHD_Connection *connection;
	enum monitor_kind kind;
};

/* A request that was let in. */
struct wish {
	enum monitor_page page;
	bool open; /* OpenMetrics */
	bool waited;
	struct monitor_waiter waiter;
};

static struct MHD_Daemon *server;

/* No page loads anything, runs anything, or is shown inside another. */
static void add_headers(struct MHD_Response *response, const char *type)
{
	static const char *const headers[][2] = {
		{ "Content-Security-Policy",
		  "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'" },
		{ "X-Content-Type-Options", "nosniff" },
		{ "X-Frame-Options", "DENY" },
		{ "Cross-Origin-Resource-Policy", "same-origin" },
		{ "Referrer-Policy", "no-referrer" },
		{ "Cache-Control", "no-store" },
		{ "Connection", "close" },
	};

	MHD_add_response_header(response, "Content-Type", type);
	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
		MHD_add_response_header(response, headers[i][0], headers[i][1]);
}

static enum MHD_Result refuse(struct MHD_Connection *connection, enum monitor_verdict verdict)
{
	const char *why = monitor_why(verdict);
	struct MHD_Response *response = MHD_create_response_from_buffer(
		strlen(why), (void *)(uintptr_t)why, MHD_RESPMEM_PERSISTENT);
	enum MHD_Result result;

	if (!response)
		return MHD_NO;
	add_headers(response, "text/plain; charset=utf-8");
	if (verdict == MONITOR_METHOD)
		MHD_add_response_header(response, "Allow", "GET, HEAD");
	if (verdict == MONITOR_TOKEN)
		MHD_add_response_header(response, "WWW-Authenticate", "Bearer realm=\"shunt\"");
	result = MHD_queue_response(connection, monitor_status(verdict), response);
	MHD_destroy_response(response);
	return result;
}

/* ---- judging ---- */

static enum MHD_Result count_host(void *arg, enum MHD_ValueKind kind, const char *key,
				  const char *value)
{
	unsigned int *hosts = arg;

	(void)kind;
	(void)value;
	*hosts += key && !strcasecmp(key, MHD_HTTP_HEADER_HOST);
	return MHD_YES;
}

static const char *header(struct MHD_Connection *connection, const char *name)
{
	return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static bool has_body(struct MHD_Connection *connection)
{
	const char *length = header(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);

	return header(connection, MHD_HTTP_HEADER_TRANSFER_ENCODING) ||
	       (length && strcmp(length, "0"));
}

static bool ends_of(struct MHD_Connection *connection, union monitor_address *client,
		    union monitor_address *own)
{
	const union MHD_ConnectionInfo *fd = MHD_get_connection_info(
		connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	socklen_t client_length = sizeof(*client), own_length = sizeof(*own);

	return fd && !getpeername(fd->connect_fd, &client->any, &client_length) &&
	       !getsockname(fd->connect_fd, &own->any, &own_length);
}

static enum monitor_verdict judge(const struct monitor *monitor, struct MHD_Connection *connection,
				  const char *path, const char *method, enum monitor_page *page)
{
	union monitor_address client = { 0 }, own = { 0 };
	struct monitor_request request = {
		.method = method,
		.path = path,
		.host = header(connection, MHD_HTTP_HEADER_HOST),
		.body = has_body(connection),
		.authorization = header(connection, MHD_HTTP_HEADER_AUTHORIZATION),
		.client = &client,
		.own = &own,
	};

	MHD_get_connection_values(connection, MHD_HEADER_KIND, count_host, &request.hosts);
	if (!ends_of(connection, &client, &own))
		return MONITOR_USER;
	return monitor_judge(&monitor->options, &request, page);
}

/* ---- answering ---- */

struct borrowed {
	struct monitor *monitor;
	struct monitor_look *look;
};

static void give_back(void *arg)
{
	struct borrowed *borrowed = arg;

	monitor_look_leave(borrowed->monitor, borrowed->look);
	free(borrowed);
}

static enum monitor_view view_of(const struct wish *wish)
{
	switch (wish->page) {
	case MONITOR_METRICS:
		return wish->open ? MONITOR_VIEW_OPEN : MONITOR_VIEW_TEXT;
	case MONITOR_LOG:
		return MONITOR_VIEW_LOG;
	default:
		return MONITOR_VIEW_PAGE;
	}
}

static const char *const types[MONITOR_VIEWS] = {
	[MONITOR_VIEW_TEXT] = "text/plain; version=0.0.4; charset=utf-8",
	[MONITOR_VIEW_OPEN] = "application/openmetrics-text; version=1.0.0; charset=utf-8",
	[MONITOR_VIEW_PAGE] = "text/html; charset=utf-8",
	[MONITOR_VIEW_LOG] = "application/x-ndjson",
};

/* The response's reference is given up. */
static enum MHD_Result answer(struct monitor *monitor, struct MHD_Connection *connection,
			      const struct wish *wish, struct monitor_look *look)
{
	struct borrowed *borrowed = malloc(sizeof(*borrowed));
	enum monitor_view view = view_of(wish);
	struct MHD_Response *response;
	enum MHD_Result result;

	if (!borrowed)
		abort();
	*borrowed = (struct borrowed) { monitor, look };
	monitor_look_make(monitor, look, view);
	response = MHD_create_response_from_buffer_with_free_callback_cls(
		look->bytes[view], look->text[view], give_back, borrowed);
	if (!response) {
		give_back(borrowed);
		return MHD_NO;
	}
	add_headers(response, types[view]);
	result = MHD_queue_response(connection, MHD_HTTP_OK, response);
	MHD_destroy_response(response);
	return result;
}

/* Suspended under the lock, so that the main thread finds it so. False: the monitor ends. */
static bool wait_for_look(struct monitor *monitor, struct monitor_waiter *waiter)
{
	uint64_t one = 1;
	bool ending;

	pthread_mutex_lock(&monitor->lock);
	ending = monitor->ending;
	if (!ending) {
		MHD_suspend_connection(waiter->connection);
		waiter->next = monitor->waiting;
		monitor->waiting = waiter;
		monitor->wanted[waiter->kind] = true;
	}
	pthread_mutex_unlock(&monitor->lock);
	if (!ending && write(monitor->bell, &one, sizeof(one)) < 0)
		abort(); /* it takes 2^64 - 2 rings without an answer */
	return !ending;
}

static enum MHD_Result go_on(struct monitor *monitor, struct MHD_Connection *connection,
			     struct wish *wish)
{
	struct monitor_look *look = monitor_look_take(monitor, wish->waiter.kind, wish->waited);

	if (look)
		return answer(monitor, connection, wish, look);
	wish->waited = true;
	return wait_for_look(monitor, &wish->waiter) ? MHD_YES : MHD_NO;
}

static enum MHD_Result healthy(struct MHD_Connection *connection)
{
	static char text[] = "ok\n";
	struct MHD_Response *response = MHD_create_response_from_buffer(3, text,
									MHD_RESPMEM_PERSISTENT);
	enum MHD_Result result;

	if (!response)
		return MHD_NO;
	add_headers(response, "text/plain; charset=utf-8");
	result = MHD_queue_response(connection, MHD_HTTP_OK, response);
	MHD_destroy_response(response);
	return result;
}

/* Once with the head of the request, and again when it is whole and whenever it is resumed. */
static enum MHD_Result handle(void *arg, struct MHD_Connection *connection, const char *path,
			      const char *method, const char *version, const char *upload,
			      size_t *upload_bytes, void **context)
{
	struct monitor *monitor = arg;
	enum monitor_page page = MONITOR_ROOT;
	enum monitor_verdict verdict;
	struct wish *wish = *context;
	const char *accept;

	(void)version;
	(void)upload;
	if (wish) {
		*upload_bytes = 0;
		return wish->page == MONITOR_HEALTH ? healthy(connection) :
						      go_on(monitor, connection, wish);
	}
	verdict = judge(monitor, connection, path, method, &page);
	if (verdict != MONITOR_WELCOME)
		return refuse(connection, verdict);
	wish = calloc(1, sizeof(*wish));
	if (!wish)
		abort();
	accept = header(connection, MHD_HTTP_HEADER_ACCEPT);
	*wish = (struct wish) { .page = page,
				.open = accept && strstr(accept, "application/openmetrics-text"),
				.waiter = { .connection = connection,
					    .kind = page == MONITOR_LOG ? MONITOR_LOGS :
									  MONITOR_STATISTICS } };
	*context = wish;
	return MHD_YES;
}

static void completed(void *arg, struct MHD_Connection *connection, void **context,
		      enum MHD_RequestTerminationCode code)
{
	(void)arg;
	(void)connection;
	(void)code;
	free(*context);
	*context = NULL;
}

/* Paths are compared as they came: none of ours has a byte that would be escaped. */
static size_t unescape(void *arg, struct MHD_Connection *connection, char *text)
{
	(void)arg;
	(void)connection;
	return strlen(text);
}

/* ---- connections, in the server's thread ---- */

/* A user of this host, as far as the kernel tells, or an address. */
struct visitor {
	bool known, friend;
	uid_t user;
	uint8_t address[16];
};

struct client {
	struct client *next, *previous; /* the older one, the younger one */
	struct visitor visitor;
	int fd;
	bool ended;
};

static struct client clients = { .next = &clients, .previous = &clients, .fd = -1, .ended = true };
static unsigned int crowd; /* of those that have not been ended */

static void know(const struct monitor *monitor, struct MHD_Connection *connection,
		 struct visitor *visitor)
{
	union monitor_address client = { 0 }, own = { 0 };

	*visitor = (struct visitor) { 0 };
	if (!ends_of(connection, &client, &own))
		return;
	visitor->known = monitor_user(&client, &own, &visitor->user);
	visitor->friend = visitor->known && monitor_befriends(&monitor->options, visitor->user);
	if (!visitor->known && client.any.sa_family == AF_INET6)
		memcpy(visitor->address, &client.v6.sin6_addr, 16);
	else if (!visitor->known)
		memcpy(visitor->address, &client.v4.sin_addr, 4);
}

static bool is_same(const struct visitor *a, const struct visitor *b)
{
	return a->known == b->known && a->user == b->user &&
	       !memcmp(a->address, b->address, sizeof(a->address));
}

/* How much it takes of the room: friends, who may ask, are the last to go. */
static unsigned int burden(const struct visitor *visitor)
{
	unsigned int count = 0;

	for (const struct client *client = clients.next; client != &clients; client = client->next)
		count += !client->ended && is_same(&client->visitor, visitor);
	return visitor->friend ? count : count + CONNECTIONS;
}

/* The oldest of the visitor who has most. */
static void end_one(void)
{
	struct client *chosen = NULL;
	unsigned int most = 0;

	for (struct client *client = clients.previous; client != &clients;
	     client = client->previous) {
		unsigned int its = client->ended ? 0 : burden(&client->visitor);

		if (its <= most)
			continue;
		most = its;
		chosen = client;
	}
	if (!chosen)
		return;
	shutdown(chosen->fd, SHUT_RDWR);
	chosen->ended = true;
	crowd--;
}

static void notify(void *arg, struct MHD_Connection *connection, void **context,
		   enum MHD_ConnectionNotificationCode code)
{
	struct client *client = *context;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		client = calloc(1, sizeof(*client));
		if (!client)
			abort();
		client->fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)
				     ->connect_fd;
		know(arg, connection, &client->visitor);
		client->next = clients.next;
		client->previous = &clients;
		client->next->previous = clients.next = client;
		*context = client;
		if (++crowd > CROWD)
			end_one();
	} else if (client) {
		client->next->previous = client->previous;
		client->previous->next = client->next;
		crowd -= !client->ended;
		free(client);
		*context = NULL;
	}
}

/* ---- the server ---- */

int monitor_http_start(struct monitor *monitor, int listener)
{
	server = MHD_start_daemon(
		MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, handle,
		monitor, MHD_OPTION_LISTEN_SOCKET, listener, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned int)CONNECTIONS, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)PATIENCE, MHD_OPTION_STRICT_FOR_CLIENT,
		1, MHD_OPTION_UNESCAPE_CALLBACK, unescape, NULL, MHD_OPTION_NOTIFY_COMPLETED,
		completed, NULL, MHD_OPTION_NOTIFY_CONNECTION, notify, monitor, MHD_OPTION_END);
	if (server)
		return 0;
	fputs("shunt monitor: libmicrohttpd does not start a server\n", stderr);
	close(listener);
	return -1;
}

void monitor_http_resume(struct monitor *monitor)
{
	struct monitor_waiter **place = &monitor->waiting, *going = NULL, *waiter;

	pthread_mutex_lock(&monitor->lock);
	while ((waiter = *place)) {
		if (monitor->wanted[waiter->kind] && !monitor->ending) {
			place = &waiter->next;
			continue;
		}
		*place = waiter->next;
		waiter->next = going;
		going = waiter;
	}
	pthread_mutex_unlock(&monitor->lock);
	while ((waiter = going)) {
		going = waiter->next; /* it ends with its request, in the other thread */
		MHD_resume_connection(waiter->connection);
	}
}

void monitor_http_stop(struct monitor *monitor)
{
	pthread_mutex_lock(&monitor->lock);
	monitor->ending = true;
	pthread_mutex_unlock(&monitor->lock);
	monitor_http_resume(monitor);
	MHD_stop_daemon(server);
}
