/* SPDX-License-Identifier: MIT */
/*
 * Latency of memory by how much of it is in use: each load's address comes from the load before. In random order, which
 * no prefetcher follows, and line by line, which it does. As Table 2 of On Limitations of Network Acceleration.
 *
 *     chase [MILLISECONDS [BYTES...]]
 *
 * First a line `cache LEVEL TYPE BYTES WAYS LINE` for each cache of this processor that the kernel tells of. Then for
 * each working set: bytes, ns for a load in random order, ns line by line; the least of three.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include "tests/plain.h"

#define LINE 64

static const char *const sets[] = { "4096",	"8192",	    "16384",	"32768",
				    "65536",	"131072",   "262144",	"524288",
				    "1048576",	"2097152",  "4194304",	"8388608",
				    "16777216", "33554432", "67108864", "134217728" };

struct line {
	struct line *next;
	char pad[LINE - sizeof(struct line *)];
};

static uint64_t seed = 88172645463325252u;

static uint64_t random_word(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

/* One circle through all lines (Sattolo), or in order. */
static void join(struct line *lines, size_t count, int in_order)
{
	size_t *order = calloc(count, sizeof(*order));

	if (!order)
		die("calloc");
	for (size_t i = 0; i < count; i++)
		order[i] = i;
	for (size_t i = count - 1; i > 0 && !in_order; i--) {
		size_t j = random_word() % i, other = order[j];

		order[j] = order[i];
		order[i] = other;
	}
	for (size_t i = 0; i < count; i++)
		lines[order[i]].next = &lines[order[(i + 1) % count]];
	free(order);
}

static struct line *volatile end;

/* ns for a load. */
static double chase(struct line *lines, size_t count, double seconds)
{
	struct line *at = lines;
	double start, took;
	uint64_t loads = 0;

	for (size_t i = 0; i < count; i++)
		at = at->next;
	start = now();
	do {
		for (int i = 0; i < 4096; i++)
			at = at->next;
		loads += 4096;
		took = now() - start;
	} while (took < seconds);
	end = at;
	return 1e9 * took / (double)loads;
}

static double least(struct line *lines, size_t count, int in_order, double seconds)
{
	double best = 0;

	join(lines, count, in_order);
	for (int i = 0; i < 3; i++) {
		double ns = chase(lines, count, seconds / 3);

		if (!i || ns < best)
			best = ns;
	}
	return best;
}

static int read_word(int cache, const char *name, char word[32])
{
	char path[96];
	FILE *file;
	int got;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%d/%s", cache, name);
	file = fopen(path, "r");
	if (!file)
		return 0;
	got = fscanf(file, "%31s", word) == 1;
	fclose(file);
	return got;
}

static void say_caches(void)
{
	char level[32], type[32], size[32], ways[32], line[32];

	for (int i = 0; read_word(i, "level", level) && read_word(i, "type", type) &&
			read_word(i, "size", size);
	     i++) {
		if (!read_word(i, "ways_of_associativity", ways))
			strcpy(ways, "?");
		if (!read_word(i, "coherency_line_size", line))
			strcpy(line, "?");
		printf("cache %s %s %lu %s %s\n", level, type, strtoul(size, NULL, 10) << 10, ways,
		       line);
	}
}

static void measure(const char *text, double seconds)
{
	size_t bytes = strtoul(text, NULL, 0), count = bytes / LINE;
	struct line *lines;
	double random, in_order;

	if (count < 2) {
		fprintf(stderr, "chase: not a working set: %s\n", text);
		exit(2);
	}
	lines = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (lines == MAP_FAILED)
		die("mmap");
	madvise(lines, bytes, MADV_HUGEPAGE);
	random = least(lines, count, 0, seconds);
	in_order = least(lines, count, 1, seconds);
	printf("%zu %.2f %.2f\n", bytes, random, in_order);
	munmap(lines, bytes);
}

int main(int argc, char **argv)
{
	double seconds = (argc > 1 ? strtod(argv[1], NULL) : 150) / 1e3;

	say_caches();
	for (int i = 2; i < argc; i++)
		measure(argv[i], seconds);
	for (size_t i = 0; argc <= 2 && i < sizeof(sets) / sizeof(*sets); i++)
		measure(sets[i], seconds);
	return 0;
}
