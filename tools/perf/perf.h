/* SPDX-License-Identifier: MIT */
/*
 * shunt perf. Runs are made of models (perf_model.c), transports (perf_transport.c) and the size of
 * clusters (perf_cluster.c). One measurement is in perf_measure.c, medians in perf_result.c.
 * perf_table.c, perf_files.c and perf_plot.c report; perf.c has options and rounds. The programs
 * that are measured have perf_end.h.
 */
#ifndef SHUNT_TOOLS_PERF_H
#define SHUNT_TOOLS_PERF_H

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>

#include "tools/bench/bench.h"
#include "tools/perf/end/perf_end.h"
#include "tools/common/host.h"
#include "tools/perf/end/perf_open.h"

#define PERF_ROUNDS_MAX 99
#define PERF_MODELS_MAX 32
#define PERF_TRANSPORTS_MAX 16
#define PERF_NAME_MAX 64

/* ---- models ---- */

enum perf_cluster { PERF_CLUSTER_GIVEN, PERF_CLUSTER_MEDIUM, PERF_CLUSTER_LARGE };

struct perf_model {
	char name[PERF_NAME_MAX];		/* as asked for */
	struct perf_flow flows[PERF_FLOWS_MAX];
	const char *flow_names[PERF_FLOWS_MAX];	/* "" where there is one */
	size_t flow_count;
	enum perf_cluster cluster;		/* unless given, found by measuring */
	uint32_t large;				/* what was found for a large cluster, or 0 */
	uint32_t depth;				/* as asked for, or 0 */
	struct perf_open open;
};

/* 0, or -1 and what is wrong with it. */
int perf_model_parse(struct perf_model *model, const char *text, uint32_t depth,
		     char why[SHUNT_WHY_MAX]);
/* Makes it an open loop, with the rate in its name: as above. */
int perf_model_open(struct perf_model *model, const struct perf_open *open,
		    char why[SHUNT_WHY_MAX]);
uint32_t perf_model_conns(const struct perf_model *model);
void perf_model_set_cluster(struct perf_model *model, uint32_t requests);
/* For --help. */
extern const char perf_model_help[];

/* ---- transports ---- */

#define PERF_VARIABLES_MAX 16

struct perf_transport {
	char name[32];
	bool shunt;				/* else plain TCP */
	char *variables[PERF_VARIABLES_MAX + 1];	/* "SHUNT_…=value", up to NULL */
	char text[512];				/* what they point into */
};

struct perf_transports {
	struct perf_transport list[PERF_TRANSPORTS_MAX];
	size_t count;
	size_t base;	/* the first that is plain TCP, else 0 */
	bool has_base;	/* there is a plain one, to which the others are compared */
};

/* "tcp,shunt": 0, or -1 after saying what is wrong. */
int perf_transports_parse(struct perf_transports *transports, const char *text);
/* "NAME=SHUNT_A=1,SHUNT_B=2": adds one; as above. */
int perf_transports_variant(struct perf_transports *transports, const char *text);

/* ---- what is measured ---- */

/* metric, key in files, whether the flows of a run share it. NAN where there is none. */
#define PERF_METRICS(X)							\
	X(OPERATIONS, "operations", false)				\
	X(BYTES, "bytes", false)					\
	X(RATE, "operations_per_second", false)				\
	X(MBYTES, "megabytes_per_second", false)			\
	X(LATENCIES, "latencies", false)				\
	X(KEPT, "latencies_kept", false)				\
	X(P50, "p50_us", false)						\
	X(P90, "p90_us", false)						\
	X(P99, "p99_us", false)						\
	X(P999, "p99.9_us", false)					\
	X(MAX, "max_us", false)						\
	X(RATIO, "ratio_to_tcp", false)					\
	X(RUN_OPERATIONS, "run_operations", true)			\
	X(SHARE, "link_share", true)					\
	X(WR, "wr", true)						\
	X(DOORBELLS, "doorbells", true)					\
	X(WR_BYTES, "wr_bytes", true)					\
	X(PER_WR, "bytes_per_wr", true)					\
	X(COMPLETIONS, "completions", true)				\
	X(EVENTS, "completion_events", true)				\
	X(CPU, "cpu_seconds", true)					\
	X(SWITCHES, "voluntary_switches", true)				\
	X(TOUCHED, "lines_touched", true)				\
	X(DUMMIES, "lines_dummy", true)					\
	X(SCANNED, "lines_scanned", true)				\
	X(CHECKED, "bytes_checked", true)				\
	X(SPREAD, "spread_percent", false)				\
	X(LATE, "late", false)						\
	X(UNSENT, "unsent", false)

