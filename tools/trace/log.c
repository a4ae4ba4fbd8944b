/* SPDX-License-Identifier: MIT */
/*
 * shunt trace slow: slow steps and gaps between polls that processes have kept (core/admin/events.h). A
 * process may lie: text is escaped and cut, and missing or mistyped members show as nothing.
 */
#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/ask/ask.h"
#include "tools/ask/budget.h"
#include "tools/common/output.h"
#include "tools/shunt.h"

#define TEXT_MAX 128
#define LOG_VALUES (16U << 20)	/* bytes of values of an answer; 1,024 events take 3 MB */

static const char help[] =
	"Usage: shunt trace slow [--json] [--follow] [PROCESS...]\n\n"
	"Shows what took long in shunted processes: the last 1,024 steps that took slow_us, and\n"
	"polls that found arrived bytes poll_warn_us after the poll before. Both settings are 0\n"
	"at first, which is never; `shunt adm PROCESS set slow_us 1000` sets one of them. A\n"
	"process is a process id or an identity, as `shunt stat` shows it. Without one: all that may\n"
	"be asked.\n\n"
	"  --json    an array with an object for each process, as the processes say it\n"
	"  --follow  goes on with new events of one PROCESS, until interrupted; with --json an object\n"
	"            a line\n\n"
	"Exit status: 0, 1 if a process cannot be asked, 2 for wrong usage.\n";

struct options {
	int json, follow;
	struct shunt_door *wanted;
	size_t count;	/* 0: all */
};

/* --- showing --- */

static uint64_t number_of(const json_t *object, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(object, key));

	return value > 0 ? (uint64_t)value : 0;
}

static const char *text_of(const json_t *object, const char *key, char buf[TEXT_MAX])
{
	const char *text = json_string_value(json_object_get(object, key));

	return shunt_escape(text ? text : "", buf, TEXT_MAX);
}

/* "950 us", "12.3 ms", "4.56 s" */
static const char *duration_text(uint64_t ns, char buf[TEXT_MAX])
{
	if (ns < 1000000)
		snprintf(buf, TEXT_MAX, "%.1f us", (double)ns / 1e3);
	else if (ns < 1000000000)
		snprintf(buf, TEXT_MAX, "%.1f ms", (double)ns / 1e6);
	else
		snprintf(buf, TEXT_MAX, "%.2f s", (double)ns / 1e9);
	return buf;
}

static uint64_t wall_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Times are those of the process's monotonic clock, and so is the time of its answer. */
static const char *when_text(uint64_t at, uint64_t answered, uint64_t wall, char buf[TEXT_MAX])
{
	uint64_t age = answered > at ? answered - at : 0, then = wall > age ? wall - age : 0;
	time_t seconds = (time_t)(then / 1000000000);
	struct tm tm;
	size_t length;

	if (!localtime_r(&seconds, &tm))
		return "";
	length = strftime(buf, TEXT_MAX, "%F %T", &tm);
	snprintf(buf + length, TEXT_MAX - length, ".%06u",
		 (unsigned int)(then % 1000000000 / 1000));
	return buf;
}

/* The member of an event that has no column: one at most. */
static void show_extra(const json_t *event)
{
	static const char *const extras[] = { "completions", "staged", "peer_pid",
					      "handler",     "bytes",  "ring" };
	char text[TEXT_MAX];

	for (size_t i = 0; i < sizeof(extras) / sizeof(extras[0]); i++) {
		const json_t *value = json_object_get(event, extras[i]);

		if (json_is_string(value))
			printf(" %s %s", extras[i], text_of(event, extras[i], text));
		else if (json_is_integer(value))
			printf(" %s %" PRIu64, extras[i], number_of(event, extras[i]));
	}
}

static void show_event(const json_t *event, uint64_t answered, uint64_t wall)
{
	char when[TEXT_MAX], took[TEXT_MAX], step[TEXT_MAX], local[TEXT_MAX], peer[TEXT_MAX];
	uint64_t at = number_of(event, "time_ns");

	printf("  %-26s  %9s  %-10s", when_text(at, answered, wall, when),
	       duration_text(number_of(event, "duration_ns"), took), text_of(event, "step", step));
	if (json_object_get(event, "fd"))
		printf(" fd %" PRIu64, number_of(event, "fd"));
	if (json_object_get(event, "local"))
		printf(" %s > %s", text_of(event, "local", local), text_of(event, "peer", peer));
	show_extra(event);
	putchar('\n');
}

static void show_totals(const json_t *steps)
{
	char step[TEXT_MAX], longest[TEXT_MAX];
	const json_t *row;
	size_t i;

	json_array_foreach(steps, i, row)
		if (number_of(row, "count"))
			printf("  %-26s  %9s  %-10s %" PRIu64 " in all\n", "longest",
			       duration_text(number_of(row, "longest_ns"), longest),
			       text_of(row, "step", step), number_of(row, "count"));
}

static void show_events(const json_t *process, uint64_t wall)
{
	const json_t *event;
	size_t i;

	json_array_foreach(json_object_get(process, "events"), i, event)
		show_event(event, number_of(process, "now_ns"), wall);
}

