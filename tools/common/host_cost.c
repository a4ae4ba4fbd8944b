/* SPDX-License-Identifier: MIT */
/*
 * The costs of a wake-up and of a system call on this machine. Two processes pass a byte through a
 * pair of pipes in turns, and each sleeps until the byte comes back. On two CPUs the other CPU is
 * idle by then. A guest's has to be woken by the hypervisor, so machines differ much.
 */
#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tools/bench/bench.h"
#include "tools/common/host.h"

#define ROUNDS 4000
#define WARM 100     /* rounds before those that count */
#define MOST 0.14e9  /* ns for all rounds of one pair */
#define BATCHES 101
#define BATCH 200    /* system calls */

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* The child: it ends when the parent closes its pipe, or ends. */
static void answer(int from, int to)
{
	char byte;

	while (read(from, &byte, 1) == 1 && write(to, &byte, 1) == 1)
		;
	_exit(0);
}

/* Half a round: each has two wake-ups, one of the child and one of ours. 0: it failed. */
static double pass(int to, int from)
{
	static double rounds[ROUNDS];
	double begin = now(), at = begin;
	size_t count = 0;
	char byte = 0;

	for (int i = 0; i < WARM + ROUNDS && at - begin < MOST; i++) {
		double before = at;

		if (write(to, &byte, 1) != 1 || read(from, &byte, 1) != 1)
			return 0;
		at = now();
		if (i >= WARM)
			rounds[count++] = (at - before) / 2;
	}
	return shunt_spread_of(rounds, count).median;
}

static void run_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* The two ends run on these CPUs. */
static double measure_wakeup(int ours, int theirs)
{
	int there[2], back[2];
	double wakeup = 0;
	pid_t child = -1;

	if (pipe2(there, O_CLOEXEC))
		return 0;
	if (pipe2(back, O_CLOEXEC))
		goto close_there;
	child = fork();
	if (!child) {
		run_on(theirs);
		close(there[1]);
		answer(there[0], back[1]);
	}
	close(back[1]);
	run_on(ours);
	if (child > 0)
		wakeup = pass(there[1], back[0]);
	close(back[0]);
close_there:
	close(there[0]);
	close(there[1]);
	if (child > 0)
		waitpid(child, NULL, 0);
	return wakeup;
}

static double measure_system_call(void)
{
	double batches[BATCHES];

	for (int i = 0; i < BATCHES; i++) {
		double begin = now();

		for (int j = 0; j < BATCH; j++)
			syscall(SYS_getppid);
		batches[i] = (now() - begin) / BATCH;
	}
	return shunt_spread_of(batches, BATCHES).median;
}

void shunt_host_measure(struct shunt_host *host)
{
	int cpus[2], count = 0;
	cpu_set_t allowed;

	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		return;
	for (int cpu = 0; cpu < CPU_SETSIZE && count < 2; cpu++)
		if (CPU_ISSET(cpu, &allowed))
			cpus[count++] = cpu;
	host->switched = measure_wakeup(cpus[0], cpus[0]);
	if (count > 1)
		host->wakeup = measure_wakeup(cpus[0], cpus[1]);
	sched_setaffinity(0, sizeof(allowed), &allowed);
	host->system_call = measure_system_call();
}
