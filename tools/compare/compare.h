/* SPDX-License-Identifier: MIT */
/*
 * shunt perf programs. From the bottom, on top of what bench.h has: workloads (compare_work.c), one
 * measurement (compare_measure.c), reports (compare_report.c), and the rounds of it all (compare.c).
 */
#ifndef SHUNT_TOOLS_COMPARE_H
#define SHUNT_TOOLS_COMPARE_H

#include <limits.h>
#include <stdint.h>
#include <stdio.h>

#include "tools/bench/bench.h"
#include "tools/common/host.h"

#define COMPARE_WHY_MAX SHUNT_WHY_MAX
#define COMPARE_ROUNDS_MAX 99

enum compare_mode { COMPARE_TCP, COMPARE_SHUNT, COMPARE_MODES };

/* ---- workloads ---- */

enum compare_family { COMPARE_REDIS, COMPARE_IPERF };

struct compare_workload {
	const char *name, *title;
	enum compare_family family;
	int quick;			/* part of --quick */
	int clients, pipeline;		/* redis */
	const char *iperf[3];		/* options of the iperf3 client */
};

#define COMPARE_WORKLOADS_MAX 32
extern const struct compare_workload compare_workloads[];
extern const size_t compare_workload_count;

#define COMPARE_ARGS_MAX 32
struct compare_command {
	char *argv[COMPARE_ARGS_MAX];
	char text[512];		/* what argv points into */
};

const char *compare_workload_unit(const struct compare_workload *w);
const char *compare_workload_cpu_unit(const struct compare_workload *w);
/* Package to install if a program is missing; else NULL. */
const char *compare_workload_missing(const struct compare_workload *w);
void compare_workload_server(const struct compare_workload *w, int port, struct compare_command *c);
/* requests for redis, seconds for iperf3. */
void compare_workload_client(const struct compare_workload *w, int port, uint64_t requests,
			     double seconds, struct compare_command *c);
/*
 * Reads the client's output: the figure in the workload's unit, and how many operations (requests,
 * GiB) it stands for. 0, or -1 and why.
 */
int compare_workload_result(const struct compare_workload *w, const char *path, uint64_t requests,
			    double *figure, double *operations, char why[COMPARE_WHY_MAX]);

/* ---- one measurement ---- */

struct compare_run {
	double figure;		/* requests/s or Gbit/s */
	double cpu;		/* microseconds a request or seconds a GiB, both processes */
	struct shunt_share share;
};

struct compare_bench {
	char dir[PATH_MAX];	/* temporary, ours */
	char library[PATH_MAX];
};

/* 0; -EINTR; or -1 and why. */
int compare_measure(const struct compare_bench *bench, const struct compare_workload *w,
		    enum compare_mode mode, uint64_t requests, double seconds,
		    struct compare_run *run, char why[COMPARE_WHY_MAX]);

/* ---- reports ---- */

struct compare_result {
	const struct compare_workload *workload;
	int rounds;				/* complete ones */
	struct compare_run runs[COMPARE_MODES][COMPARE_ROUNDS_MAX];
	int skipped, failed;
	char why[COMPARE_WHY_MAX];		/* if skipped or failed */
};

void compare_report_progress(const struct compare_result *result, size_t index, size_t count,
			     int rounds);
void compare_report_progress_end(const struct compare_result *result);
/* Of the complete rounds. */
struct shunt_spread compare_report_figure(const struct compare_result *result,
					  enum compare_mode mode);
double compare_report_cpu(const struct compare_result *result, enum compare_mode mode);
double compare_report_ratio(const struct compare_result *result);
struct shunt_share compare_report_share(const struct compare_result *result);
const char *compare_report_spread(struct shunt_spread spread, char buf[40]);
void compare_report_table(const struct compare_result *results, size_t count,
			  const struct shunt_host *host);
void compare_report_json(const struct compare_result *results, size_t count, int rounds,
			 const struct shunt_host *host);
/* compare_html.c: the same as a page. 0, or -1 after saying why not. */
int compare_html(const struct compare_result *results, size_t count, const struct shunt_host *host,
		 const char *path);
/* One picture of the workloads that were measured. 0, or -1 after saying why not. */
int compare_svg(const struct compare_result *results, size_t count, const char *path);

#endif
