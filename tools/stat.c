/* SPDX-License-Identifier: MIT */
/* shunt stat */
#include "tools/stat.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tools/output.h"
#include "tools/shunt.h"

static const char help[] =
	"Usage: shunt stat [--json | --tcp] [--watch SECONDS] [PROCESS...]\n\n"
	"Shows the TCP streams of shunted processes, the bytes of each direction by TCP and by the link,\n"
	"with a star at the track that it is on, why streams stay on TCP, and the engine's counters.\n"
	"A process is a process id or an identity, 32 hexadecimal digits, which is shown in place of a\n"
	"process id that is not visible here. Without one: all that may be asked.\n\n"
	"  --json           an array with an object for each process, as the processes say it\n"
	"  --tcp            a line for each connection, in the columns of `ss -tnp` and the track\n"
	"  --watch SECONDS  again and again, until interrupted: from the second look on the streams have\n"
	"                   rates, of the time since the last look, and so have totals and counters;\n"
	"                   an array a line with --json\n\n"
	"Exit status: 0, or 1 if a process has no statistics to give.\n";

struct options {
	int json;
	bool tcp;
	double watch;
	struct shunt_door *wanted;
	size_t count;	/* 0: all */
};

/* A process that ends between being listed and being asked is no failure. */
static int gather(const struct options *options, struct shunt_look *look)
{
	char name[SHUNT_DOOR_TEXT];
	int failed = 0;

	if (shunt_look_ask(look, options->wanted, options->count))
		return -1;
	for (size_t i = 0; i < look->count; i++) {
		const struct shunt_stat *stat = &look->processes[i];

		if (stat->process || (!options->count && !stat->late))
			continue;
		fprintf(stderr, "shunt stat: process %s: %s\n", shunt_door_text(&stat->door, name),
			stat->why);
		failed |= options->count > 0;
	}
	if (look->shut)
		fprintf(stderr,
			"shunt stat: doors that could not be asked, of processes unknown: %zu (stopped?)\n",
			look->shut);
	return failed;
}

static void show_json(const struct options *options, const struct shunt_look *look)
{
	json_t *answers = json_array();

	for (size_t i = 0; i < look->count; i++)
		if (look->processes[i].process)
			json_array_append(answers, look->processes[i].process);
	shunt_print_json(stdout, answers, options->watch > 0 ? JSON_COMPACT : JSON_INDENT(2));
	json_decref(answers);
}

static void show_text(const struct options *options, const struct shunt_look *look, const struct shunt_look *before)
{
	size_t shown = 0;

	if (options->watch > 0 && isatty(STDOUT_FILENO))
		fputs("\033[H\033[2J", stdout);
	if (options->tcp) {
		shunt_stat_show_tcp(look);
		return;
	}
	for (size_t i = 0; i < look->count; i++) {
		const struct shunt_stat *stat = &look->processes[i], *then = shunt_look_find(before, stat);

		if (!stat->process)
			continue;
		if (shown++)
			putchar('\n');
		shunt_stat_show(stat->process, then ? then->process : NULL, then ? stat->at - then->at : 0);
	}
	if (!shown && !options->count)
		puts("no shunted process has a connection to speak of "
		     "(other users' processes show only to root)");
}

/* The new look takes the place of `before`. */
static int show_once(const struct options *options, struct shunt_look *before)
{
	struct shunt_look look = { 0 };
	int failed = gather(options, &look);

	if (options->json)
		show_json(options, &look);
	else
		show_text(options, &look, before);
	fflush(stdout);
	shunt_look_free(before);
	*before = look;
	return failed ? EXIT_FAILED : 0;
}

static int usage_error(const char *what, const char *text)
{
	fprintf(stderr, "shunt stat: %s '%s'; `shunt stat --help` says how\n", what, text);
	return EXIT_USAGE;
}

static int parse_wanted(struct options *options, int count, char **words)
{
	options->wanted = calloc((size_t)count + 1, sizeof(*options->wanted));
	if (!options->wanted)
		abort();
	for (options->count = 0; count--; words++)
		if (!shunt_door_parse(*words, &options->wanted[options->count++]))
			return usage_error("neither a process id nor an identity:", *words);
	return 0;
}

static int parse(struct options *options, int argc, char **argv)
{
	static const struct option names[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "tcp", no_argument, NULL, 't' },
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
		case 't':
			options->tcp = true;
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
	if (options->json && options->tcp)
		return usage_error("one or the other:", "--json --tcp");
	return parse_wanted(options, argc - optind, argv + optind);
}

static void pause_for(double seconds)
{
	struct timespec pause = {
		.tv_sec = (time_t)seconds,
		.tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9),
	};

	nanosleep(&pause, NULL);
}

int shunt_stat(int argc, char **argv)
{
	struct options options = { 0 };
	struct shunt_look before = { 0 };
	int rc = parse(&options, argc, argv);

	if (!rc)
		rc = show_once(&options, &before);
	while (rc != EXIT_USAGE && options.watch > 0 && !ferror(stdout)) {
		pause_for(options.watch);
		rc = show_once(&options, &before);
	}
	shunt_look_free(&before);
	free(options.wanted);
	return rc;
}
