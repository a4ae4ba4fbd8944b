/* SPDX-License-Identifier: MIT */
/* shunt top */
#include "tools/top/top.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/shunt.h"

static const char help[] =
	"Usage: shunt top [OPTIONS] [PROCESS...]\n\n"
	"Shows processes, or streams, by their rates: bytes a second each way, the part of them that the\n"
	"link carried, times a second that a limit was met and which one, what waits to be sent and to be\n"
	"read, and why a stream is on TCP. A process is a process id or an identity, as `shunt stat` has\n"
	"them. Without one: all that may be asked. Where there is no terminal: plain text.\n\n"
	"  -b, --batch       plain text, again and again\n"
	"  -n, --looks N     so many looks, then the end (with plain text and JSON)\n"
	"  -d, --delay S     seconds between looks, 0.1 to 86400; 1 if not given\n"
	"  -s, --streams     begin with streams\n"
	"  -o, --sort COLUMN one of: ";

static const char help_end[] =
	"  -f, --filter TEXT only rows that have it in a column\n"
	"      --json        an object in a line for each look: \"processes\" and \"streams\", rates as\n"
	"                    integers of bytes a second, \"link\" in thousandths\n\n"
	"Keys:\n";

static void print_help(void)
{
	fputs(help, stdout);
	for (enum shunt_top_column column = 0; column < SHUNT_TOP_COLUMNS; column++)
		printf("%s%s",
		       !column			  ? "" :
		       column == SHUNT_TOP_STALLS ? ",\n                    " :
						    ", ",
		       shunt_top_name(column));
	putchar('\n');
	fputs(help_end, stdout);
	for (int i = 0; shunt_top_help[i]; i++)
		printf("  %s\n", shunt_top_help[i]);
	puts("\nExit status: 0, 1 if a named process has no statistics to give, 2 for a wrong option.");
}

static int usage_error(const char *what, const char *text)
{
	fprintf(stderr, "shunt top: %s '%s'; `shunt top --help` says how\n", what, text);
	return EXIT_USAGE;
}

static int parse_looks(struct shunt_top_options *options, const char *text)
{
	char *end;

	options->looks = strtoul(text, &end, 10);
	return *text < '0' || *text > '9' || *end || !options->looks ?
		       usage_error("not a number of looks:", text) :
		       0;
}

static int parse_wanted(struct shunt_top_options *options, int count, char **words)
{
	options->wanted = calloc((size_t)count + 1, sizeof(*options->wanted));
	if (!options->wanted)
		abort();
	for (; count--; words++)
		if (!shunt_door_parse(*words, &options->wanted[options->count++]))
			return usage_error("neither a process id nor an identity:", *words);
	return 0;
}

/* After all options: --streams may come behind --sort. */
static int set_sort(struct shunt_top_model *model, const char *name)
{
	enum shunt_top_column column = shunt_top_find(model->view, name);

	if (column == SHUNT_TOP_COLUMNS)
		return usage_error("no column", name);
	model->sort[model->view] = column;
	return 0;
}

static int set_filter(struct shunt_top_model *model, const char *text)
{
	if (strlen(text) >= sizeof(model->filter))
		return usage_error("too long a filter:", text);
	snprintf(model->filter, sizeof(model->filter), "%s", text);
	return 0;
}

static int parse(struct shunt_top_options *options, struct shunt_top_model *model, int argc,
		 char **argv)
{
	static const struct option names[] = {
		{ "batch", no_argument, NULL, 'b' },
		{ "looks", required_argument, NULL, 'n' },
		{ "delay", required_argument, NULL, 'd' },
		{ "streams", no_argument, NULL, 's' },
		{ "sort", required_argument, NULL, 'o' },
		{ "filter", required_argument, NULL, 'f' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	const char *sort = NULL;
	int c, rc = 0;

	while (!rc && (c = getopt_long(argc, argv, "bn:d:so:f:h", names, NULL)) != -1) {
		switch (c) {
		case 'b':
			options->batch = true;
			break;
		case 'j':
			options->json = true;
			break;
		case 'n':
			rc = parse_looks(options, optarg);
			break;
		case 'd':
			if (!shunt_top_interval(optarg, &options->interval))
				rc = usage_error("not a number of seconds from 0.1 to 86400:",
						 optarg);
			break;
		case 's':
			model->view = SHUNT_TOP_STREAMS;
			break;
		case 'o':
			sort = optarg;
			break;
		case 'f':
			rc = set_filter(model, optarg);
			break;
		case 'h':
			print_help();
			exit(0);
		default:
			return EXIT_USAGE;
		}
	}
	if (!rc && sort)
		rc = set_sort(model, sort);
	return rc ? rc : parse_wanted(options, argc - optind, argv + optind);
}

static int show(const struct shunt_top_options *options, struct shunt_top_model *model)
{
	const char *why;

	if (options->batch || options->json || options->looks)
		return shunt_top_plain(options, model);
	if (shunt_top_has_screen(&why))
		return shunt_top_screen(options, model);
	if (why && isatty(STDOUT_FILENO))
		fprintf(stderr, "shunt top: plain text, because %s\n", why);
	return shunt_top_plain(options, model);
}

/* Static: the thread that looks has them until the process ends. */
int shunt_view_top(int argc, char **argv)
{
	static struct shunt_top_options options = { .interval = 1 };
	struct shunt_top_model model;
	int rc;

	shunt_top_init(&model);
	rc = parse(&options, &model, argc, argv);
	model.named = options.count > 0;
	if (!rc)
		rc = show(&options, &model);
	shunt_top_fini(&model);
	return rc;
}
