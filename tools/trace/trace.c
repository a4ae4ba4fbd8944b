/* SPDX-License-Identifier: MIT */
/* shunt trace: where the time of sends went, from the sender's call to the reader's. */
#include "tools/trace/trace.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/common/output.h"
#include "tools/shunt.h"

#define SECONDS_MAX 86400
#define EVERY_MAX 16 /* as SHUNT_TRACE has it */

static const char help[] =
	"Usage: shunt trace [OPTION...] [PROCESS...]\n"
	"       shunt trace slow [OPTION...] [PROCESS...]    (slow steps: shunt trace slow --help)\n\n"
	"Shows where the time of sends went that were followed (SHUNT_TRACE=K follows one in 2^K of each\n"
	"stream): how long each waited for credit, was on the link, waited for the reader's poll, and for\n"
	"the program to read it. Without processes, of all that let you in. The processes at the other ends\n"
	"of their links, on this host, are asked, too.\n\n"
	"  --seconds N      follow sends for so long from now on, and show those; SHUNT_TRACE is put back\n"
	"  --every K        with --seconds: one send in 2^K (default 6, 0 to 16)\n"
	"  --json           percentiles and sends as one JSON object\n"
	"  --perfetto FILE  write the sends to a file that ui.perfetto.dev opens\n\n"
	"Exit status: 0, 1 if a process cannot be asked, 2 for wrong usage.\n";

struct options {
	bool json;
	const char *perfetto;
	long seconds, every;
};

static bool number(const char *text, long least, long most, long *out)
{
	char *end;

	errno = 0;
	*out = strtol(text, &end, 10);
	return *text && !*end && !errno && *out >= least && *out <= most;
}

/* --- following for a while --- */

static volatile sig_atomic_t interrupted;

static void on_signal(int number_)
{
	(void)number_;
	interrupted = 1;
}

/* Until the time is over, or somebody presses ^C: SHUNT_TRACE is to be put back. */
static void wait_for(long seconds)
{
	struct sigaction action = { .sa_handler = on_signal }, before[2];
	struct timespec left = { .tv_sec = seconds };

	sigaction(SIGINT, &action, &before[0]);
	sigaction(SIGTERM, &action, &before[1]);
	while (!interrupted && nanosleep(&left, &left) && errno == EINTR)
		;
	sigaction(SIGINT, &before[0], NULL);
	sigaction(SIGTERM, &before[1], NULL);
}

static const char *value_of(uint64_t every, char buf[8])
{
	int k = 0;

	if (!every)
		return "off";
	while (every >> (k + 1) && k < EVERY_MAX)
		k++;
	snprintf(buf, 8, "%d", k);
	return buf;
}

/* Each process that answers, the other ends of links too: they may be those that send. When it began; 0: it has not. */
static uint64_t follow(const struct options *options, const struct shunt_door *wanted, size_t count)
{
	struct timespec now;
	struct trace trace;
	uint64_t began;
	char value[8];

	trace_ask(&trace, wanted, count, UINT64_MAX);
	clock_gettime(CLOCK_MONOTONIC, &now);
	began = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	snprintf(value, sizeof(value), "%ld", options->every);
	if (trace.failed)
		began = 0;
	for (size_t i = 0; began && i < trace.processes; i++)
		trace_set(&(struct shunt_door) { .met = true, .pid = trace.process[i].pid }, value);
	if (began)
		wait_for(options->seconds);
	for (size_t i = 0; began && i < trace.processes; i++) {
		json_int_t every = json_integer_value(
			json_object_get(trace.process[i].said, "every"));

		trace_set(&(struct shunt_door) { .met = true, .pid = trace.process[i].pid },
			  value_of(every > 0 ? (uint64_t)every : 0, value));
	}
	trace_free(&trace);
	return began;
}

/* --- output --- */

static bool write_perfetto(const struct trace *trace, const char *name)
{
	FILE *file = fopen(name, "we");
	json_t *json = trace_perfetto(trace);
	bool done = file && !shunt_print_json(file, json, JSON_COMPACT | JSON_REAL_PRECISION(17));

	json_decref(json);
	done &= file && !fclose(file);
	if (!done)
		fprintf(stderr, "shunt trace: %s: %s\n", name, strerror(errno));
	return done;
}

static int show(const struct trace *trace, const struct options *options)
{
	json_t *json;
	int failed = 0;

	if (options->perfetto && !write_perfetto(trace, options->perfetto))
		return EXIT_FAILED;
	if (options->json) {
		json = trace_json(trace);
		failed = shunt_print_json(stdout, json, JSON_INDENT(2));
		json_decref(json);
	} else {
		trace_show(trace);
	}
	return failed || trace->failed ? EXIT_FAILED : 0;
}

static int usage(const char *why)
{
	fprintf(stderr, "shunt trace: %s; `shunt trace --help` says how\n", why);
	return EXIT_USAGE;
}

/* -1: go on. */
static int read_options(int argc, char **argv, struct options *options)
{
	static const struct option names[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "json", no_argument, NULL, 'j' },
		{ "perfetto", required_argument, NULL, 'p' },
		{ "seconds", required_argument, NULL, 's' },
		{ "every", required_argument, NULL, 'e' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "h", names, NULL)) >= 0) {
		switch (option) {
		case 'h':
			fputs(help, stdout);
			return 0;
		case 'j':
			options->json = true;
			break;
		case 'p':
			options->perfetto = optarg;
			break;
		case 's':
			if (!number(optarg, 1, SECONDS_MAX, &options->seconds))
				return usage("--seconds wants a number from 1 to 86400");
			break;
		case 'e':
			if (!number(optarg, 0, EVERY_MAX, &options->every))
				return usage("--every wants a number from 0 to 16");
			break;
		default:
			return EXIT_USAGE;
		}
	}
	return -1;
}

static int trace_sends(int argc, char **argv)
{
	struct options options = { .every = 6 };
	struct shunt_door *wanted;
	struct trace trace;
	uint64_t since = 0;
	int rc = read_options(argc, argv, &options);
	size_t count = rc < 0 ? (size_t)(argc - optind) : 0;

	if (rc >= 0)
		return rc;
	wanted = calloc(count + 1, sizeof(*wanted));
	for (size_t i = 0; wanted && i < count; i++)
		if (!shunt_door_parse(argv[optind + (int)i], &wanted[i])) {
			free(wanted);
			return usage("a process is a process id or an identity");
		}
	if (wanted && options.seconds)
		since = follow(&options, wanted, count);
	if (!wanted || (options.seconds && !since)) {
		free(wanted);
		return EXIT_FAILED;
	}
	trace_ask(&trace, wanted, count, since);
	free(wanted);
	rc = show(&trace, &options);
	trace_free(&trace);
	return rc;
}

int shunt_trace(int argc, char **argv)
{
	return argc > 1 && !strcmp(argv[1], "slow") ? shunt_log_show(argc - 1, argv + 1) : trace_sends(argc, argv);
}
