/* SPDX-License-Identifier: MIT */
/* The machine that figures come from. Without it a figure says little (LN-06, LN-15). */
#ifndef SHUNT_TOOLS_HOST_H
#define SHUNT_TOOLS_HOST_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define SHUNT_CACHES_MAX 8

struct shunt_cache {
	char name[8];		/* "L1d", "L3" */
	uint64_t bytes;
	char cpus[32];		/* that share it, as the kernel lists them */
};

/* Of the first CPU. A text is "" and a number 0 where the system does not say. */
struct shunt_host {
	char cpu[96];
	int cpus;		/* online */
	int allowed;		/* CPUs on which this process may run */
	char place[24];		/* "virtual" or "bare"; "" where the CPU does not say */
	struct shunt_cache caches[SHUNT_CACHES_MAX];
	size_t cache_count;
	char kernel[96];
	char congestion[32];	/* what new TCP connections use */
	uint64_t memory;	/* bytes */
	/* Of the CPU's vulnerabilities: those that the kernel mitigates, and those that it leaves. */
	struct shunt_flaws {
		char names[512]; /* in order, ", " between them */
		int count;
	} mitigated, vulnerable;
	/* Nanoseconds, medians. 0: not measured. */
	double switched;	/* a wake-up, by write(), of a process on the same CPU */
	double wakeup;		/* the same of one on another CPU; 0 where there is one CPU */
	double system_call;	/* getppid(), which does nothing */
};

/* From /proc and /sys below `root`, which is "" for this machine's. */
void shunt_host_read(struct shunt_host *host, const char *root);
/* host_cost.c: measures the three costs, in 0.3 s. */
void shunt_host_measure(struct shunt_host *host);
/* Bytes of the largest cache; 32M where the system does not say. */
uint64_t shunt_host_last_level(void);
/* "L1d 32K, L3 32M"; how long it is at most. */
#define SHUNT_CACHES_TEXT_MAX 256
const char *shunt_host_caches(const struct shunt_host *host,
				char text[SHUNT_CACHES_TEXT_MAX]);
/* All that is read, without the flaws, in one line. Returns how long that would be, as snprintf() does. */
int shunt_host_text(const struct shunt_host *host, char *text, size_t room);
/* For people: the line above, the flaws, the costs and how to read them. */
void shunt_host_lines(const struct shunt_host *host,
			 void (*line)(void *arg, const char *text), void *arg);
/* "This machine" and the lines, wrapped, on standard output. */
void shunt_host_print(const struct shunt_host *host);
/* An object; no member where the system does not say. */
json_t *shunt_host_json(const struct shunt_host *host);
/* "32K", "1M" */
const char *shunt_host_bytes(uint64_t bytes, char text[24]);

#endif
