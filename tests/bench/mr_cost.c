/* SPDX-License-Identifier: MIT */
/*
 * RDMAbox's Figure 5: resident pages are copied into registered memory, or registered where they
 * are. Registrations are a device's, as the engine asks for them. The kernel's part alone is
 * measured too: pages pinned for a ring of io_uring, and pages locked.
 *
 *     mr_cost [--device soft|verbs|verbs:NAME] [--model MODEL] [--rounds N] [--pages ordinary|transparent|huge] [SIZE...]
 *
 * A line for each size has medians of N (101) in microseconds. Columns: size, copy of cached bytes,
 * copy of bytes in no cache, registration with the device, pinned, locked. "-" stands where that
 * cannot be done. Each is undone within its time. Then a line `engine BYTES`: what the engine
 * measures for SHUNT_TUNE=mr_threshold=auto, "never" if no size pays. Standard error has the page faults of the memory
 * that is copied and registered. Its pages are ordinary, or as SHUNT_TUNE=pages says (XR-41).
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <linux/io_uring.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include "core/base/config.h"
#include "core/base/guard.h"
#include "core/device/soft/soft.h"
#include "core/device/verbs/verbs.h"
#include "core/lane/zero_copy.h"

#define LARGEST (16ul << 20)
#define COLD (128ul << 20) /* more than a cache: a cold copy goes through all of it */
#define ROUNDS_MAX 10001

static const size_t sizes[] = { 4 << 10,   8 << 10,   16 << 10, 32 << 10, 64 << 10, 128 << 10,
				256 << 10, 512 << 10, 1 << 20,	2 << 20,  4 << 20 };

static const struct option options[] = {
	{ "device", required_argument, NULL, 'd' },
	{ "model", required_argument, NULL, 'm' },
	{ "rounds", required_argument, NULL, 'r' },
	{ "pages", required_argument, NULL, 'p' },
	{ NULL, 0, NULL, 0 },
};

static struct {
	struct ibv_context *context;
	const struct shunt_verbs *verbs;
	struct ibv_pd *pd;
	struct verbs_device verbs_device;
	bool soft;
} device;
static char *from, *to, *cold;
static size_t cold_at;
static int uring = -1;
static int rounds = 101;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* --- each of what is compared: false where it cannot be done --- */

static bool copy_warm(size_t bytes)
{
	memcpy(to, from, bytes);
	return true;
}

static bool copy_cold(size_t bytes)
{
	if (cold_at + bytes > COLD)
		cold_at = 0;
	memcpy(to, cold + cold_at, bytes);
	cold_at += bytes;
	return true;
}

static bool registered(size_t bytes)
{
	struct ibv_mr *mr = device.verbs->register_mr(device.pd, from, bytes, 0);

	return mr && !device.verbs->deregister_mr(mr);
}

static bool pinned(size_t bytes)
{
	struct iovec iov = { from, bytes };

	return uring >= 0 &&
	       !syscall(SYS_io_uring_register, uring, IORING_REGISTER_BUFFERS, &iov, 1) &&
	       !syscall(SYS_io_uring_register, uring, IORING_UNREGISTER_BUFFERS, NULL, 0);
}

static bool locked(size_t bytes)
{
	return !mlock(from, bytes) && !munlock(from, bytes);
}

static bool (*const ways[])(size_t bytes) = { copy_warm, copy_cold, registered, pinned, locked };
#define WAYS (sizeof(ways) / sizeof(*ways))

/* --- the table --- */

static int by_time(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* A line; the ways take turns. */
static void measure(size_t bytes)
{
	static uint64_t took[WAYS][ROUNDS_MAX];
	bool can[WAYS];

	for (size_t way = 0; way < WAYS; way++)
		can[way] = ways[way](bytes);
	for (int round = 0; round < rounds; round++)
		for (size_t way = 0; way < WAYS; way++) {
			uint64_t start = now();

			can[way] = can[way] && ways[way](bytes);
			took[way][round] = now() - start;
		}
	printf("%zu", bytes);
	for (size_t way = 0; way < WAYS; way++) {
		qsort(took[way], (size_t)rounds, sizeof(**took), by_time);
		if (can[way])
			printf(" %.3f", (double)took[way][rounds / 2] / 1e3);
		else
			printf(" -");
	}
	putchar('\n');
}

/* As an arena is mapped (core/link/arena.h). */
static char *resident(size_t bytes, enum shunt_pages_choice pages)
{
	char *memory = pages == SHUNT_PAGES_ORDINARY ? shunt_guard_map(bytes, -1) :
						       shunt_guard_map_large(bytes, -1);

	if (!memory)
		die("mmap");
	if (pages == SHUNT_PAGES_HUGE && shunt_guard_set_huge(memory, bytes)) {
		fprintf(stderr, "mr_cost: no explicit huge pages (vm.nr_hugepages)\n");
		exit(77);
	}
	memset(memory, 1, bytes);
	return memory;
}

static long faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt;
}

