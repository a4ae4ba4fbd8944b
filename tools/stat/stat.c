/* SPDX-License-Identifier: MIT */
/* shunt stat */
#include "tools/stat/stat.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/metrics/metrics.h"
#include "tools/common/output.h"
#include "tools/shunt.h"

static const char help[] =
	"Usage: shunt stat [--json | --tcp | --brief] [--watch SECONDS] [PROCESS...]\n"
	"       shunt stat --openmetrics[=text|strict|list] [--streams] [PROCESS...]\n\n"
	"Shows the TCP streams of shunted processes, the bytes of each direction by TCP and by the link,\n"
	"with a star at the track that it is on, why streams stay on TCP, and the engine's counters.\n"
	"A process is a process id or an identity, 32 hexadecimal digits, which is shown in place of a\n"
	"process id that is not visible here. Without one: all that may be asked.\n\n"
	"  --json           an array with an object for each process, as the processes say it\n"
	"  --tcp            a line for each connection, in the columns of `ss -tnp` and the track\n"
	"  --brief          one line about all of them: connections on a link, bytes by it, why others are on TCP\n"
	"  --watch SECONDS  again and again, until interrupted: from the second look on the streams have\n"
	"                   rates, of the time since the last look, and so have totals and counters;\n"
	"                   an array a line with --json\n"
	"  --openmetrics    metrics for Prometheus: the text that `promtool check metrics` accepts;\n"
	"                   strict: as OpenMetrics 1.0 has it; list: names, types and meanings\n"
	"  --streams        with --openmetrics: also series of each stream, queue pair and link\n\n"
	"Exit status: 0, or 1 if a process has no statistics to give.\n";

enum view { TEXT, JSON, TCP, BRIEF, METRICS, METRICS_STRICT, METRICS_LIST };

struct options {
	enum view view;
	bool streams;
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

		if (stat->process ? !*stat->why : !options->count && !stat->late)
			continue;
		fprintf(stderr, "shunt stat: process %s: %s\n", shunt_door_text(&stat->door, name),
			stat->why);
		failed |= options->count > 0 && !stat->process;
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
	if (options->view == TCP) {
		shunt_stat_show_tcp(look);
		return;
	}
	if (options->view == BRIEF) {
		shunt_stat_show_brief(look);
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

static void show_metrics(const struct options *options, const struct shunt_look *look)
{
	size_t bytes;
	char *text = shunt_metrics_text(
		look, options->view == METRICS ? SHUNT_METRICS_TEXT : SHUNT_METRICS_OPEN,
		options->streams, &bytes);

	fwrite(text, 1, bytes, stdout);
	free(text);
}

static void show(const struct options *options, const struct shunt_look *look,
		 const struct shunt_look *before)
{
	switch (options->view) {
	case TEXT:
	case TCP:
	case BRIEF:
		show_text(options, look, before);
		break;
	case JSON:
		show_json(options, look);
		break;
	case METRICS:
	case METRICS_STRICT:
		show_metrics(options, look);
		break;
	case METRICS_LIST:
		break;
	}
	fflush(stdout);
}

/* The new look takes the place of `before`. */
static int show_once(const struct options *options, struct shunt_look *before)
{
	struct shunt_look look = { 0 };
	int failed = gather(options, &look);

	show(options, &look, before);
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

static int choose(struct options *options, enum view view)
{
	if (options->view != TEXT && options->view != view)
		return usage_error("one or the other:", "--json, --tcp, --brief, --openmetrics");
	options->view = view;
	return 0;
}

static int parse_metrics(struct options *options, const char *format)
{
	if (!format || !strcmp(format, "text"))
		return choose(options, METRICS);
	if (!strcmp(format, "strict"))
		return choose(options, METRICS_STRICT);
	if (!strcmp(format, "list"))
		return choose(options, METRICS_LIST);
	return usage_error("a format of metrics is text, strict or list, not", format);
}

static int parse(struct options *options, int argc, char **argv)
{
	static const struct option names[] = {
		{ "brief", no_argument, NULL, 'b' },
		{ "json", no_argument, NULL, 'j' },
		{ "openmetrics", optional_argument, NULL, 'o' },
		{ "streams", no_argument, NULL, 's' },
		{ "tcp", no_argument, NULL, 't' },
		{ "watch", required_argument, NULL, 'w' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	char *end;
	int c;

	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		switch (c) {
		case 'b':
			if (choose(options, BRIEF))
				return EXIT_USAGE;
			break;
		case 'j':
			if (choose(options, JSON))
				return EXIT_USAGE;
			break;
		case 'o':
			if (parse_metrics(options, optarg))
				return EXIT_USAGE;
			break;
		case 's':
			options->streams = true;
			break;
		case 't':
			if (choose(options, TCP))
				return EXIT_USAGE;
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
	if (options->watch > 0 && options->view >= METRICS)
		return usage_error("metrics are for one look, without", "--watch");
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

	if (!rc && options.view == METRICS_LIST)
		shunt_metrics_list(stdout);
	else if (!rc)
		rc = show_once(&options, &before);
	while (rc != EXIT_USAGE && options.watch > 0 && !ferror(stdout)) {
		pause_for(options.watch);
		rc = show_once(&options, &before);
	}
	shunt_look_free(&before);
	free(options.wanted);
	return rc;
}
