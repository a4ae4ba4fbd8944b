/* SPDX-License-Identifier: MIT */
/* The options of shunt perf, and the models that it is asked for. */
#include "tools/perf/perf_options.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "tools/shunt.h"

#define WARM_MS 100
#define WORK 1000 /* options of perf_work_field(), in its order */

static const char help[] =
	"Usage: shunt perf [OPTIONS] MODEL...\n"
	"       shunt perf [OPTIONS] --to HOST[:PORT] MODEL...\n"
	"       shunt perf --serve [--cpu LIST] [ADDRESS[:PORT]]\n"
	"       shunt perf programs [OPTIONS]    (redis and iperf3: shunt perf programs --help)\n"
	"       shunt perf qos [OPTIONS]         (clients with classes: shunt perf qos --help)\n\n"
	"Measures models of traffic between two plain socket programs of its own, over plain TCP and\n"
	"shunted in turns, on the loopback interface, and shows rates, percentiles of latency and costs.\n"
	"Every byte is checked, unless --scan says otherwise. BYTES may have the suffix K or M.\n\n"
	"Models:\n"
	"%s\n"
	"Options:\n"
	"  --transports LIST     tcp, shunt, or both [tcp,shunt]\n"
	"  --variant NAME=SHUNT_A=VALUE,SHUNT_B=VALUE...\n"
	"                        also shunted with these variables; may be given several times\n"
	"  --rounds N            measurements of each model and transport, 1 to 99 [5]\n"
	"  --spread PERCENT      more rounds until the relative standard deviation of OPS/S from round to\n"
	"                        round is below it for every transport; at least 2 rounds\n"
	"  --max-rounds N        limit of these rounds, 2 to 99 [30]\n"
	"  --cpu SERVER[,CLIENT] the CPUs of the two ends, numbers or ranges as in 0,2-3\n"
	"  --seconds S           length of a measurement, 0.01 to 600 [1]; each is preceded by 0.1 s\n"
	"                        that does not count\n"
	"  --threads N           threads of the client, 1 to 64 [1]\n"
	"  --depth N             requests outstanding on each connection, 1 to 4096 [1; a cluster's size]\n"
	"%s"
	"  --rate N[/s]          also as an open loop: so many requests a second are due on all connections\n"
	"                        together, and latencies count from then; may be given up to 8 times\n"
	"  --arrivals constant|poisson\n"
	"                        when these are due [constant]\n"
	"  --serve               waits for clients of other hosts, at 127.0.0.1 unless there is an address,\n"
	"                        with a plain process at PORT [4793] and a shunted one at the next\n"
	"  --to HOST[:PORT]      measures against these two; --cpu is the client's\n"
	"  --csv FILE            all rounds as comma-separated values\n"
	"  --json FILE           all rounds as JSON\n"
	"  --html FILE           a page with tables and pictures\n"
	"  --plot FILE           a picture of the medians, .png or .svg; needs gnuplot\n\n"
	"Exit status: 0, or 1 if a model failed or a file could not be written.\n";

static int usage_error(const char *what, const char *text)
{
	fprintf(stderr, "shunt perf: %s '%s'; `shunt perf --help` says how\n", what, text);
	return EXIT_USAGE;
}

static int parse_seconds(const char *text, unsigned int *ms)
{
	char *end;
	double seconds = strtod(text, &end);

	if (end == text || *end || !(seconds >= 0.01 && seconds <= PERF_SECONDS_MAX))
		return usage_error("not a number of seconds from 0.01 to 600:", text);
	*ms = (unsigned int)(seconds * 1000 + 0.5);
	return 0;
}

static int parse_spread(const char *text, double *percent)
{
	char *end;

	*percent = strtod(text, &end);
	if (end != text && (!*end || !strcmp(end, "%")) && *percent >= 0.1 && *percent <= 100)
		return 0;
	return usage_error("not a spread from 0.1 to 100 percent:", text);
}

