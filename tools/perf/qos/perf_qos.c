/* SPDX-License-Identifier: MIT */
/* shunt perf qos: its options. */
#include "tools/perf/qos/perf_qos.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/config.h"
#include "tools/shunt.h"

static const char help[] =
	"Usage: shunt perf qos [OPTIONS]\n\n"
	"Measures client processes that share one server process, on the loopback interface. Client N\n"
	"asks for class cN (SHUNT_QOS_CLASS). Time is cut into periods, and each client has a demand: a\n"
	"number of requests each period. Shown is what was completed in each period, and latencies.\n"
	"A request is complete when its answer has come. Every byte is checked.\n\n"
	"Load:\n"
	"  --pattern burst       DEPTH requests outstanding until the period's demand is used up [burst]\n"
	"  --pattern constant    requests at equal distances; latency counts from the intended time\n"
	"  --demand uniform|spike|zipf\n"
	"                        how the clients share the total: equally; three of ten have 340 and the\n"
	"                        others 80; by Zipf's law, exponent 0.6, in groups of two [uniform]\n"
	"  --demand N,N,...      the demand of each client\n"
	"  --total N             requests each period, of all clients together [1580]\n"
	"  --clients N           client processes, 1 to 64 [10]\n"
	"  --depth N             1 to 4096 [64]\n"
	"  --request BYTES       size of a request [4K]\n"
	"  --reply BYTES         size of an answer [64]\n"
	"  --period S            seconds, 0.01 to 600 [1]\n"
	"  --warm N              periods that do not count, at the beginning [2]\n"
	"  --periods N           periods that count [10]\n\n"
	"What is measured:\n"
	"  --transport tcp|shunt over plain TCP, or shunted [shunt]\n"
	"  --rules RULES|/FILE   SHUNT_QOS of the server\n"
	"  --server SHUNT_A=V    a variable of the server; may be given several times\n"
	"  --client SHUNT_A=V    a variable of every client; may be given several times\n"
	"  --at N:COMMAND        when period N begins, `sh -c COMMAND` with SERVER_PID in its environment;\n"
	"                        N may be one more than the periods: when the last has ended\n\n"
	"  --json FILE           all of it as JSON\n\n"
	"Exit status: 0, or 1 if the run failed or the file could not be written.\n";

struct options {
	struct perf_qos_plan plan;
	const char *demand, *json_path;
	uint64_t total;
	FILE *json;
};

static int usage_error(const char *what, const char *text)
{
	fprintf(stderr, "shunt perf qos: %s '%s'; `shunt perf qos --help` says how\n", what, text);
	return EXIT_USAGE;
}

/* ---- numbers ---- */

static const struct number {
	int option;
	size_t offset; /* in the plan */
	uint64_t min, max;
	const char *wrong;
} numbers[] = {
#define FIELD(name) offsetof(struct perf_qos_plan, name)
	{ 'n', FIELD(clients), 1, PERF_QOS_CLIENTS_MAX, "not a number of clients from 1 to 64:" },
	{ 'd', FIELD(depth), 1, PERF_DEPTH_MAX, "not a depth from 1 to 4096:" },
	{ 'q', FIELD(request), 1, PERF_MESSAGE_MAX, "not a size of a request from 1 to 1M:" },
	{ 'a', FIELD(reply), 1, PERF_MESSAGE_MAX, "not a size of an answer from 1 to 1M:" },
	{ 'w', FIELD(warm), 0, PERF_QOS_PERIODS_MAX / 2, "not a number of periods from 0 to 300:" },
	{ 'N', FIELD(periods), 1, PERF_QOS_PERIODS_MAX / 2,
	  "not a number of periods from 1 to 300:" },
#undef FIELD
};

static int parse_number(struct perf_qos_plan *plan, int option)
{
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		uint64_t n;

		if (numbers[i].option != option)
			continue;
		if (perf_number(optarg, numbers[i].min, numbers[i].max, &n))
			return usage_error(numbers[i].wrong, optarg);
		*(uint32_t *)((char *)plan + numbers[i].offset) = (uint32_t)n;
		return 0;
	}
	return EXIT_USAGE;
}

static int parse_period(struct perf_qos_plan *plan)
{
	char *end;
	double seconds = strtod(optarg, &end);

	if (end == optarg || *end || !(seconds >= 0.01 && seconds <= PERF_SECONDS_MAX))
		return usage_error("not a number of seconds from 0.01 to 600:", optarg);
	plan->period_ms = (uint32_t)(seconds * 1000 + 0.5);
	return 0;
}

/* ---- words ---- */

static int parse_pattern(struct perf_qos_plan *plan)
{
	if (!strcmp(optarg, "burst"))
		plan->pattern = PERF_QOS_BURST;
	else if (!strcmp(optarg, "constant"))
		plan->pattern = PERF_QOS_CONSTANT;
	else
		return usage_error("patterns are burst and constant, not", optarg);
	return 0;
}

static int parse_transport(struct perf_qos_plan *plan)
{
	plan->plain = !strcmp(optarg, "tcp");
	if (!plan->plain && strcmp(optarg, "shunt"))
		return usage_error("transports are tcp and shunt, not", optarg);
	return 0;
}

static int add_variable(char **variables)
{
	size_t count = 0;
	char name[64];

	while (variables[count])
		count++;
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(optarg, "="), optarg);
	if (!shunt_config_known(name) || !strchr(optarg, '='))
		return usage_error("no SHUNT_VARIABLE=VALUE:", optarg);
	if (count == PERF_QOS_VARIABLES_MAX)
		return usage_error("more than 16 variables:", optarg);
	variables[count] = optarg;
	return 0;
}

