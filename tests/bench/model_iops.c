/* SPDX-License-Identifier: MIT */
/*
 * RDMAbox's Figures 1 and 8 in virtual time: writes a second by number of IO threads, on the soft device with a cost
 * model. The first table has no limit to what is outstanding, the second a window. It shows a shape; the numbers are
 * the model's.
 *
 *     model_iops [--model MODEL] [--threads MOST] [--qps N] [--depth N] [--bytes N] [--think NS]
 *                [--window BYTES] [--adapt BYTES]
 *
 * Without --window the window is what was outstanding where the first table has its peak. The window is the engine's
 * (core/lane/window.c), with window_device. With --adapt a third table has the engine's SHUNT_TUNE=admit=aimd, which
 * finds a window for each QP by itself, of at most so many bytes.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include "tests/soft/iops.h"

static const struct option options[] = {
	{ "model", required_argument, NULL, 'm' },   { "threads", required_argument, NULL, 't' },
	{ "qps", required_argument, NULL, 'q' },     { "depth", required_argument, NULL, 'd' },
	{ "bytes", required_argument, NULL, 'b' },   { "think", required_argument, NULL, 'i' },
	{ "window", required_argument, NULL, 'w' },  { "adapt", required_argument, NULL, 'a' },
	{ NULL, 0, NULL, 0 },
};

/* One table; which line of it is the best. */
static struct iops_result table(struct iops_load load, uint32_t most)
{
	struct iops_result best = { 0 }, now;

	printf("%7s %9s %9s %15s %8s %9s %9s\n", "threads", "kIOPS", "in flight", "bytes in flight", "mean us",
	       "misses", "pauses");
	for (load.threads = 1; load.threads <= most; load.threads++) {
		now = iops_run(&load);
		printf("%7u %9.1f %9llu %15llu %8.2f %8.1f%% %9llu\n", load.threads,
		       (double)now.per_second / 1e3, (unsigned long long)now.wr_max,
		       (unsigned long long)now.bytes_max, (double)now.mean_ns / 1e3,
		       100.0 * (double)now.misses / (double)load.writes,
		       (unsigned long long)now.pauses);
		if (now.per_second > best.per_second)
			best = now;
	}
	return best;
}

int main(int argc, char **argv)
{
	struct iops_load load = IOPS_LOAD;
	uint64_t window = 0, adapts = 0;
	uint32_t most = 12;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		uint64_t number = option == 'm' || option == '?' ? 0 : strtoull(optarg, NULL, 0);

		switch (option) {
		case 'm':
			load.model = optarg;
			break;
		case 't':
			most = (uint32_t)number;
			break;
		case 'q':
			load.qps = (uint32_t)number;
			break;
		case 'd':
			load.depth = (uint32_t)number;
			break;
		case 'b':
			load.bytes = (uint32_t)number;
			break;
		case 'i':
			load.think = number;
			break;
		case 'w':
			window = number;
			break;
		case 'a':
			adapts = number;
			break;
		default:
			return 2;
		}
	}
	printf("model %s: %u-byte writes, %u QPs, at most %u outstanding a thread, %llu ns between them\n\n",
	       load.model, load.bytes, load.qps, load.depth, (unsigned long long)load.think);
	load.window = table(load, most).bytes_max;
	if (window)
		load.window = window;
	printf("\nwindow of %llu bytes\n\n", (unsigned long long)load.window);
	table(load, most);
	if (!adapts)
		return 0;
	load.window = 0;
	load.adapts = adapts;
	printf("\nadapted, up to %llu bytes for each QP\n\n", (unsigned long long)adapts);
	table(load, most);
	return 0;
}
