/* SPDX-License-Identifier: MIT */
/* shunt advise: does it pay for this program, on this machine? Options, and the order of what is done. */
#include "tools/advise/advise.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "core/base/reason.h"
#include "tools/page/page.h"
#include "tools/common/output.h"
#include "tools/shunt.h"

static const char help[] =
	"Usage: shunt advise [OPTIONS] [--] COMMAND [ARGUMENTS]\n"
	"       shunt advise --pid PID... [--seconds S] [--json]\n\n"
	"Runs COMMAND, the client of a server, over plain TCP and shunted in turns, and says\n"
	"whether Shunt pays. A server that runs already has to run with Shunt. Settings that the\n"
	"statistics speak for are tried. With --pid it says what running processes show.\n\n"
	"  --server COMMAND  start this server, by a shell, for each run: bare for TCP, shunted for\n"
	"                    the other\n"
	"  --port PORT       the server's port: a server that is started is ready when it listens\n"
	"                    there (else at any port); a running one is found by it\n"
	"  --ready TEXT      the server is ready when its output has this text\n"
	"  --rounds N        pairs of runs, 3 to 49 [5]; as many again where they are not clear\n"
	"  --metric REGEX    the figure is the number in the expression's first group, in COMMAND's\n"
	"                    output, and more is better; `time` is the time of a run. Known without\n"
	"                    it: redis-benchmark, wrk, ab, pgbench, iperf3, memaslap, memcslap\n"
	"  --lower           less is better\n"
	"  --timeout S       longest run, 1 to 86400 seconds [300]\n"
	"  --no-try          try no settings\n"
	"  --json            the result as JSON\n"
	"  --html FILE       the result as a page with a picture\n"
	"  --svg FILE        the picture alone\n"
	"  --pid PID         a shunted process; may be given several times\n"
	"  --seconds S       how long processes are watched, 1 to 3600 [10]\n\n"
	"Exit status: 0 faster, 3 slower, 4 no difference, 1 if it could not be measured, 2 for a\n"
	"wrong option, 130 if interrupted. With --pid 0, or 1 if no process could be asked.\n";

struct options {
	struct advise_bench bench;
	const char *html, *svg;
	char *pids[ADVISE_SERVERS_MAX];
	size_t pid_count;
	int seconds;
	bool json, no_try, lower;
};

static int usage_error(const char *what, const char *text)
{
	fprintf(stderr, "shunt advise: %s '%s'; `shunt advise --help` says how\n", what, text);
	return EXIT_USAGE;
}

static int parse_number(const char *what, const char *text, int min, int max, int *number)
{
	char *end, words[96];
	long n = strtol(text, &end, 10);

	*number = (int)n;
	if (!*end && end != text && n >= min && n <= max)
		return 0;
	snprintf(words, sizeof(words), "not a number of %s from %d to %d:", what, min, max);
	return usage_error(words, text);
}

static int parse_metric(struct options *options, const char *pattern)
{
	struct advise_bench *bench = &options->bench;
	char why[SHUNT_WHY_MAX], words[SHUNT_WHY_MAX + 64];

	bench->own = (struct advise_metric) { .unit = "s", .lower = true };
	if (!strcmp(pattern, "time"))
		return 0;
	if (advise_metric_check(pattern, why)) {
		snprintf(words, sizeof(words), "--metric: not a regular expression (%s):", why);
		return usage_error(words, pattern);
	}
	bench->own = (struct advise_metric) {
		.program = "", .pattern = pattern, .unit = "figure", .lines = true
	};
	return 0;
}

