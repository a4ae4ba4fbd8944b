/* SPDX-License-Identifier: MIT */
/*
 * shunt stat: asking processes (stat_fetch.c), showing what they say (stat_show.c, stat_brief.c, stat_tcp.c), and what has
 * changed since the last look (stat_rate.c).
 */
#ifndef SHUNT_TOOLS_STAT_H
#define SHUNT_TOOLS_STAT_H

#include <jansson.h>
#include <stdbool.h>
#include <time.h>
#include "tools/ask/door.h"

#define SHUNT_STAT_WHY_MAX 256
#define SHUNT_LOOK_HOST_WHY 400

/* One process in one look. */
struct shunt_stat {
	const char *host;	/* another host, of which whose list has this name; NULL: this one */
	struct shunt_door door;
	json_t *process;	/* an object, or NULL */
	double at;		/* when it had answered, by shunt_seconds() */
	bool late;		/* it had not, when time was up */
	char why[SHUNT_STAT_WHY_MAX];	/* if there is no object, or something was left out of it; escaped */
};

/* Another host, as shunt monitor knows it (monitor_hosts.c). */
struct shunt_look_host {
	const char *name;
	bool up;		/* its last answer is fresh */
	time_t since;		/* when it began to answer, or has ceased to */
	char why[SHUNT_LOOK_HOST_WHY];	/* it is not up: printable */
};

struct shunt_look {
	struct shunt_stat *processes;
	size_t count;
	size_t shut;	/* doors not asked, of processes unknown; 0 where processes are named */
	struct shunt_look_host *hosts;
	size_t host_count;
};

/*
 * Asks all processes of this network namespace that offer statistics, at the same time. The wait
 * for answers ends after five seconds; where none is named, after two for other users' processes. In ascending order; with `count` processes that are wanted,
 * those in their order. 0, or -1 after saying why there is no look.
 */
int shunt_look_ask(struct shunt_look *look, const struct shunt_door *wanted, size_t count);
/* shunt_look_ask() with another deadline, in seconds, and another budget. */
struct shunt_budget_limits;
int shunt_look_within(struct shunt_look *look, const struct shunt_door *wanted, size_t count,
		      double patience, const struct shunt_budget_limits *limits);
void shunt_look_free(struct shunt_look *look);

/* A process then, for one now: the same engine, a while ago. NULL: none. */
const struct shunt_stat *shunt_look_find(const struct shunt_look *before, const struct shunt_stat *now);

/* The growth of a number per second. 0 where it has not, or where there is no `before`. */
double shunt_rate(const json_t *before, const json_t *now, const char *key, double seconds);
/* The same stream a while ago, or NULL. */
const json_t *shunt_rate_stream(const json_t *before, const json_t *stream);

/* before: NULL, or what it was `seconds` ago, for rates. */
void shunt_stat_show(const json_t *process, const json_t *before, double seconds);
/* One line about all of them. */
void shunt_stat_show_brief(const struct shunt_look *look);
/* The connections of all in the columns of ss(8). */
void shunt_stat_show_tcp(const struct shunt_look *look);

#endif