enum perf_metric {
#define X(metric, key, shared) PERF_##metric,
	PERF_METRICS(X)
#undef X
	PERF_METRIC_COUNT
};

struct perf_metric_row {
	const char *key;
	bool shared;
};

extern const struct perf_metric_row perf_metric_rows[PERF_METRIC_COUNT];

/* perf_pin.c */
struct perf_pin {
	bool given;
	cpu_set_t server, client;
	char text[32];			/* as given, else "" */
};

/* 0, or -1 and why. */
int perf_pin_parse(struct perf_pin *pin, const char *text, char why[SHUNT_WHY_MAX]);

/* How all models are measured. */
struct perf_setup {
	unsigned int warm_ms, measured_ms;
	unsigned int threads;
	struct perf_work work;
	struct perf_pin pin;
	int rounds;			/* at least */
	int max_rounds;			/* with a spread */
	double spread;			/* percent below which rounds end; 0: after `rounds` */
	struct shunt_host machine;
	char remote[64];		/* the address of the server of another host, or "" */
	uint16_t plain_port, shunt_port;
	char remote_machine[256];	/* as the server says */
};

struct perf_run {
	double metrics[PERF_FLOWS_MAX][PERF_METRIC_COUNT];
	struct shunt_share share;
};

/* Why there are no more rounds. */
enum perf_end_reason {
	PERF_ENDED_EARLY,		/* a failure, or an interrupt */
	PERF_ENDED_COUNT,		/* as many as asked for */
	PERF_ENDED_SPREAD,		/* the spread was below the one asked for */
	PERF_ENDED_LIMIT,		/* it was not, and there were the most rounds allowed */
};

struct perf_result {
	const struct perf_setup *setup;
	const struct perf_model *model;
	const struct perf_transports *transports;
	int rounds;				/* complete ones */
	enum perf_end_reason ended;
	struct perf_run *runs;			/* those of a round follow each other */
	bool failed;
	char why[SHUNT_WHY_MAX];
};

int perf_result_init(struct perf_result *result, const struct perf_setup *setup,
		     const struct perf_model *model, const struct perf_transports *transports);
void perf_result_free(struct perf_result *result);
struct perf_run *perf_result_run(const struct perf_result *result, int round, size_t transport);
/* Ratios of a round whose runs are there. */
void perf_result_compare(struct perf_result *result, int round);
/* After a round: whether there is another, and in `ended` why not. */
bool perf_result_more(struct perf_result *result);
/* "count", "spread", "limit" or "early" */
const char *perf_ended_text(enum perf_end_reason ended);
/*
 * Of the complete rounds. Ratio of the medians. The spread is the relative standard deviation of
 * the rounds' rates, in percent. An open loop has a given rate, so its spread is that of P50.
 */
double perf_result_median(const struct perf_result *result, size_t transport, size_t flow,
			  enum perf_metric metric);
/* The worst of the complete rounds. */
struct shunt_share perf_result_share(const struct perf_result *result, size_t transport);

/* ---- one measurement ---- */

struct perf_bench {
	char dir[PATH_MAX];		/* temporary, ours */
	char library[PATH_MAX];
	char program[PATH_MAX];		/* this one */
};

/* 0; -EINTR; or -1 and why. */
int perf_measure(const struct perf_bench *bench, const struct perf_model *model,
		 const struct perf_transport *transport, const struct perf_setup *setup,
		 struct perf_run *run, char why[SHUNT_WHY_MAX]);

/* Finds out what a large cluster of a model is, as above. */
int perf_cluster_find(const struct perf_bench *bench, struct perf_model *model,
		      const struct perf_transport *transport, const struct perf_setup *setup,
		      char why[SHUNT_WHY_MAX]);

/* ---- reports ---- */

/* "model" or "model flow", and the size of its clusters if that was found. */
const char *perf_label(const struct perf_model *model, size_t flow, char buf[PERF_NAME_MAX + 32]);

void perf_table(const struct perf_result *results, size_t count);
/* Both close the file; 0, or -1 after saying why. */
int perf_csv(FILE *file, const char *path, const struct perf_result *results, size_t count);
int perf_json(FILE *file, const char *path, const struct perf_result *results, size_t count);
/* A page with pictures. 0, or -1 after saying why not. */
int perf_html(const char *path, const struct perf_result *results, size_t count);
/* Whether a plot can be made, 0 or -1 after saying why not; and making it. */
int perf_plot_check(const char *path);
int perf_plot(const struct perf_bench *bench, const char *path, const struct perf_result *results,
	      size_t count);

#endif