static int parse_option(struct options *options, int c)
{
	struct advise_bench *bench = &options->bench;
	int n, rc = 0;

	switch (c) {
	case 'S':
		bench->server.command = optarg;
		break;
	case 'P':
		return parse_number("a port", optarg, 1, 65535, &bench->server.port);
	case 'R':
		bench->server.ready = optarg;
		break;
	case 'r':
		return parse_number("rounds", optarg, 3, ADVISE_ROUNDS_MAX, &bench->rounds);
	case 'm':
		return parse_metric(options, optarg);
	case 'l':
		options->lower = true;
		break;
	case 't':
		rc = parse_number("seconds", optarg, 1, 86400, &n);
		bench->timeout = n;
		break;
	case 'n':
		options->no_try = true;
		break;
	case 'j':
		options->json = true;
		break;
	case 'H':
		options->html = optarg;
		break;
	case 'V':
		options->svg = optarg;
		break;
	case 'p':
		if (options->pid_count == ADVISE_SERVERS_MAX)
			return usage_error("too many processes:", optarg);
		options->pids[options->pid_count++] = optarg;
		break;
	case 's':
		return parse_number("seconds", optarg, 1, 3600, &options->seconds);
	case 'h':
		fputs(help, stdout);
		exit(0);
	default:
		return EXIT_USAGE;
	}
	return rc;
}

static bool is_shunt(const char *path)
{
	const char *slash = strrchr(path, '/');

	return !strcmp(slash ? slash + 1 : path, "shunt");
}

/* The rest of the words: a command, or more processes. */
static int parse_rest(struct options *options, int argc, char **argv)
{
	struct advise_bench *bench = &options->bench;

	for (; options->pid_count && optind < argc; optind++) {
		if (options->pid_count == ADVISE_SERVERS_MAX)
			return usage_error("too many processes:", argv[optind]);
		options->pids[options->pid_count++] = argv[optind];
	}
	if (options->pid_count)
		return options->html || options->svg || bench->server.command ?
			       usage_error("--html, --svg and --server are for a command, not for",
					   "--pid") :
			       0;
	if (optind == argc)
		return usage_error("no command to run, and no", "--pid");
	if (bench->server.ready && !bench->server.command)
		return usage_error("--ready is for a server that is started by", "--server");
	bench->argv = argv + optind;
	/* Both sides would be shunted. */
	if (is_shunt(bench->argv[0]) && bench->argv[1] && !strcmp(bench->argv[1], "run"))
		return usage_error("the command itself, without `shunt run`, goes after", "advise");
	if (!bench->own.unit) {
		bench->metric_count = advise_metric_find(bench->argv, &bench->metrics);
	} else if (bench->own.pattern) {
		bench->own.lower = options->lower;
		bench->metrics = &bench->own;
		bench->metric_count = 1;
	}
	if (options->lower && (!bench->own.unit || !bench->own.pattern))
		return usage_error("--lower is for an expression of", "--metric");
	return 0;
}

