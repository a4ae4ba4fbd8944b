/* SPDX-License-Identifier: MIT */
/*
 * campaign [--runs N] [--seed S] [--jobs N] [--seconds N] [--limit S] [--verbose] [--no-rules]
 *
 * Random faults, each from a seed: what fails is printed with its seed, and `--seed S --runs 1` plays it again.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include "campaign.h"
#include "table.h"

const char *shunt_command, *load_program;
bool verbose, no_rules;
unsigned int limit_s = 30;

struct sums {
	_Atomic uint64_t next, runs, failed, plans;
};

static struct sums *sums;
static uint64_t runs = 1000, seed = 1, seconds;
static unsigned int jobs = 2;

static void work(time_t until)
{
	while (atomic_load(&sums->runs) < runs && (!seconds || time(NULL) < until)) {
		struct plan plan;
		unsigned int failed;

		plan_make(&plan, seed + atomic_fetch_add(&sums->next, 1));
		if (verbose)
			plan_print(&plan);
		atomic_fetch_add(&sums->runs, plan_play(&plan, &failed));
		atomic_fetch_add(&sums->failed, failed);
		atomic_fetch_add(&sums->plans, 1);
	}
}

static char *beside(const char *what)
{
	const char *top = getenv("top_builddir");
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", top ? top : ".", what);
	return strdup(path);
}

static int options(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "runs", required_argument, NULL, 'r' }, { "seed", required_argument, NULL, 's' },
		{ "jobs", required_argument, NULL, 'j' }, { "seconds", required_argument, NULL, 't' },
		{ "limit", required_argument, NULL, 'l' }, { "verbose", no_argument, NULL, 'v' }, { "no-rules", no_argument, NULL, 'n' }, { 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "r:s:j:t:l:vn", longs, NULL)) >= 0) {
		uint64_t number = optarg ? strtoull(optarg, NULL, 10) : 0;

		if (c == 'r')
			runs = number;
		else if (c == 's')
			seed = number;
		else if (c == 'j')
			jobs = number;
		else if (c == 't')
			seconds = number;
		else if (c == 'l')
			limit_s = number;
		else if (c == 'v')
			verbose = true;
		else if (c == 'n')
			no_rules = true;
		else
			return 2;
	}
	return 0;
}

int main(int argc, char **argv)
{
	time_t begin = time(NULL);

	if (options(argc, argv))
		return 2;
	shunt_command = beside("tools/shunt");
	load_program = beside("tests/fault/load");
	sums = mmap(NULL, sizeof(*sums), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (sums == MAP_FAILED)
		return 3;
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (unsigned int i = 0; i < jobs; i++) {
		if (!fork()) {
			work(begin + (time_t)seconds);
			fflush(stdout);
			_exit(0);
		}
	}
	for (int status; wait(&status) > 0;)
		if (status)
			atomic_fetch_add(&sums->failed, 1);
	printf("# %llu runs of %llu seeds from %llu: %llu failed, %lld s\n", (unsigned long long)sums->runs,
	       (unsigned long long)sums->plans, (unsigned long long)seed, (unsigned long long)sums->failed,
	       (long long)(time(NULL) - begin));
	return sums->failed || !sums->runs;
}
