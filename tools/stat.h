/* SPDX-License-Identifier: MIT */
/*
 * shunt stat: asking processes (stat_fetch.c), showing what they say (stat_show.c), and what has changed since the last
 * look (stat_rate.c).
 */
#ifndef SHUNT_TOOLS_STAT_H
#define SHUNT_TOOLS_STAT_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#define SHUNT_STAT_WHY_MAX 256

/* One process in one look. */
struct shunt_stat {
	pid_t pid;
	json_t *process;	/* an object, or NULL */
	double at;		/* when it had answered, by shunt_seconds() */
	bool late;		/* it had not, when time was up */
	char why[SHUNT_STAT_WHY_MAX];	/* if there is no object; escaped */
};

struct shunt_look {
	struct shunt_stat *processes;
	size_t count;
};

/*
 * All processes of this network namespace that offer statistics, in ascending order, not yet asked. 0, or -1 after
 * saying why.
 */
int shunt_look_list(struct shunt_look *look);
/* Asks them all at the same time; what has not been answered in five seconds is not waited for. */
void shunt_look_ask(struct shunt_look *look);
void shunt_look_free(struct shunt_look *look);

/* A process then, for one now: the same engine, a while ago. NULL: there is none. */
const struct shunt_stat *shunt_look_find(const struct shunt_look *before, const struct shunt_stat *now);

/* The growth of a number per second. 0 where it has not, or where there is no `before`. */
double shunt_rate(const json_t *before, const json_t *now, const char *key, double seconds);
/* The same stream a while ago, or NULL. */
const json_t *shunt_rate_stream(const json_t *before, const json_t *stream);

/* before: NULL, or what it was `seconds` ago, for rates. */
void shunt_stat_show(const json_t *process, const json_t *before, double seconds);

#endif