/* "5000" or "5000/s" */
static int parse_rate(struct perf_options *options, const char *text)
{
	size_t length = strlen(text);
	char number[16];
	uint64_t rate;

	if (length > 2 && !strcmp(text + length - 2, "/s"))
		length -= 2;
	snprintf(number, sizeof(number), "%.*s", (int)length, text);
	if (length >= sizeof(number) || perf_number(number, 1, PERF_RATE_MAX, &rate))
		return usage_error("not a rate from 1 to 100000000 requests a second:", text);
	if (options->rate_count == PERF_RATES_MAX)
		return usage_error("more than 8 rates:", text);
	options->rates[options->rate_count++] = (uint32_t)rate;
	return 0;
}

static int parse_cpus(const char *text, struct perf_pin *pin)
{
	char why[SHUNT_WHY_MAX];

	if (!perf_pin_parse(pin, text, why))
		return 0;
	fprintf(stderr, "shunt perf: --cpu %s: %s\n", text, why);
	return EXIT_USAGE;
}

static int parse_work(struct perf_options *options, size_t field, const char *name)
{
	char what[64];

	if (!perf_work_set(&options->setup.work, field, name))
		return 0;
	snprintf(what, sizeof(what), "--%s is %s, not", perf_work_field(field),
		 perf_work_names(field));
	return usage_error(what, name);
}

/* A list of transports starts anew, so variants are added when all options are known. */
struct variants {
	const char *list[PERF_TRANSPORTS_MAX];
	size_t count;
};

static int parse_option(struct perf_options *options, struct variants *variants, int option)
{
	uint64_t n;

	switch (option) {
	case 't':
		return perf_transports_parse(&options->transports, optarg) ? EXIT_USAGE : 0;
	case 'v':
		if (variants->count == PERF_TRANSPORTS_MAX)
			return usage_error("more than 16 variants:", optarg);
		variants->list[variants->count++] = optarg;
		return 0;
	case 'r':
		if (perf_number(optarg, 1, PERF_ROUNDS_MAX, &n))
			return usage_error("not a number of rounds from 1 to 99:", optarg);
		options->setup.rounds = (int)n;
		return 0;
	case 's':
		return parse_seconds(optarg, &options->setup.measured_ms);
	case 'n':
		if (perf_number(optarg, 1, PERF_THREADS_MAX, &n))
			return usage_error("not a number of threads from 1 to 64:", optarg);
		options->setup.threads = (unsigned int)n;
		return 0;
	case 'd':
		if (perf_number(optarg, 1, PERF_DEPTH_MAX, &n))
			return usage_error("not a depth from 1 to 4096:", optarg);
		options->depth = (uint32_t)n;
		return 0;
	case 'R':
		if (perf_number(optarg, 2, PERF_ROUNDS_MAX, &n))
			return usage_error("not a limit of rounds from 2 to 99:", optarg);
		options->setup.max_rounds = (int)n;
		return 0;
	case 'S':
		return parse_spread(optarg, &options->setup.spread);
	case 'V':
		options->serve = true;
		return 0;
	case 'T':
		options->to = optarg;
		return 0;
	case 'O':
		return parse_rate(options, optarg);
	case 'A':
		return perf_arrivals_parse(&options->arrivals, optarg) ?
			       usage_error("arrivals are constant and poisson, not", optarg) :
			       0;
	case 'C':
		return parse_cpus(optarg, &options->setup.pin);
	case 'c':
		options->csv_path = optarg;
		return 0;
	case 'j':
		options->json_path = optarg;
		return 0;
	case 'p':
		options->plot_path = optarg;
		return 0;
	case 'H':
		options->html_path = optarg;
		return 0;
	case 'h':
		printf(help, perf_model_help, perf_work_help);
		exit(0);
	default:
		return option >= WORK ? parse_work(options, (size_t)(option - WORK), optarg) :
					EXIT_USAGE;
	}
}

static int model_error(const char *name, const char *why)
{
	fprintf(stderr, "shunt perf: %s: %s; `shunt perf --help` says how\n", name, why);
	return EXIT_USAGE;
}