static void show_process(const json_t *process, uint64_t wall)
{
	char program[TEXT_MAX];
	uint64_t gap = number_of(process, "poll_warn_us"), slow = number_of(process, "slow_us");

	printf("pid %" PRIu64 "  %s  poll_warn_us=%" PRIu64 "  slow_us=%" PRIu64 "\n",
	       number_of(process, "pid"), text_of(process, "program", program), gap, slow);
	show_events(process, wall);
	show_totals(json_object_get(process, "steps"));
	if (!gap && !slow)
		puts("  nothing is noted now: both are 0");
}

/* --- asking --- */

static void complain(const struct shunt_reply *reply, const char *why)
{
	char name[SHUNT_DOOR_TEXT];

	fprintf(stderr, "shunt trace slow: process %s: ", shunt_door_text(&reply->door, name));
	shunt_print_escaped(stderr, why, strcspn(why, "\n"));
	fputc('\n', stderr);
}

/* NULL: the reason has been said. */
static json_t *parse(const struct shunt_reply *reply)
{
	json_t *process;

	if (!reply->text || reply->refused) {
		complain(reply, reply->text ? reply->text : reply->why);
		return NULL;
	}
	process = shunt_budget_parse(reply->text, reply->length, LOG_VALUES, 0, NULL);
	if (!json_is_object(process)) {
		complain(reply, "its answer is no JSON object");
		json_decref(process);
		return NULL;
	}
	return process;
}

static int show_text(const struct shunt_replies *replies, size_t wanted)
{
	uint64_t wall = wall_clock();
	size_t shown = 0;
	int rc = 0;

	for (size_t i = 0; i < replies->count; i++) {
		json_t *process = parse(&replies->of[i]);

		if (!process) {
			rc = wanted ? EXIT_FAILED : rc;
			continue;
		}
		if (shown++)
			putchar('\n');
		show_process(process, wall);
		json_decref(process);
	}
	if (!shown && !wanted)
		puts("no shunted process answers (other users' processes answer only root)");
	return rc;
}

static int show_json(const struct shunt_replies *replies, size_t wanted)
{
	json_t *all = json_array();
	int rc = 0;

	for (size_t i = 0; i < replies->count; i++) {
		json_t *process = parse(&replies->of[i]);

		if (process)
			json_array_append_new(all, process);
		else
			rc = wanted ? EXIT_FAILED : rc;
	}
	shunt_print_json(stdout, all, JSON_INDENT(2));
	json_decref(all);
	return rc;
}

static int ask(const struct options *options, const char *line, struct shunt_replies *replies)
{
	int rc = shunt_ask(options->wanted, options->count, line, replies);

	if (rc)
		fprintf(stderr, "shunt trace slow: %s\n", strerror(-rc));
	return rc;
}

static int show_once(const struct options *options)
{
	struct shunt_replies replies;
	int rc;

	if (ask(options, "log", &replies))
		return EXIT_FAILED;
	rc = options->json ? show_json(&replies, options->count) :
			     show_text(&replies, options->count);
	shunt_ask_free(&replies);
	return rc;
}

/* New events, and the number of the last. False: the process has no answer any more. */
static bool follow_once(const struct options *options, uint64_t *last)
{
	struct shunt_replies replies;
	char line[64];
	bool answered = false;

	snprintf(line, sizeof(line), "log %" PRIu64, *last);
	if (ask(options, line, &replies))
		return false;
	for (size_t i = 0; i < replies.count; i++) {
		json_t *process = parse(&replies.of[i]);

		if (!process)
			continue;
		answered = true;
		*last = number_of(process, "last");
		if (options->json)
			shunt_print_json(stdout, process, JSON_COMPACT);
		else
			show_events(process, wall_clock());
		json_decref(process);
	}
	shunt_ask_free(&replies);
	fflush(stdout);
	return answered;
}

static int follow(const struct options *options)
{
	uint64_t last = 0;

	while (follow_once(options, &last))
		sleep(1);
	return EXIT_FAILED;
}

/* --- the command line --- */

static int usage_error(const char *what, const char *text)
{
	fprintf(stderr, "shunt trace slow: %s '%s'; `shunt trace slow --help` says how\n", what, text);
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
	if (options->follow && options->count != 1)
		return usage_error("--follow wants one process, not",
				   options->count ? "more" : "none");
	return 0;
}

int shunt_log_show(int argc, char **argv)
{
	static const struct option longs[] = { { "help", no_argument, NULL, 'h' },
					       { "json", no_argument, NULL, 'j' },
					       { "follow", no_argument, NULL, 'f' },
					       { NULL, 0, NULL, 0 } };
	struct options options = { 0 };
	int option, rc;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		if (option == 'h') {
			fputs(help, stdout);
			return 0;
		}
		if (option != 'j' && option != 'f')
			return usage_error("unknown option", argv[optind - 1]);
		*(option == 'j' ? &options.json : &options.follow) = 1;
	}
	rc = parse_wanted(&options, argc - optind, argv + optind);
	if (!rc)
		rc = options.follow ? follow(&options) : show_once(&options);
	free(options.wanted);
	return rc;
}
