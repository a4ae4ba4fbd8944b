/* SPDX-License-Identifier: MIT */
/*
 * shunt advise. The figures are read (advise_metric.c) and judged (advise_verdict.c). The programs
 * are trees of processes (advise_tree.c, advise_server.c), run alone and in pairs (advise_run.c,
 * advise_pairs.c). Settings come from causes (advise_cause.c, advise_table.h) and are tried
 * (advise_try.c). Reports are text, JSON and HTML (advise_show.c, advise_json.c, advise_html.c).
 * advise_watch.c looks at running processes; advise.c has options and order.
 */
#ifndef SHUNT_TOOLS_ADVISE_H
#define SHUNT_TOOLS_ADVISE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "tools/bench/bench.h"

#define ADVISE_ROUNDS_MAX 49
#define ADVISE_PAIRS_MAX (2 * ADVISE_ROUNDS_MAX) /* an unclear verdict takes as many pairs again */

/* Exit statuses beside EXIT_FAILED and EXIT_USAGE. */
enum { ADVISE_EXIT_FASTER = 0, ADVISE_EXIT_SLOWER = 3, ADVISE_EXIT_SAME = 4 };

/* ---- the figure of a run ---- */

struct advise_metric {
	const char *program; /* whose output has it; NULL: the time of a run, or a user's pattern */
	const char *
		pattern; /* extended regular expression whose first group is a number; NULL: the time */
	const char *unit;
	bool lower; /* a lower figure is better */
	bool lines; /* ^ and $ are the ends of lines */
};

/* The rows of the command's program in *rows, the number of them; 0: the time counts. */
size_t advise_metric_find(char *const *argv, const struct advise_metric **rows);
/* NULL, or what is wrong with a user's expression; in `why`. */
const char *advise_metric_check(const char *pattern, char why[SHUNT_WHY_MAX]);
/* The figure in a text, by the first of the rows that matches; of several matches the geometric mean. 0 or -1. */
int advise_metric_read(const struct advise_metric *rows, size_t count, const char *text,
		       double *figure);

/* ---- the verdict ---- */

enum advise_verdict { ADVISE_MORE, ADVISE_FASTER, ADVISE_SLOWER, ADVISE_SAME };

extern const char *const advise_verdict_words[];

/*
 * `ratios` of `count` pairs: above 1 where the second of a pair was better. ADVISE_MORE: further pairs decide. It is never
 * told at 2 * `rounds` pairs, and always below `rounds`.
 */
enum advise_verdict advise_judge(const double *ratios, int count, int rounds);

/* ---- processes ---- */

/* CPU seconds so far of these processes and of all their descendants; those that were waited for count. */
double advise_tree_cpu(const pid_t *roots, size_t count);
/* The descendants of a process, at most `room`; how many. */
size_t advise_tree_list(pid_t root, pid_t *pids, size_t room);
/* Ends the descendants of this process: SIGTERM, so many seconds of patience, SIGKILL. Waits for their end. */
void advise_tree_end(double patience);

/* ---- the server ---- */

#define ADVISE_SERVERS_MAX 64

struct advise_server {
	const char *command; /* for a shell; NULL: it runs already */
	const char *ready; /* a text of its output */
	int port; /* 0: none was given */
	pid_t pids[ADVISE_SERVERS_MAX]; /* of one that runs already */
	size_t count;
	bool missed; /* the client's connections lead to no process that is visible */
	char name[32]; /* its program, escaped */
};

/* Does a process listen at that port, as far as this network namespace shows? */
bool advise_server_listens(int port);
/* A port at which one of these processes listens, or 0. */
int advise_server_any_port(const pid_t *pids, size_t count);
/* Does a process offer links for connections to that port? 0: to any. */
bool advise_server_offers(int port);
/* Finds the processes that listen at the port of a server that runs already. False: none is visible. */
bool advise_server_at(struct advise_server *server, int port);
/* The same by the peers of connections that the client's processes have just now. */
bool advise_server_of(struct advise_server *server, pid_t client);
/* Which of its processes does not map the library? 0: each one does, or this user may not know. */
pid_t advise_server_plain(const struct advise_server *server);

/* ---- one run ---- */

struct advise_run {
	double figure;
	double seconds; /* of the command */
	double client_cpu; /* seconds, with what it waited for */
	double server_cpu; /* seconds; NAN: no server is known */
};

/* A way to run the command. */
struct advise_way {
	bool shunted;
	char *const *variables; /* "SHUNT_…=value", up to NULL; or NULL */
};

struct advise_bench {
	char dir[PATH_MAX]; /* temporary, ours */
	char library[PATH_MAX];
	char *const *argv; /* the client command */
	const struct advise_metric *metrics;
	size_t metric_count; /* 0: the time counts */
	struct advise_metric own; /* a user's */
	struct advise_server server;
	double timeout; /* seconds for a run */
	int rounds;
	bool seek; /* look for the server of the client's connections in this run */
	bool dry; /* warm-up */
};