/* Each rate makes a model of its own, after the closed loop. */
static int add_open_loops(struct perf_options *options)
{
	const struct perf_model *closed = &options->models[options->model_count - 1];
	char why[SHUNT_WHY_MAX];

	for (size_t i = 0; i < options->rate_count; i++) {
		const struct perf_open open = { options->rates[i], options->arrivals };

		if (options->model_count == PERF_MODELS_MAX)
			return usage_error("more than 32 models and rates:", closed->name);
		options->models[options->model_count] = *closed;
		if (perf_model_open(&options->models[options->model_count++], &open, why))
			return model_error(closed->name, why);
	}
	return 0;
}

static int parse_models(struct perf_options *options, char **names)
{
	char why[SHUNT_WHY_MAX];
	int rc;

	if (!*names)
		return usage_error("no model, such as", "pingpong");
	for (; *names; names++) {
		if (options->model_count == PERF_MODELS_MAX)
			return usage_error("more than 32 models:", *names);
		if (perf_model_parse(&options->models[options->model_count], *names, options->depth,
				     why))
			return model_error(*names, why);
		options->model_count++;
		rc = add_open_loops(options);
		if (rc)
			return rc;
	}
	return 0;
}

int perf_options_parse(struct perf_options *options, int argc, char **argv)
{
	static const struct option names[] = {
		{ "transports", required_argument, NULL, 't' },
		{ "variant", required_argument, NULL, 'v' },
		{ "rounds", required_argument, NULL, 'r' },
		{ "seconds", required_argument, NULL, 's' },
		{ "threads", required_argument, NULL, 'n' },
		{ "depth", required_argument, NULL, 'd' },
		{ "cpu", required_argument, NULL, 'C' },
		{ "spread", required_argument, NULL, 'S' },
		{ "max-rounds", required_argument, NULL, 'R' },
		{ "rate", required_argument, NULL, 'O' },
		{ "arrivals", required_argument, NULL, 'A' },
		{ "serve", no_argument, NULL, 'V' },
		{ "to", required_argument, NULL, 'T' },
		{ "csv", required_argument, NULL, 'c' },
		{ "json", required_argument, NULL, 'j' },
		{ "plot", required_argument, NULL, 'p' },
		{ "html", required_argument, NULL, 'H' },
		{ "help", no_argument, NULL, 'h' },
		{ "touch", required_argument, NULL, WORK },
		{ "touch-op", required_argument, NULL, WORK + 1 },
		{ "scan", required_argument, NULL, WORK + 2 },
		{ "access", required_argument, NULL, WORK + 3 },
		{ "side", required_argument, NULL, WORK + 4 },
		{ "buffers", required_argument, NULL, WORK + 5 },
		{ 0 },
	};
	struct variants variants = { .count = 0 };
	int c, rc = 0;

	options->setup = (struct perf_setup) {
		.warm_ms = WARM_MS, .measured_ms = 1000, .threads = 1, .rounds = 5, .max_rounds = 30
	};
	perf_transports_parse(&options->transports, "tcp,shunt");
	while (!rc && (c = getopt_long(argc, argv, "", names, NULL)) != -1)
		rc = parse_option(options, &variants, c);
	for (size_t i = 0; i < variants.count && !rc; i++)
		if (perf_transports_variant(&options->transports, variants.list[i]))
			rc = EXIT_USAGE;
	perf_work_settle(&options->setup.work);
	if (!rc && options->setup.spread > 0) {
		if (options->setup.rounds < 2)
			options->setup.rounds = 2;
		if (options->setup.rounds > options->setup.max_rounds)
			rc = usage_error("more rounds than --max-rounds allows:", "--rounds");
	}
	if (rc)
		return rc;
	if (!options->serve)
		return parse_models(options, argv + optind);
	if (options->to || argc - optind > 1)
		return usage_error("--serve has no other options than --cpu, and one address, not",
				   options->to ? "--to" : argv[optind + 1]);
	options->to = argc > optind ? argv[optind] : "";
	return 0;
}