static void open_device(const char *name, const char *model)
{
	struct soft_attr attr = { .engine_thread = model != NULL };

	device.soft = !strcmp(name, "soft");
	if (device.soft) {
		if (model && soft_model_parse(model, &attr.model)) {
			fprintf(stderr, "mr_cost: no model: %s\n", model);
			exit(2);
		}
		device.context = soft_open(&attr, &device.verbs);
		if (!device.context)
			die("soft_open");
	} else {
		if (verbs_open(&device.verbs_device, name[5] ? name + 6 : NULL, NULL)) {
			fprintf(stderr, "mr_cost: %s\n", device.verbs_device.error);
			exit(77);
		}
		device.context = device.verbs_device.context;
		device.verbs = &device.verbs_device.verbs;
	}
	device.pd = device.verbs->alloc_pd(device.context);
	if (!device.pd)
		die("alloc_pd");
}

static void close_device(void)
{
	device.verbs->dealloc_pd(device.pd);
	if (device.soft)
		soft_close(device.context);
	else
		verbs_close(&device.verbs_device);
}

static int usage(const char *what)
{
	fprintf(stderr, "mr_cost: not %s; the head of its source says how\n", what);
	return 2;
}

/* 0: invalid. */
static size_t size_of(const char *text)
{
	char *end;
	size_t bytes = strtoul(text, &end, 0);

	return *end || bytes > LARGEST ? 0 : bytes;
}

/* -1: invalid. */
static int pages_of(const char *text)
{
	static const char *const words[] = { "ordinary", "transparent", "huge" };

	for (int i = 0; i < 3; i++)
		if (!strcmp(text, words[i]))
			return i;
	return -1;
}

int main(int argc, char **argv)
{
	const char *name = "soft", *model = NULL;
	struct io_uring_params params = { 0 };
	int option, pages = SHUNT_PAGES_ORDINARY;
	uint64_t engine;
	long before;

	while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (option == '?')
			return 2;
		if (option == 'd')
			name = optarg;
		if (option == 'm')
			model = optarg;
		if (option == 'r')
			rounds = atoi(optarg);
		if (option == 'p')
			pages = pages_of(optarg);
	}
	if (strcmp(name, "soft") && strcmp(name, "verbs") && strncmp(name, "verbs:", 6))
		return usage("a device: soft, verbs or verbs:NAME");
	if (pages < 0)
		return usage("pages: ordinary, transparent or huge");
	if (rounds < 1 || rounds > ROUNDS_MAX)
		return usage("a number of rounds from 1 to 10001");
	for (int i = optind; i < argc; i++)
		if (!size_of(argv[i]))
			return usage("a size from 1 to 16777216");
	open_device(name, model);
	uring = (int)syscall(SYS_io_uring_setup, 1, &params);
	before = faults();
	from = resident(LARGEST, pages);
	to = resident(LARGEST, pages);
	fprintf(stderr, "page faults for %zu KiB: %ld\n", (size_t)LARGEST >> 9, faults() - before);
	cold = resident(COLD, SHUNT_PAGES_ORDINARY);
	if (optind == argc)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
			measure(sizes[i]);
	for (int i = optind; i < argc; i++)
		measure(size_of(argv[i]));
	engine = shunt_zero_copy_measure(device.verbs, device.pd, now);
	if (engine == SHUNT_ZERO_COPY_AUTO)
		printf("engine never\n");
	else
		printf("engine %llu\n", (unsigned long long)engine);
	close_device();
	return 0;
}
