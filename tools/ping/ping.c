/* SPDX-License-Identifier: MIT */
/* shunt ping: options, and targets one after the other. */
#include "core/base/conf.h"
#include "tools/ping/ping.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/api.h"
#include "tools/bench/bench.h"
#include "tools/common/output.h"
#include "tools/shunt.h"

static const char help[] =
	"Usage: shunt ping [OPTION...] HOST[:PORT]...\n"
	"       shunt ping [OPTION...] --matrix FILE\n"
	"       shunt ping --serve [[ADDRESS:]PORT]\n\n"
	"Measures the way to each host, step by step, and says why a path is not on the link. Without a\n"
	"port `shunt ping --serve` answers there, at port 4792. With the port of any other service no byte\n"
	"is sent to its program.\n\n"
	"  -c, --count=N          samples of each time, of which the median is shown (5)\n"
	"  -i, --interval=SECONDS  between two samples (0)\n"
	"  -W, --wait=SECONDS     the longest that a step may take (5)\n"
	"  -B, --from=ADDRESS     the address of this host that connections begin at\n"
	"  -j, --json             JSON instead of text\n"
	"  -m, --matrix=FILE      each host of a list to each other, as a table; a row of another host comes\n"
	"                         from `shunt ping` there\n"
	"      --ssh=COMMAND      how a command runs on another host: COMMAND HOST shunt ping ... (ssh)\n"
	"      --html=FILE        the table as a page, too\n"
	"      --serve [WHERE]    be the end that answers, until it is ended\n\n"
	"Exit status: 0 if the link carries each path, 1 if some are on TCP or unreachable, 2 for wrong\n"
	"usage.\n";

enum { OPTION_SSH = 256, OPTION_HTML, OPTION_SERVE };

