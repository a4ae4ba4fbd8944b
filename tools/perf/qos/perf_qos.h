/* SPDX-License-Identifier: MIT */
/*
 * shunt perf qos: client processes that share one server process, each with a class of its own (HA-18). Time is cut
 * into periods by CLOCK_MONOTONIC, and all clients begin at the same moment of it. A client has a demand, which is
 * a number of requests each period.
 *
 * Options are in perf_qos.c, demands in perf_qos_demand.c, processes in perf_qos_run.c, reports in perf_qos_show.c.
 * The client process is perf_qos_client.c; the server process is that of all models (perf_server.c).
 */
#ifndef SHUNT_TOOLS_PERF_QOS_H
#define SHUNT_TOOLS_PERF_QOS_H

#include <stdio.h>

#include "tools/bench/bench.h"
#include "tools/perf/end/perf_end.h"

#define PERF_QOS_CLIENTS_MAX 64
#define PERF_QOS_PERIODS_MAX 600 /* with those of the warm-up */
#define PERF_QOS_DEMAND_MAX 1000000
#define PERF_QOS_EVENTS_MAX 8
#define PERF_QOS_VARIABLES_MAX 16

enum perf_qos_pattern { PERF_QOS_BURST, PERF_QOS_CONSTANT };

/* A command of the user's, at the beginning of a period. */
struct perf_qos_event {
	uint32_t period; /* from 1; one more than the periods: after the last */
	const char *command; /* for sh -c, with SERVER_PID in its environment */
};

struct perf_qos_plan {
	enum perf_qos_pattern pattern;
	uint32_t clients;
	uint32_t depth; /* requests that burst keeps outstanding */
	uint32_t request, reply; /* bytes */
	uint32_t period_ms, warm, periods;
	uint32_t demands[PERF_QOS_CLIENTS_MAX];
	bool plain; /* over TCP, without the library */
	const char *rules; /* SHUNT_QOS of the server, or NULL */
	/* "SHUNT_A=value", up to NULL */
	char *server_variables[PERF_QOS_VARIABLES_MAX + 2];
	char *client_variables[PERF_QOS_VARIABLES_MAX + 2];
	struct perf_qos_event events[PERF_QOS_EVENTS_MAX];
	size_t event_count;
};

struct perf_qos_client {
	uint64_t completed[PERF_QOS_PERIODS_MAX]; /* by measured period */
	uint64_t total; /* their sum */
	uint64_t all; /* with the warm-up and what came after the last period */
	double mean, p50, p99, p999, max; /* us; NAN: no request was completed */
	double cpu; /* seconds, from the first period's beginning */
	double wr, wr_bytes; /* of the engine; NAN: not known */
};

struct perf_qos_result {
	struct perf_qos_client clients[PERF_QOS_CLIENTS_MAX];
	double server_cpu; /* seconds */
	double cpus; /* processors that both ends used on average */
};

/* --- perf_qos_demand.c --- */

/* Shares `total` among the clients: 0, or -1 where no distribution has this name. */
int perf_qos_demand(const char *name, uint64_t total, uint32_t clients, uint32_t *demands);
/* "N,N,…", one for each client: 0, or -1. */
int perf_qos_demand_list(const char *text, uint32_t clients, uint32_t *demands);

/* --- perf_qos_run.c --- */

/* 0; -EINTR; or -1 and why. */
int perf_qos_run(const struct perf_qos_plan *plan, struct perf_qos_result *result,
		 char why[SHUNT_WHY_MAX]);

/* --- perf_qos_show.c --- */

void perf_qos_table(const struct perf_qos_plan *plan, const struct perf_qos_result *result);
/* Closes the file: 0, or -1 after saying why. */
int perf_qos_json(FILE *file, const char *path, const struct perf_qos_plan *plan,
		  const struct perf_qos_result *result);

/* --- perf_qos_client.c --- */

#define PERF_QOS_CLIENT_ARGUMENTS 11
/* The words of the client's command line, behind "qos"; `text` holds them. */
void perf_qos_client_arguments(const struct perf_qos_plan *plan, const char *port, uint32_t index,
			       char text[PERF_QOS_CLIENT_ARGUMENTS][24]);
int perf_qos_client(int argc, char **argv);

/* The command itself: shunt perf qos. */
int perf_qos(int argc, char **argv);

#endif