static int parse(struct options *options, int argc, char **argv)
{
	static const struct option names[] = {
		{ "server", required_argument, NULL, 'S' },
		{ "port", required_argument, NULL, 'P' },
		{ "ready", required_argument, NULL, 'R' },
		{ "rounds", required_argument, NULL, 'r' },
		{ "metric", required_argument, NULL, 'm' },
		{ "lower", no_argument, NULL, 'l' },
		{ "timeout", required_argument, NULL, 't' },
		{ "no-try", no_argument, NULL, 'n' },
		{ "json", no_argument, NULL, 'j' },
		{ "html", required_argument, NULL, 'H' },
		{ "svg", required_argument, NULL, 'V' },
		{ "pid", required_argument, NULL, 'p' },
		{ "seconds", required_argument, NULL, 's' },
		{ "try", no_argument, NULL, 'T' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c, rc;

	while ((c = getopt_long(argc, argv, "+", names, NULL)) != -1) {
		if (c == 'T')
			options->no_try = false;
		else if ((rc = parse_option(options, c)))
			return rc;
	}
	return parse_rest(options, argc, argv);
}

/* ---- the measurement ---- */

static int fail(const struct options *options, const char *why)
{
	json_t *root;

	fprintf(stderr, "shunt advise: %s\n", why);
	if (options->json) {
		root = json_pack("{s:i, s:s, s:s, s:s}", "schema", 1, "version", PACKAGE_VERSION,
				 "verdict", "not measured", "why", why);
		shunt_print_json(stdout, root, JSON_INDENT(2));
		json_decref(root);
	}
	return EXIT_FAILED;
}

/* 0, or the exit status. A program that no library can be loaded into has no shunted run. */
static int check_program(const struct options *options)
{
	const char *name = options->bench.argv[0], *why = "";
	char path[PATH_MAX], words[PATH_MAX + SHUNT_PROGRAM_WORDS + 256], go[SHUNT_PROGRAM_WORDS];
	enum shunt_program_kind kind;
	int rc = shunt_program_find(name, path);

	if (rc) {
		snprintf(words, sizeof(words), "%s: %s", name, strerror(-rc));
		return fail(options, words);
	}
	kind = shunt_program_inspect(path, &why);
	if (shunt_program_go(path, go, sizeof(go)) == SHUNT_PROGRAM_GO_LEFT)
		why = go;
	else if (kind == SHUNT_PROGRAM_OK)
		return 0;
	snprintf(words, sizeof(words), "%s: %s, so that it never runs with Shunt: leave it on TCP",
		 path, why);
	return fail(options, words);
}

/* The server that runs already: known by its port, or found while the client runs. 0, or -1 and why. */
static int check_server(const struct advise_bench *bench, char why[SHUNT_WHY_MAX])
{
	const struct advise_server *server = &bench->server;
	pid_t plain = server->command ? 0 : advise_server_plain(server);

	if (!plain)
		return 0;
	snprintf(
		why, SHUNT_WHY_MAX,
		"the server, %s, runs without Shunt (process %d), so that both sides would be plain TCP: "
		"start it with `shunt run`, or give its command with --server",
		server->name, (int)plain);
	return -1;
}

/* Nothing was on a link because the server is plain, or out of reach: that is no measurement. */
static int check_peer(const json_t *client, char why[SHUNT_WHY_MAX])
{
	static const enum shunt_reason reasons[] = { SHUNT_REASON_NO_SHUNT,
						     SHUNT_REASON_OTHER_HOST };
	const json_t *totals = json_object_get(client, "totals");

	if (json_integer_value(json_object_get(totals, "linked")))
		return 0;
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		const char *text = shunt_reason_text(reasons[i]);

		if (!json_object_get(json_object_get(client, "reasons"), text))
			continue;
		snprintf(
			why, SHUNT_WHY_MAX,
			"no connection was on a link, because %s: start the server with `shunt run`, or give "
			"its command with --server; `shunt ping` looks at another host",
			text);
		return -1;
	}
	return 0;
}

/* A port is not all that a server needs: the database may be starting up. */
static void hint_ready(const struct advise_bench *bench, char why[SHUNT_WHY_MAX])
{
	size_t length = strlen(why);

	if (bench->server.command && !bench->server.ready)
		snprintf(why + length, SHUNT_WHY_MAX - length,
			 ". If it came too early: --ready TEXT waits until the server "
			 "says so");
}

/* One pair that does not count: it fills caches, and shows whether there is anything to measure. */
static int warm_up(struct advise_bench *bench, char why[SHUNT_WHY_MAX])
{
	static const struct advise_way ways[2] = { { .shunted = false }, { .shunted = true } };
	json_t *client = json_object();
	struct advise_run run;
	int rc = 0;

	if (!bench->server.command && bench->server.port &&
	    !advise_server_at(&bench->server, bench->server.port) &&
	    !advise_server_listens(bench->server.port)) {
		snprintf(
			why, SHUNT_WHY_MAX,
			"nothing listens at port %d: start the server with `shunt run`, or give its command "
			"with --server",
			bench->server.port);
		rc = -1;
	}
	bench->seek = !bench->server.command && !bench->server.count;
	if (!rc)
		rc = advise_run(bench, &ways[0], &run, NULL, NULL, why);
	if (rc == -1)
		hint_ready(bench, why);
	bench->seek = false;
	if (!rc)
		rc = check_server(bench, why);
	if (!rc)
		rc = advise_run(bench, &ways[1], &run, client, NULL, why);
	if (!rc)
		rc = check_peer(client, why);
	json_decref(client);
	return rc;
}

static void write_command(struct advise_result *result)
{
	char text[sizeof(result->command)] = "";
	size_t length = 0;

	for (char *const *word = result->bench->argv; *word && length < sizeof(text) - 1; word++)
		length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%s",
					   length ? " " : "", *word);
	shunt_escape(text, result->command, sizeof(result->command));
}

