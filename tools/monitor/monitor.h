/* SPDX-License-Identifier: MIT */
/*
 * shunt monitor: one process of a host that answers HTTP with the statistics of all processes it may see, and changes
 * nothing. Two threads: the main thread looks at processes when somebody wants to know (monitor.c), the server's thread
 * answers (monitor_http.c). A look is good for a while (monitor_look.c), so that many clients cost one look. Other hosts
 * say their statistics without being asked (monitor_hosts.c), so that no look waits for them.
 * monitor_gate.c says which requests are answered.
 */
#ifndef SHUNT_TOOLS_MONITOR_H
#define SHUNT_TOOLS_MONITOR_H

#include <jansson.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "tools/common/remote.h"
#include "tools/page/page.h"
#include "tools/stat/stat.h"

#define MONITOR_PORT 9477
#define MONITOR_TOKEN_LEAST 16
#define MONITOR_TOKEN_MOST 512
#define MONITOR_NAMES 16 /* of hosts, and of users */

union monitor_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* ---- monitor_options.c ---- */

struct monitor_options {
	union monitor_address address; /* to listen at */
	bool loopback; /* nobody else can connect to it */
	size_t token_length; /* 0: there is no token */
	char token[MONITOR_TOKEN_MOST + 1];
	const char *hosts[MONITOR_NAMES]; /* names by which it may be called, beside loopback's */
	size_t host_count;
	uid_t users[MONITOR_NAMES]; /* who may ask, beside our user and root */
	size_t user_count;
	double interval; /* seconds for which a look is good */
	const char *matrix; /* a file, or NULL */
	struct shunt_hosts others; /* hosts that are shown, too */
	bool detail; /* metrics of each stream */
	bool json; /* the first line is an object */
};

/* 0; or after saying what is wrong, or having helped, with the exit status in `status`, -1. */
int monitor_options(struct monitor_options *options, int argc, char **argv, int *status);
socklen_t monitor_address_length(const union monitor_address *address);
/* Numeric, with the port; brackets around IPv6. Returns buf. */
const char *monitor_address_text(const union monitor_address *address, char *buf, size_t room);
#define MONITOR_ADDRESS_TEXT 64

/* ---- monitor_gate.c ---- */

/* In the order in which a request is judged. */
enum monitor_verdict {
	MONITOR_WELCOME,
	MONITOR_METHOD, /* neither GET nor HEAD */
	MONITOR_BODY, /* it has one */
	MONITOR_NO_HOST, /* or several */
	MONITOR_HOST, /* for a name that is not ours: a browser was led here */
	MONITOR_PATH, /* there is no such page */
	MONITOR_TOKEN, /* no token, or another */
	MONITOR_USER, /* another user's, or the kernel does not say */
	MONITOR_VERDICTS,
};

enum monitor_page { MONITOR_HEALTH, MONITOR_ROOT, MONITOR_METRICS, MONITOR_LOG, MONITOR_PAGES };

/* A request, as far as it counts. */
struct monitor_request {
	const char *method, *path;
	const char *host; /* NULL: none */
	unsigned int hosts; /* how many there are */
	bool body;
	const char *authorization; /* NULL: none */
	const union monitor_address *client, *own; /* the ends of its connection */
};

/* `page`: only of a request that is welcome. */
enum monitor_verdict monitor_judge(const struct monitor_options *options,
				   const struct monitor_request *request, enum monitor_page *page);
/* May that user ask, where there is no token? */
bool monitor_befriends(const struct monitor_options *options, uid_t user);
unsigned int monitor_status(enum monitor_verdict verdict);
const char *monitor_why(enum monitor_verdict verdict);

/* ---- monitor_user.c ---- */

/* The user whose socket has the connection's other end. False: none any more, or the kernel does not say. */
bool monitor_user(const union monitor_address *client, const union monitor_address *own,
		  uid_t *user);

/* ---- monitor_look.c ---- */

enum monitor_kind { MONITOR_STATISTICS, MONITOR_LOGS, MONITOR_KINDS };

