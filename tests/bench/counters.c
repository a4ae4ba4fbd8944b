/* SPDX-License-Identifier: MIT */
/*
 * Events of the processor's caches that a command and its children cause, by perf_event_open(2).
 *
 *     counters			which of the events can be counted here
 *     counters COMMAND...	runs it, then says on descriptor 3 what was counted
 *
 * A line for each event: its name and the count, or its name, "-" and why it cannot be counted. Without a command the
 * count is 0. Events of the processor are those of its vendor; a virtual machine often has none.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LL_READ(RESULT)                                                                            \
	(PERF_COUNT_HW_CACHE_LL | PERF_COUNT_HW_CACHE_OP_READ << 8 |                               \
	 (uint64_t)PERF_COUNT_HW_CACHE_RESULT_##RESULT << 16)

#define DTLB_READ_MISS                                                                             \
	(PERF_COUNT_HW_CACHE_DTLB | PERF_COUNT_HW_CACHE_OP_READ << 8 |                             \
	 PERF_COUNT_HW_CACHE_RESULT_MISS << 16)

/* vendor: as /proc/cpuinfo says it; NULL: any. Raw events: umask and event as the vendor's manual has them. */
static const struct {
	const char *name, *vendor;
	uint32_t type;
	uint64_t config;
} events[] = {
	{ "context_switches", NULL, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES },
	{ "page_faults", NULL, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS },
	{ "dtlb_read_misses", NULL, PERF_TYPE_HW_CACHE, DTLB_READ_MISS },
	{ "cycles", NULL, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES },
	{ "instructions", NULL, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS },
	{ "llc_reads", NULL, PERF_TYPE_HW_CACHE, LL_READ(ACCESS) },
	{ "llc_read_misses", NULL, PERF_TYPE_HW_CACHE, LL_READ(MISS) },
	{ "mem_load_l3_hit_retired.xsnp_hitm", "GenuineIntel", PERF_TYPE_RAW, 0x04d2 },
	{ "mem_load_l3_hit_retired.xsnp_miss", "GenuineIntel", PERF_TYPE_RAW, 0x01d2 },
	{ "ls_dmnd_fills_from_sys.local_ccx", "AuthenticAMD", PERF_TYPE_RAW, 0x0243 },
	{ "ls_dmnd_fills_from_sys.dram_io_near", "AuthenticAMD", PERF_TYPE_RAW, 0x0843 },
};
#define EVENTS (sizeof(events) / sizeof(events[0]))

static int fds[EVENTS], why[EVENTS];

static _Noreturn void die(const char *what)
{
	perror(what);
	exit(1);
}

static int is_vendor(const char *vendor)
{
	FILE *file = fopen("/proc/cpuinfo", "r");
	char line[256];
	int found = 0;

	while (file && !found && fgets(line, sizeof(line), file))
		found = !strncmp(line, "vendor_id", 9) && strstr(line, vendor);
	if (file)
		fclose(file);
	return found;
}

/* From the exec of `pid` on, with all that it starts. */
static void open_events(pid_t pid)
{
	for (size_t i = 0; i < EVENTS; i++) {
		struct perf_event_attr attr = { .size = sizeof(attr),
						.type = events[i].type,
						.config = events[i].config,
						.disabled = 1,
						.inherit = 1,
						.enable_on_exec = 1,
						.exclude_hv = 1 };

		fds[i] = -1;
		if (events[i].vendor && !is_vendor(events[i].vendor))
			continue;
		fds[i] = (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1,
				      PERF_FLAG_FD_CLOEXEC);
		if (fds[i] >= 0)
			continue;
		attr.exclude_kernel = 1; /* enough for perf_event_paranoid 2 */
		fds[i] = (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1,
				      PERF_FLAG_FD_CLOEXEC);
		why[i] = errno;
	}
}

static void say(FILE *to)
{
	for (size_t i = 0; i < EVENTS; i++) {
		uint64_t count;

		if (fds[i] >= 0 && read(fds[i], &count, sizeof(count)) == sizeof(count))
			fprintf(to, "%s %llu\n", events[i].name, (unsigned long long)count);
		else if (why[i])
			fprintf(to, "%s - %s\n", events[i].name, strerror(why[i]));
	}
	fclose(to);
}

int main(int argc, char **argv)
{
	int gate[2], status;
	FILE *to;
	pid_t pid;
	char byte;

	if (argc < 2) {
		open_events(0);
		say(stdout);
		return 0;
	}
	to = fdopen(3, "w");
	if (!to || pipe(gate))
		die("counters: descriptor 3");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		close(gate[1]);
		fclose(to);
		(void)!read(gate[0], &byte, 1);
		close(gate[0]);
		execvp(argv[1], argv + 1);
		die(argv[1]);
	}
	open_events(pid);
	close(gate[0]);
	close(gate[1]);
	if (waitpid(pid, &status, 0) < 0)
		die("waitpid");
	say(to);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
