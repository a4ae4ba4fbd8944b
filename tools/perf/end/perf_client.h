/* SPDX-License-Identifier: MIT */
/* The client's threads (perf_worker.c) and what each of them has to itself. */
#ifndef SHUNT_TOOLS_PERF_CLIENT_H
#define SHUNT_TOOLS_PERF_CLIENT_H

#include <pthread.h>

#include "tools/perf/end/perf_open.h"
#include "tools/perf/end/perf_talk.h"

struct perf_conn {
	const struct perf_flow *flow;
	struct perf_tally *tally;	/* the one after it has the swapped requests, if there are any */
	struct perf_conn *next;		/* of the worker */
	struct perf_conn *next_idle;	/* of the flow's queue */
	bool queued;			/* in that queue; in an open loop only */
	int fd;
	uint32_t events;		/* what epoll watches it for */
	struct perf_talk talk;
	uint32_t left;			/* requests of the cluster still to begin */
	uint64_t due;			/* when the next cluster begins */
	uint64_t *stamps;		/* when the outstanding requests began or were due, a ring of the depth */
	bool ending;			/* our direction is shut down */
	struct perf_account account;	/* the server's */
	size_t counted;			/* bytes of it that have come */
};

struct perf_tally {
	uint64_t measured, total;	/* operations between begin and end, and all */
	struct perf_samples samples;
	/*
	 * Idle connections; the one that idles longest is due first, as all idle equally long. In an
	 * open loop those that may have room for a request.
	 */
	struct perf_conn *idle, **idle_tail;
};

struct perf_worker {
	pthread_t thread;
	int epoll;
	uint64_t now;			/* a moment ago */
	uint64_t begin, end;		/* what ends between these counts */
	size_t flow_count;
	struct perf_tally tallies[PERF_FLOWS_MAX];
	struct perf_conn *conns;
	struct perf_schedule schedule;	/* of an open loop */
	uint64_t open;			/* connections */
	bool stopping;
	uint8_t buffer[64 << 10];
};

void perf_worker_init(struct perf_worker *worker, size_t flow_count, size_t samples);
/* A connection that has been made; it becomes the worker's. */
void perf_worker_add(struct perf_worker *worker, struct perf_conn *conn, size_t flow);
/* Until the time is over and all connections have ended in order. */
void perf_worker_run(struct perf_worker *worker);
void perf_worker_free(struct perf_worker *worker);

#endif