/* "N:COMMAND"; N is compared with the periods once they are known. */
static int add_event(struct perf_qos_plan *plan)
{
	const char *colon = strchr(optarg, ':');
	char number[8] = "";
	uint64_t period;

	if (colon && (size_t)(colon - optarg) < sizeof(number))
		memcpy(number, optarg, (size_t)(colon - optarg));
	if (perf_number(number, 1, PERF_QOS_PERIODS_MAX, &period) || !colon[1])
		return usage_error("not PERIOD:COMMAND:", optarg);
	if (plan->event_count == PERF_QOS_EVENTS_MAX)
		return usage_error("more than 8 commands:", optarg);
	plan->events[plan->event_count++] = (struct perf_qos_event) { (uint32_t)period, colon + 1 };
	return 0;
}

static int parse_option(struct options *options, int option)
{
	struct perf_qos_plan *plan = &options->plan;

	switch (option) {
	case 'p':
		return parse_pattern(plan);
	case 't':
		return parse_transport(plan);
	case 'D':
		options->demand = optarg;
		return 0;
	case 'T':
		if (perf_number(optarg, 1, PERF_QOS_DEMAND_MAX, &options->total))
			return usage_error("not a number of requests from 1 to 1000000:", optarg);
		return 0;
	case 'P':
		return parse_period(plan);
	case 'r':
		plan->rules = optarg;
		return 0;
	case 's':
		return add_variable(plan->server_variables);
	case 'c':
		return add_variable(plan->client_variables);
	case '@':
		return add_event(plan);
	case 'j':
		options->json_path = optarg;
		return 0;
	case 'h':
		fputs(help, stdout);
		exit(0);
	default:
		return parse_number(plan, option);
	}
}

/* Options that are possible only together with others. */
static int check(struct options *options)
{
	struct perf_qos_plan *plan = &options->plan;

	for (size_t i = 0; i < plan->event_count; i++)
		if (plan->events[i].period > plan->periods + 1)
			return usage_error("no such period:", plan->events[i].command);
	if (strchr("0123456789", *options->demand)) {
		if (perf_qos_demand_list(options->demand, plan->clients, plan->demands))
			return usage_error("not a demand for each client:", options->demand);
	} else if (perf_qos_demand(options->demand, options->total, plan->clients, plan->demands)) {
		return usage_error("demands are uniform, spike, zipf and N,N,..., not",
				   options->demand);
	}
	return 0;
}

static int parse(struct options *options, int argc, char **argv)
{
	static const struct option names[] = {
		{ "pattern", required_argument, NULL, 'p' },
		{ "demand", required_argument, NULL, 'D' },
		{ "total", required_argument, NULL, 'T' },
		{ "clients", required_argument, NULL, 'n' },
		{ "depth", required_argument, NULL, 'd' },
		{ "request", required_argument, NULL, 'q' },
		{ "reply", required_argument, NULL, 'a' },
		{ "period", required_argument, NULL, 'P' },
		{ "warm", required_argument, NULL, 'w' },
		{ "periods", required_argument, NULL, 'N' },
		{ "transport", required_argument, NULL, 't' },
		{ "rules", required_argument, NULL, 'r' },
		{ "server", required_argument, NULL, 's' },
		{ "client", required_argument, NULL, 'c' },
		{ "at", required_argument, NULL, '@' },
		{ "json", required_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c, rc = 0;

	*options = (struct options) {
		.plan = { .clients = 10,
			  .depth = 64,
			  .request = 4096,
			  .reply = 64,
			  .period_ms = 1000,
			  .warm = 2,
			  .periods = 10 },
		.demand = "uniform",
		.total = 1580,
	};
	while (!rc && (c = getopt_long(argc, argv, "", names, NULL)) != -1)
		rc = parse_option(options, c);
	if (!rc && argv[optind])
		rc = usage_error("no options are", argv[optind]);
	return rc ? rc : check(options);
}

/* ---- all of it ---- */

static int run(const struct options *options)
{
	struct perf_qos_result *result = calloc(1, sizeof(*result));
	char why[SHUNT_WHY_MAX];
	int rc;

	if (!result)
		abort();
	rc = perf_qos_run(&options->plan, result, why);
	if (rc == -EINTR)
		fprintf(stderr, "shunt perf qos: interrupted\n");
	else if (rc)
		fprintf(stderr, "shunt perf qos: %s\n", why);
	else
		perf_qos_table(&options->plan, result);
	if (!rc && options->json)
		rc = perf_qos_json(options->json, options->json_path, &options->plan, result);
	else if (options->json)
		fclose(options->json);
	free(result);
	return rc == -EINTR ? 130 : rc ? EXIT_FAILED : 0;
}

int perf_qos(int argc, char **argv)
{
	struct options *options = calloc(1, sizeof(*options));
	int rc;

	if (!options)
		abort();
	rc = parse(options, argc, argv);
	if (!rc && shunt_variables_check("shunt perf qos"))
		rc = EXIT_USAGE;
	if (!rc && options->json_path && !(options->json = fopen(options->json_path, "we"))) {
		fprintf(stderr, "shunt perf qos: cannot write %s: %m; nothing was started\n",
			options->json_path);
		rc = EXIT_USAGE;
	}
	if (!rc)
		rc = run(options);
	free(options);
	return rc;
}
