/* SPDX-License-Identifier: MIT */
/*
 * IO threads that write to a peer, as in RDMAbox's Figures 1 and 8, in virtual time. They use the verbs of the soft
 * device with a cost model. The same load always has the same result. Outstanding requests are bounded by the
 * engine's windows (core/lane/window.c), one for each QP and that of the device.
 */
#ifndef SHUNT_TESTS_SOFT_IOPS_H
#define SHUNT_TESTS_SOFT_IOPS_H

#include <stdint.h>

struct iops_load {
	const char *model;	/* as SHUNT_SOFT_MODEL says it */
	uint32_t threads;	/* virtual */
	uint32_t qps;		/* thread t posts to QP t % qps; at most IOPS_QPS */
	uint32_t depth;		/* writes that a thread has outstanding at most */
	uint32_t bytes;		/* of a write; at most IOPS_BYTES */
	uint64_t think;		/* ns of CPU time that a thread needs from one write to the next */
	uint64_t window;	/* bytes outstanding over all threads at most: window_device; 0: without limit */
	uint64_t adapts;	/* SHUNT_TUNE=admit=aimd with a window of so many bytes at most for each QP; 0: off */
	uint64_t writes;	/* how many in all */
};

struct iops_result {
	uint64_t per_second;
	uint64_t wr_max, bytes_max; /* outstanding at most */
	uint64_t mean_ns;	/* from post_send to the completion */
	uint64_t misses, pauses;
	uint64_t window, cuts;	/* the windows of all QPs in the end, where they have a limit; how often they were cut */
};

enum { IOPS_THREADS = 64, IOPS_QPS = 16, IOPS_DEPTH = 4096, IOPS_BYTES = 1 << 20 };

/*
 * The load of the figures: 4 KiB and 32 outstanding a thread. `think` is an assumption, about what a
 * kernel block layer needs for a request, that saturates the preset's link with the fifth thread.
 */
#define IOPS_LOAD                                                                           \
	((struct iops_load){ .model = "connectx3", .threads = 1, .qps = 1, .depth = 32,       \
			     .bytes = 4096, .think = 3000, .writes = 20000 })

/*
 * The same where a QP alone cannot use the whole device: the model's `qp`, and a thread slower so that seven
 * saturate the link. Both are set for the paper's peaks: at 4 threads with one QP, at 7 with four.
 */
#define IOPS_UNITS "connectx3,qp=1240"
#define IOPS_UNITS_THINK 5000

/* Exits where the device does what it must not. */
struct iops_result iops_run(const struct iops_load *load);

#endif
