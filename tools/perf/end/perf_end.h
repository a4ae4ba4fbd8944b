/* SPDX-License-Identifier: MIT */
/*
 * The two programs that `shunt perf` measures: ordinary socket programs that know nothing of Shunt.
 * Each is this command again, as `shunt perf-end server` (perf_server.c) or `shunt perf-end client`
 * (perf_client.c). Both check every byte against a pattern (perf_pattern.c) unless they are asked for
 * other work (perf_work.h); the client keeps the latencies (perf_samples.c).
 *
 * A connection begins with a greeting of the client. Where its buffers take time to make, the server
 * answers with one byte, and the client waits for that. Then requests and replies follow each other
 * without headers: their sizes are in the greeting. When the client shuts its direction down, the
 * server answers with its account and closes.
 */
#ifndef SHUNT_TOOLS_PERF_END_H
#define SHUNT_TOOLS_PERF_END_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/perf/end/perf_work.h"

#define PERF_LARGE_MAX (16 << 20)	/* bytes of a request or a reply of the model rr */
#define PERF_MESSAGE_MAX (1 << 20)	/* of the other models */
#define PERF_CONNS_MAX 1024		/* connections of a run */
#define PERF_FLOWS_MAX 2
#define PERF_DEPTH_MAX 4096
#define PERF_INTERVAL_MAX 10000000	/* us */
#define PERF_THREADS_MAX 64
#define PERF_SECONDS_MAX 600

/* How an end exits, beside 0. */
enum {
	PERF_END_FAILED = 1,
	PERF_END_PEER = 3,	/* the other end went away; it knows why */
};

enum perf_direction { PERF_REQUESTS, PERF_REPLIES };

struct perf_sizes {
	uint32_t request, reply;	/* bytes; no reply makes it a one-way stream */
	uint32_t writes;		/* of 100 requests, so many have the two sizes swapped */
};

/* Connections that do the same. */
struct perf_flow {
	struct perf_sizes sizes;
	uint32_t burst;			/* requests of a cluster; 0: without end */
	uint32_t depth;			/* most requests without their replies */
	uint32_t interval_us;		/* idle time between the last reply of a cluster and the next */
	uint32_t conns;			/* 0: the swapped requests of the flow before it, counted apart */
};

/* perf_flow.c. A whole number, for bytes also with the suffix K or M: 0, or -1. */
int perf_number(const char *text, uint64_t min, uint64_t max, uint64_t *number);
/* As an argument for the client, and back: 0, or -1 where it is none. */
#define PERF_FLOW_TEXT_MAX 80
void perf_flow_text(const struct perf_flow *flow, char text[PERF_FLOW_TEXT_MAX]);
int perf_flow_parse(const char *text, struct perf_flow *flow);
/*
 * Whether a request, counted from 0, has its sizes swapped. Those that have are as far from each
 * other as they can be: with 5 of 100 they are the requests 19, 39, 59, ...
 */
bool perf_is_write(const struct perf_sizes *sizes, uint64_t request);
uint32_t perf_size(const struct perf_sizes *sizes, enum perf_direction direction, uint64_t message);

/* A connection's first bytes. Both hosts have the same byte order, or the version is wrong. */
struct perf_greeting {
	char magic[8];
	uint32_t version;
	uint32_t index;			/* of the connection; chooses its pattern */
	struct perf_sizes sizes;
	uint32_t skip;			/* bytes between the greeting and the first request */
	uint32_t conns;			/* of the run */
	struct perf_work work;
};

#define PERF_MAGIC "shuntprf"
#define PERF_VERSION 2

/*
 * A server across hosts (`shunt perf --serve`) also takes a greeting with this magic. It answers with
 * struct perf_hello, and closes.
 */
#define PERF_MAGIC_HELLO "shuntprq"

struct perf_hello {
	char magic[8];			/* PERF_MAGIC_HELLO */
	uint32_t version;
	uint32_t shunt_port;		/* of the shunted process; this one is plain */
	char machine[256];		/* printable, for people */
};

/* With magic and version. */
void perf_greeting_make(struct perf_greeting *greeting, const struct perf_sizes *sizes);
/* Whether the server answers it with PERF_READY. */
bool perf_greeting_waits(const struct perf_greeting *greeting);
#define PERF_READY 'r'
/* A server takes no other. */
bool perf_greeting_valid(const struct perf_greeting *greeting);

/* A connection's last bytes: what the server did for it. */
struct perf_account {
	uint64_t requests;
	uint64_t touched, dummies;	/* lines of buffers that were sent, and of others */
	uint64_t scanned;		/* lines */
	uint64_t checked;		/* bytes */
	uint64_t cpu_ns, switches;	/* of the process since the first connection of the run */
};

/* Lines and bytes; not what each end counts in its own way. */
void perf_account_add(struct perf_account *sum, const struct perf_account *account);

/* perf_pattern.c: each direction of each connection carries its own endless sequence of bytes. */
#define PERF_CHUNK_MAX (256 << 10)	/* bytes that are received at once, not by messages */

/* Room for messages of so many bytes, once more or less: 0 or -ENOMEM. Pointers go stale. */
int perf_pattern_make(size_t bytes);
/* The bytes from that offset of the sequence. */
const uint8_t *perf_pattern(uint32_t index, enum perf_direction direction, uint64_t offset);

/*
 * perf_samples.c: latencies in nanoseconds. While there is room each of them is kept and percentiles
 * are exact; past that, a uniform sample of that size. The largest is always exact.
 */
struct perf_samples {
	uint64_t *ns;
	size_t room, kept;
	uint64_t seen, max, random;
};

int perf_samples_init(struct perf_samples *samples, size_t room);
void perf_samples_add(struct perf_samples *samples, uint64_t ns);
/* Of several threads into one, in `into`, which is initialised here. */
int perf_samples_merge(struct perf_samples *into, const struct perf_samples *const from[],
		       size_t count);
void perf_samples_sort(struct perf_samples *samples);
/* The nearest rank, of sorted samples; p is 0..1. There must be one. */
uint64_t perf_samples_rank(const struct perf_samples *samples, double p);
void perf_samples_free(struct perf_samples *samples);

/* perf_end.c */
uint64_t perf_now(void);	/* CLOCK_MONOTONIC, nanoseconds */
void perf_end_fail(int status, const char *format, ...)
	__attribute__((noreturn, format(printf, 2, 3)));
/* CPU time and context switches of this process so far. */
struct perf_usage {
	double cpu;		/* user + system seconds, all threads */
	double switches;	/* voluntary context switches */
};
struct perf_usage perf_usage_now(void);

/* They return the exit status. */
int perf_server(int argc, char **argv);
int perf_open_server(int argc, char **argv);
int perf_client(int argc, char **argv);

#endif
