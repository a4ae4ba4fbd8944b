/* SPDX-License-Identifier: MIT */
/* The accepting end: all its connections (perf_server.c), and each of them (perf_server_talk.c). */
#ifndef SHUNT_TOOLS_PERF_SERVER_H
#define SHUNT_TOOLS_PERF_SERVER_H

#include "tools/perf/end/perf_talk.h"

struct perf_server;

struct perf_server_conn {
	struct perf_server *server;
	struct perf_server_conn *next, **link; /* of all */
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
	bool finished; /* all of it has been sent */
};

struct perf_server {
	int epoll, listener;
	uint64_t wanted, finished;	/* connections */
	uint64_t requests, bytes;
	bool begun;
	struct perf_usage before; /* when the first connection of the run came */
	bool open; /* an open server */
	struct perf_server_conn *conns;
	uint64_t conn_count, memory;
	struct perf_hello hello;
	uint64_t lines_since; /* ns: when the minute began in which lines are counted */
	uint32_t lines, unsaid; /* in it: said about clients, and kept back */
	uint8_t buffer[PERF_CHUNK_MAX];
};

void perf_server_watch(struct perf_server *server, int op, int fd, uint32_t events, void *of);
/* A line about a client of an open server. Anybody may cause one, so there are few a minute; the others are counted. */
void perf_server_tell(struct perf_server *server, const char *what, const char *why);
/* Ends the run, or the connection where there are others'. */
void perf_server_give_up(struct perf_server_conn *conn, int status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Does what the events allow. Whether it is still of use; else it is to be dropped. */
bool perf_server_serve(struct perf_server_conn *conn, uint32_t events);

#endif