/* Numbers in statistics of several processes, added up: "counters", "stalls", "reasons", "totals". */
void advise_signs_add(json_t *sum, const json_t *statistics, int sign);

/* 0; -EINTR; or -1 and why. `client` and `server`, where they are not NULL, get the statistics of a shunted run. */
int advise_run(struct advise_bench *bench, const struct advise_way *way, struct advise_run *run,
	       json_t *client, json_t *server, char why[SHUNT_WHY_MAX]);

const char *advise_unit(const struct advise_bench *bench);
bool advise_is_lower(const struct advise_bench *bench);

/* ---- pairs ---- */

struct advise_pairs {
	struct advise_run runs[2][ADVISE_PAIRS_MAX];
	double ratios[ADVISE_PAIRS_MAX]; /* above 1: the second was better */
	int count;
	enum advise_verdict verdict;
	json_t *client, *server; /* statistics of the second's runs, added up */
};

void advise_pairs_init(struct advise_pairs *pairs);
void advise_pairs_free(struct advise_pairs *pairs);
/* Runs both ways in turns until there is a verdict. The same results as advise_run(). */
int advise_pairs_measure(struct advise_bench *bench, const struct advise_way ways[2],
			 const char *title, struct advise_pairs *pairs, char why[SHUNT_WHY_MAX]);
/* The figures of a run, in the order in which they are shown. */
enum advise_column {
	ADVISE_FIGURE,
	ADVISE_SECONDS,
	ADVISE_EACH,
	ADVISE_CLIENT,
	ADVISE_SERVER,
	ADVISE_COLUMNS
};
/* The column's name; NULL: this command has none of it. */
const char *advise_column_name(const struct advise_bench *bench, enum advise_column column);
/* Of the runs of a way; NAN: not known. */
struct shunt_spread advise_pairs_spread(const struct advise_bench *bench,
					const struct advise_pairs *pairs, int way,
					enum advise_column column);
struct shunt_spread advise_pairs_ratio(const struct advise_pairs *pairs);
/* How many pairs are on the side of the verdict; of "no difference", on the larger side. */
int advise_pairs_agree(const struct advise_pairs *pairs);

/* ---- causes, and settings for them ---- */

struct advise_cause {
	const char *settings; /* "SHUNT_A=1 SHUNT_B=2" */
	const char *text; /* the symptom */
};

#define ADVISE_CAUSES_MAX 16

/* Settings that could help by the statistics of both ends; the most likely first. */
size_t advise_causes(const json_t *client, const json_t *server,
		     struct advise_cause causes[ADVISE_CAUSES_MAX]);
/* Connections that ended before a link carried them, and that have no other reason for TCP. */
double advise_brief(const json_t *signs);
/* The limit that sends met most often, or NULL. */
const char *advise_bound(const json_t *client, const json_t *server);

/* ---- settings tried ---- */

#define ADVISE_TRIES_MAX 4

struct advise_try {
	struct advise_cause cause;
	struct advise_pairs pairs; /* the shunted default, and with these settings */
	bool failed;
	char why[SHUNT_WHY_MAX];
};

/* ---- the whole ---- */

struct advise_result {
	struct advise_bench *bench;
	struct advise_pairs pairs;
	struct shunt_share share; /* on the link, all runs together */
	struct advise_try tries[ADVISE_TRIES_MAX];
	size_t try_count;
	bool try_wanted;
	char command[512]; /* escaped */
};

/* 0, or -EINTR. */
int advise_try_all(struct advise_result *result);

/* Progress on a terminal: one line that is written over; NULL ends it. */
void advise_progress(const char *title, const struct advise_pairs *pairs, int rounds);
void advise_show(const struct advise_result *result);
void advise_json(const struct advise_result *result);
/* Files: 0, or -1 after saying why not. */
int advise_html(const struct advise_result *result, const char *path);
int advise_svg(const struct advise_result *result, const char *path);

/* Advice in words, each with a call of `say`. */
typedef void advise_say(void *arg, const char *text);
void advise_words(const struct advise_result *result, advise_say *say, void *arg);
/* "3.214", "87.1k", "?"; times need more digits than rates. */
const char *advise_number_text(double number, char buf[16]);
/* "1.02 times (0.98 to 1.05), in 7 of 10 pairs" */
const char *advise_ratio_text(const struct advise_pairs *pairs, char buf[96]);
/* "server: started anew for each run" */
const char *advise_server_text(const struct advise_server *server, char buf[160]);
/* "faster: plain TCP 18.20 times (17.00 to 19.10), in 5 of 5 pairs" */
const char *advise_verdict_text(const struct advise_result *result, char buf[256]);

/* --pid. The exit status. */
int advise_watch(char *const *pids, size_t count, double seconds, bool json);

#endif