static int measure(struct advise_result *result, char why[SHUNT_WHY_MAX])
{
	static const struct advise_way ways[2] = { { .shunted = false }, { .shunted = true } };
	struct advise_bench *bench = result->bench;
	int rc;

	advise_progress("warming up", &result->pairs, bench->rounds);
	rc = warm_up(bench, why);
	advise_progress(NULL, NULL, 0);
	if (!rc)
		rc = advise_pairs_measure(bench, ways, "TCP and Shunt", &result->pairs, why);
	if (rc)
		return rc;
	shunt_share_of(json_object_get(result->pairs.client, "totals"), &result->share);
	return result->try_wanted ? advise_try_all(result) : 0;
}

static int report(const struct options *options, const struct advise_result *result)
{
	static const int statuses[] = {
		[ADVISE_MORE] = EXIT_FAILED,
		[ADVISE_FASTER] = ADVISE_EXIT_FASTER,
		[ADVISE_SLOWER] = ADVISE_EXIT_SLOWER,
		[ADVISE_SAME] = ADVISE_EXIT_SAME,
	};

	if (options->json)
		advise_json(result);
	else
		advise_show(result);
	if ((options->html && advise_html(result, options->html)) ||
	    (options->svg && advise_svg(result, options->svg)))
		return EXIT_FAILED;
	return statuses[result->pairs.verdict];
}

/* Orphans of a server are ours, so that all of it can be ended. */
static int open_bench(struct advise_bench *bench)
{
	int rc = shunt_child_init();

	if (rc || prctl(PR_SET_CHILD_SUBREAPER, 1)) {
		fprintf(stderr, "shunt advise: signals: %s\n", strerror(rc ? -rc : errno));
		return -1;
	}
	if (shunt_library_find(bench->library))
		return -1;
	return shunt_scratch_make("advise", bench->dir);
}

static int run(struct options *options)
{
	struct advise_bench *bench = &options->bench;
	struct advise_result *result;
	char why[SHUNT_WHY_MAX] = "";
	int rc, status;

	if (shunt_page_check("shunt advise", options->html) ||
	    shunt_page_check("shunt advise", options->svg) || open_bench(bench))
		return EXIT_FAILED;
	result = calloc(1, sizeof(*result));
	if (!result)
		abort();
	result->bench = bench;
	result->try_wanted = !options->no_try;
	advise_pairs_init(&result->pairs);
	write_command(result);
	rc = measure(result, why);
	shunt_scratch_remove(bench->dir);
	if (rc == -EINTR)
		fprintf(stderr, "shunt advise: interrupted; no verdict\n");
	status = rc == -EINTR ? 130 : rc ? fail(options, why) : report(options, result);
	for (size_t i = 0; i < result->try_count; i++)
		advise_pairs_free(&result->tries[i].pairs);
	advise_pairs_free(&result->pairs);
	free(result);
	return status;
}

int shunt_advise(int argc, char **argv)
{
	struct options options = { .bench = { .rounds = 5, .timeout = 300 }, .seconds = 10 };
	int rc = parse(&options, argc, argv);

	if (rc)
		return rc;
	if (options.pid_count)
		return advise_watch(options.pids, options.pid_count, options.seconds, options.json);
	if (shunt_variables_check("shunt advise"))
		return EXIT_USAGE;
	rc = check_program(&options);
	return rc ? rc : run(&options);
}
