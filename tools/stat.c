/* shunt stat */
#include "tools/stat.h"

#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tools/shunt.h"

static const char help[] =
	"Usage: shunt stat [--json] [--watch SECONDS] [PID...]\n\n"
	"Shows the TCP streams of shunted processes, the track and the bytes of each direction, why\n"
	"streams stay on TCP, and the engine's counters. Without PID: of all that may be asked.\n\n"
	"  --json           an array with an object for each process, as the processes say it\n"
	"  --watch SECONDS  again and again, until interrupted; an array a line with --json\n\n"
	"Exit status: 0, or 1 if a PID has no statistics to give.\n";

struct options {
	int json;
	double watch;
	pid_t *pids;
	ssize_t count;	/* 0: all */
};

/* A process that ends between being listed and being asked is no failure. */
static int gather(const struct options *options, json_t *answers)
{
	pid_t *listed = NULL, *pids = options->pids;
	ssize_t count = options->count;
	int failed = 0;

	if (!count) {
		count = shunt_stat_list(&listed);
		pids = listed;
	}
	for (ssize_t i = 0; i < count; i++) {
		char why[SHUNT_STAT_WHY_MAX] = "";
		json_t *process = shunt_stat_fetch(pids[i], why);

		if (process) {
			json_array_append_new(answers, process);
		} else if (!listed) {
			fprintf(stderr, "shunt stat: process %d: %s\n", (int)pids[i], why);
			failed = 1;
		}
	}
	free(listed);
	return failed || count < 0;
}

static void show(const struct options *options, json_t *answers)
{
	const json_t *process;
	size_t i;

	if (options->json) {
		json_dumpf(answers, stdout, options->watch > 0 ? JSON_COMPACT : JSON_INDENT(2));
		putchar('\n');
		return;
	}
	if (options->watch > 0 && isatty(STDOUT_FILENO))
		fputs("\033[H\033[2J", stdout);
	json_array_foreach(answers, i, process) {
		if (i)
			putchar('\n');
		shunt_stat_show(process);
	}
	if (!json_array_size(answers) && !options->count)
		puts("no shunted process has a connection to speak of "
		     "(other users' processes show only to root)");
}

static int show_once(const struct options *options)
{
	json_t *answers = json_array();
	int failed = gather(options, answers);

	show(options, answers);
	fflush(stdout);
	json_decref(answers);
	return failed ? EXIT_FAILED : 0;
}

static int usage_error(const char *what, const char *text)
{
	fprintf(stderr, "shunt stat: %s '%s'; `shunt stat --help` says how\n", what, text);
	return EXIT_USAGE;
}

static int parse_pids(struct options *options, int count, char **words)
{
	options->pids = calloc((size_t)count + 1, sizeof(*options->pids));
	if (!options->pids)
		abort();
	for (options->count = 0; options->count < count; options->count++) {
		pid_t pid = shunt_process_id(words[options->count]);

		if (!pid)
			return usage_error("not a process id:", words[options->count]);
		options->pids[options->count] = pid;
	}
	return 0;
}

static int parse(struct options *options, int argc, char **argv)
{
	static const struct option names[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "watch", required_argument, NULL, 'w' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	char *end;
	int c;

	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		switch (c) {
		case 'j':
			options->json = 1;
			break;
		case 'w':
			options->watch = strtod(optarg, &end);
			if (*end || end == optarg ||
			    !(options->watch >= 0.01 && options->watch <= 86400))
				return usage_error("not a number of seconds from 0.01 to 86400:",
						   optarg);
			break;
		case 'h':
			fputs(help, stdout);
			exit(0);
		default:
			return EXIT_USAGE;
		}
	}
	return parse_pids(options, argc - optind, argv + optind);
}

int shunt_stat(int argc, char **argv)
{
	struct options options = { 0 };
	int rc = parse(&options, argc, argv);

	if (!rc)
		rc = show_once(&options);
	while (rc != EXIT_USAGE && options.watch > 0 && !ferror(stdout)) {
		struct timespec pause = {
			.tv_sec = (time_t)options.watch,
			.tv_nsec = (long)((options.watch - (double)(time_t)options.watch) * 1e9),
		};

		nanosleep(&pause, NULL);
		rc = show_once(&options);
	}
	free(options.pids);
	return rc;
}