static const struct option options_long[] = {
	{ "count", required_argument, NULL, 'c' },
	{ "interval", required_argument, NULL, 'i' },
	{ "wait", required_argument, NULL, 'W' },
	{ "from", required_argument, NULL, 'B' },
	{ "json", no_argument, NULL, 'j' },
	{ "matrix", required_argument, NULL, 'm' },
	{ "ssh", required_argument, NULL, OPTION_SSH },
	{ "html", required_argument, NULL, OPTION_HTML },
	{ "serve", optional_argument, NULL, OPTION_SERVE },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

struct request {
	struct ping_options options;
	struct ping_matrix_options matrix;
	const char *serve;
	bool help;
	char **targets;
	int count;
};

static int usage(const char *what, const char *value)
{
	fprintf(stderr, "shunt ping: %s%s; `shunt ping --help` says how\n", what, value);
	return EXIT_USAGE;
}

/* Seconds as milliseconds, or -1. */
static long milliseconds(const char *text, double most)
{
	char *rest;
	double seconds = strtod(text, &rest);

	if (rest == text || *rest || !(seconds >= 0) || seconds > most)
		return -1;
	return (long)(seconds * 1000 + 0.5);
}

static int take_number(struct request *request, int option)
{
	long number;

	if (option == 'c') {
		char *rest;

		number = strtol(optarg, &rest, 10);
		if (!*optarg || *rest || number < 1 || number > PING_COUNT_MAX)
			return usage("--count is 1 to 1000, not ", optarg);
		request->options.count = (unsigned int)number;
		return 0;
	}
	number = milliseconds(optarg, 3600);
	if (number < 0 || (option == 'W' && !number))
		return usage("no time in seconds: ", optarg);
	if (option == 'i')
		request->options.interval_ms = (unsigned int)number;
	else
		request->options.wait_ms = (unsigned int)number;
	return 0;
}

static int take(struct request *request, int option)
{
	union ping_address address;

	switch (option) {
	case 'c':
	case 'i':
	case 'W':
		return take_number(request, option);
	case 'B':
		request->options.from = optarg;
		return ping_address_parse(optarg, &address) ? usage("no address: ", optarg) : 0;
	case 'j':
		request->matrix.json = true;
		return 0;
	case 'm':
		request->matrix.file = optarg;
		return 0;
	case OPTION_SSH:
		request->matrix.ssh = optarg;
		return 0;
	case OPTION_HTML:
		request->matrix.html = optarg;
		return 0;
	case OPTION_SERVE:
		request->serve = optarg ? optarg : "";
		return 0;
	case 'h':
		request->help = true;
		return 0;
	default:
		return usage("no such option", "");
	}
}

/* The place of the answering end may be a word of its own. */
static int take_where(struct request *request)
{
	if (request->count && !*request->serve) {
		request->serve = request->targets[0];
		request->count--;
		request->targets++;
	}
	return request->count ? usage("--serve takes no host: ", request->targets[0]) : 0;
}

static int parse(struct request *request, int argc, char **argv)
{
	int option, rc = 0;

	opterr = 0;
	while (!rc && (option = getopt_long(argc, argv, "c:i:W:B:jm:h", options_long, NULL)) != -1)
		rc = take(request, option);
	if (rc || request->help)
		return rc;
	request->targets = argv + optind;
	request->count = argc - optind;
	if (request->serve)
		return take_where(request);
	if (!request->matrix.file == !request->count)
		return usage(request->count ? "either hosts or --matrix" : "no host", "");
	return request->matrix.html && !request->matrix.file ? usage("--html is of --matrix", "") :
							       0;
}

static int one(const char *text, const struct ping_options *options, json_t *list, int *failed)
{
	struct ping_way way = { .verdict = PING_UNREACHABLE };
	int rc;

	ping_target_parse(&way.target, text);
	rc = ping_way(&way, options);
	if (!rc) {
		*failed += way.verdict != PING_LINK;
		if (list)
			json_array_append_new(list, ping_json(&way));
		else
			ping_show(&way);
		fflush(stdout);
	}
	ping_way_free(&way);
	return rc;
}

static int ping_all(const struct request *request)
{
	json_t *root = request->matrix.json ? json_object() : NULL,
	       *list = root ? json_array() : NULL;
	int failed = 0, rc = 0;

	for (int i = 0; i < request->count && !rc; i++)
		rc = one(request->targets[i], &request->options, list, &failed);
	if (root) {
		json_object_set_new(root, "schema", json_integer(SHUNT_JSON_SCHEMA));
		json_object_set_new(root, "targets", list);
		shunt_print_json(stdout, root, JSON_INDENT(2));
		json_decref(root);
	}
	return rc || failed ? EXIT_FAILED : 0;
}

/* Makes ready for the shunted end. */
static int prepare(struct ping_options *options)
{
	ssize_t length = readlink("/proc/self/exe", options->program, sizeof(options->program) - 1);

	if (length < 0 || shunt_library_find(options->library))
		return EXIT_FAILED;
	options->program[length] = '\0';
	if (shunt_child_init()) {
		perror("shunt ping");
		return EXIT_FAILED;
	}
	return shunt_scratch_make("ping", options->scratch) ? EXIT_FAILED : 0;
}

int shunt_ping(int argc, char **argv)
{
	static struct request request = { .options = { .count = 5, .wait_ms = 5000 },
					  .matrix = { .ssh = "ssh" } };
	struct ping_target target;
	int rc = parse(&request, argc, argv);

	if (rc)
		return rc;
	if (request.help) {
		fputs(help, stdout);
		return 0;
	}
	if (request.serve) {
		rc = ping_serve(request.serve);
		return rc == EXIT_USAGE ? usage("no [ADDRESS:]PORT: ", request.serve) : rc;
	}
	for (int i = 0; i < request.count; i++)
		if (ping_target_parse(&target, request.targets[i]))
			return usage("no HOST[:PORT]: ", request.targets[i]);
	if (shunt_variables_load("shunt ping", &request.options.config, NULL, NULL).values)
		return EXIT_USAGE;
	rc = prepare(&request.options);
	if (!rc)
		rc = request.matrix.file ? ping_matrix(&request.matrix, &request.options) :
					   ping_all(&request);
	if (request.options.scratch[0])
		shunt_scratch_remove(request.options.scratch);
	return rc;
}

int shunt_ping_end(int argc, char **argv)
{
	if (argc >= 2 && !strcmp(argv[1], "client"))
		return ping_client(argc - 1, argv + 1);
	if (argc >= 2 && !strcmp(argv[1], "server"))
		return ping_server(argc - 1, argv + 1);
	fprintf(stderr, "shunt ping-end: started by `shunt ping` only\n");
	return EXIT_USAGE;
}