enum monitor_view {
	MONITOR_VIEW_TEXT,
	MONITOR_VIEW_OPEN,
	MONITOR_VIEW_PAGE,
	MONITOR_VIEW_LOG,
	MONITOR_VIEWS
};

/* A look at all processes, and the texts that were made of it. Only the server's thread makes and reads texts. */
struct monitor_look {
	unsigned int references; /* monitor->lock */
	double at; /* shunt_seconds() */
	double took;
	struct shunt_look look; /* of statistics */
	struct shunt_look before; /* an earlier one, for rates; empty: none */
	json_t *events; /* of logs: objects in the order of time */
	char *text[MONITOR_VIEWS]; /* NULL: nobody has wanted it */
	size_t bytes[MONITOR_VIEWS];
};

struct monitor_waiter;
struct monitor_host;

struct monitor {
	struct monitor_options options;
	struct monitor_host *hosts; /* of options.others; main thread */
	pthread_mutex_t lock; /* over all below; no call is made under it that waits */
	struct monitor_look *now[MONITOR_KINDS]; /* NULL: none yet */
	bool wanted[MONITOR_KINDS]; /* a request waits for a new one */
	struct monitor_waiter *waiting;
	bool ending;
	int bell; /* an eventfd, rung when one is wanted */
};

int monitor_look_open(struct monitor *monitor);
void monitor_look_close(struct monitor *monitor);
/* New looks of the kinds that are wanted; they last as long as there are references. Main thread. */
void monitor_look_renew(struct monitor *monitor);
/* The reference is the caller's. NULL: none, or too old. `any`: however old. */
struct monitor_look *monitor_look_take(struct monitor *monitor, enum monitor_kind kind, bool any);
void monitor_look_leave(struct monitor *monitor, struct monitor_look *look);
/* The view is there afterwards. Server's thread. */
void monitor_look_make(struct monitor *monitor, struct monitor_look *look, enum monitor_view view);

/* ---- monitor_hosts.c: other hosts. Main thread ---- */

void monitor_hosts_open(struct monitor *monitor);
void monitor_hosts_close(struct monitor *monitor);
/* Fills SHUNT_REMOTE_FDS for each host. How many ms poll(2) may wait; -1: for ever. */
int monitor_hosts_prepare(struct monitor *monitor, struct pollfd *fds);
void monitor_hosts_serve(struct monitor *monitor, const struct pollfd *fds);
/* Adds the hosts and their processes to a look, and those of their last answer but one to `before`. */
void monitor_hosts_add(const struct monitor *monitor, struct shunt_look *look,
		       struct shunt_look *before);

/* ---- monitor_log.c ---- */

/* The last events of all processes, in the order of time: an array of objects. */
json_t *monitor_log(void);
char *monitor_log_text(const json_t *events, size_t *bytes);

/* ---- monitor_page.c, monitor_rows.c, monitor_matrix.c ---- */

char *monitor_page(const struct monitor_options *options, const struct monitor_look *look,
		   size_t *bytes);
/* The tables of a page: other hosts; processes; streams by rate; connections on TCP by reason; what was short, and what failed. */
void monitor_rows_hosts(struct shunt_page *page, const struct monitor_look *look);
void monitor_rows_processes(struct shunt_page *page, const struct monitor_look *look);
void monitor_rows_streams(struct shunt_page *page, const struct monitor_look *look);
void monitor_rows_reasons(struct shunt_page *page, const struct monitor_look *look);
void monitor_rows_late(struct shunt_page *page, const struct monitor_look *look);
/* The mesh of `shunt ping --matrix --json`, which another process has written to a file. */
void monitor_matrix(struct shunt_page *page, const char *path);

/* ---- monitor_http.c ---- */

/* 0, or -1 after saying why not. It takes `listener`. */
int monitor_http_start(struct monitor *monitor, int listener);
/* Requests that wait for a look go on. Main thread. */
void monitor_http_resume(struct monitor *monitor);
void monitor_http_stop(struct monitor *monitor);

#endif
