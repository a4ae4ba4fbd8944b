/* SPDX-License-Identifier: MIT */
/*
 * Shared by the commands that measure: processes that never outlive us (bench_child.c) and their
 * last words (bench_said.c), a folder for their files (bench_scratch.c). Also the engines'
 * statistics of a run (bench_share.c), and figures (bench_figure.c).
 */
#ifndef SHUNT_TOOLS_BENCH_H
#define SHUNT_TOOLS_BENCH_H

#include <limits.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SHUNT_WHY_MAX 512	/* room for the reason of a failure */

/* ---- processes ---- */

struct shunt_child {
	pid_t pid;
	int pidfd;
	int status;	/* as from wait(2), once it has ended */
	double cpu;	/* user + system seconds, once it has ended */
};

struct shunt_child_start {
	char *const *argv;
	const char *library;	/* libshunt.so to preload, or NULL for a bare run */
	const char *stats;	/* file for the engine's statistics, or NULL */
	char *const *variables;	/* "NAME=value" to set where there is a library, up to NULL; or NULL */
	const cpu_set_t *cpus;	/* on which it may run, or NULL for all of ours */
	int inherit;		/* a descriptor that it gets as SHUNT_CHILD_FD, or 0 */
	const char *out, *err;	/* files for standard output and standard error; NULL: ours */
	const char *dir;	/* working directory */
};

#define SHUNT_CHILD_FD 3

/* Makes SIGINT, SIGTERM and SIGHUP end every wait below with -EINTR. */
int shunt_child_init(void);

int shunt_child_start(struct shunt_child *child, const struct shunt_child_start *start);
/* Waits for the child's end: 0, -ETIMEDOUT, or -EINTR. */
int shunt_child_wait(struct shunt_child *child, double seconds);
/* Waits until something listens on the loopback port: 0, -ECHILD if the child ends first, or as above. */
int shunt_child_wait_listening(struct shunt_child *child, int port, double seconds);
/*
 * Reads the child's line from the pipe, without the newline. 0, -ECHILD if the child closes it or
 * ends first, -EMSGSIZE, or as above.
 */
int shunt_child_wait_line(struct shunt_child *child, int pipe, double seconds, char *line,
			  size_t size);
/* CPU seconds so far of a child that has not been waited for. */
double shunt_child_cpu(const struct shunt_child *child);
/* SIGTERM, patience, SIGKILL. Nothing if it has ended. */
void shunt_child_stop(struct shunt_child *child);
/* A loopback port that was free a moment ago, or -errno. */
int shunt_child_free_port(void);

/*
 * Why waiting for a child failed (rc), or how it ended (-ECHILD): "the server ended with status 1:
 * <the last it said>". Returns -1, or -EINTR where rc is that.
 */
int shunt_child_explain(const char *who, int rc, const struct shunt_child *child, const char *out,
			const char *err, char why[SHUNT_WHY_MAX]);

/* ---- a folder of our own ---- */

/* 0, or -1 after saying why not. */
int shunt_scratch_make(const char *command, char dir[PATH_MAX]);
/* With the plain files in it. */
void shunt_scratch_remove(const char *dir);

#define SHUNT_FILE_MAX (PATH_MAX + 32)

/* Output and statistics of both ends of a run. */
struct shunt_pair_files {
	char server_out[SHUNT_FILE_MAX], server_err[SHUNT_FILE_MAX], server_stats[SHUNT_FILE_MAX];
	char client_out[SHUNT_FILE_MAX], client_err[SHUNT_FILE_MAX], client_stats[SHUNT_FILE_MAX];
};

/* Names the files, and removes those of an earlier run. */
void shunt_scratch_pair(struct shunt_pair_files *files, const char *dir);

/* ---- what the engines say ---- */

struct shunt_share {
	int known;		/* both processes wrote statistics */
	int late;		/* share is of the bytes after each stream's first 256 KiB; else of all */
	int agree;		/* what one sent by link the other received by link, both ways */
	double share;		/* 0..1 on the link; the lower of the two processes' */
	char why[128];		/* if not known */
};

/* The "totals" of one end's statistics, or the sums of those of several processes. */
struct json_t;
void shunt_share_of(const struct json_t *totals, struct shunt_share *share);
/* Without a server's file, what the client says: the two are on different hosts. */
void shunt_share_read(const char *client_path, const char *server_path, struct shunt_share *share);
/* Keeps the worse of the two: a claim about the link must hold in each round. */
void shunt_share_worse(struct shunt_share *worst, const struct shunt_share *other);
/* "99.98%", with * where it is of all bytes and ! where the two ends disagree; "?" if not known. */
const char *shunt_share_text(const struct shunt_share *share, char buf[24]);

/* Which of these marks a table has, and why the last "?". All zero at first. */
struct shunt_share_legend {
	int whole, differ;
	char unknown[sizeof(((struct shunt_share *)NULL)->why)];
};

void shunt_share_legend_add(struct shunt_share_legend *legend, const struct shunt_share *share);
/* A line for each of them. */
void shunt_share_legend_print(const struct shunt_share_legend *legend);

/* The counters of that name in a process' statistics, added to sums[]. 0, or -1 if there are none. */
int shunt_counters_add(const char *path, const char *const names[], double sums[], size_t count);

/* ---- figures ---- */

struct shunt_spread {
	double min, median, max;
};

/* Sorts them. */
struct shunt_spread shunt_spread_of(double *values, size_t count);
/* "51.2k", "1.23M", "346.9". */
const char *shunt_figure_text(double figure, char buf[16]);

#endif
