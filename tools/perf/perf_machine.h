/* SPDX-License-Identifier: MIT */
/* The machine that figures come from. Without it a figure says little (LN-06, LN-15). */
#ifndef SHUNT_TOOLS_PERF_MACHINE_H
#define SHUNT_TOOLS_PERF_MACHINE_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define PERF_CACHES_MAX 8

struct perf_cache {
	char name[8];		/* "L1d", "L3" */
	uint64_t bytes;
	char cpus[32];		/* that share it, as the kernel lists them */
};

/* Of the first CPU. A text is "" and a number 0 where the system does not say. */
struct perf_machine {
	char cpu[96];
	int cpus;		/* online */
	struct perf_cache caches[PERF_CACHES_MAX];
	size_t cache_count;
	char kernel[96];
	char congestion[32];	/* what new TCP connections use */
	uint64_t memory;	/* bytes */
};

/* From /proc and /sys below `root`, which is "" for this machine's. */
void perf_machine_read(struct perf_machine *machine, const char *root);
/* Bytes of the largest cache; 32M where the system does not say. */
uint64_t perf_machine_last_level(void);
/* "L1d 32K, L3 32M"; how long it is at most. */
#define PERF_CACHES_TEXT_MAX 256
const char *perf_machine_caches(const struct perf_machine *machine,
				char text[PERF_CACHES_TEXT_MAX]);
/* All of it in one line. Returns how long that would be, as snprintf() does. */
int perf_machine_text(const struct perf_machine *machine, char *text, size_t room);
/* An object; no member where the system does not say. */
json_t *perf_machine_json(const struct perf_machine *machine);
/* "32K", "1M" */
const char *perf_machine_bytes(uint64_t bytes, char text[24]);

#endif
