/* SPDX-License-Identifier: MIT */
/* shunt report: the command. */
#include "tools/report/report.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/api.h"
#include "tools/common/output.h"
#include "tools/shunt.h"

#define FOLDER "shunt-report/"

static const char help[] =
	"Usage: shunt report [--json] [--anonymous] [-o FILE]\n\n"
	"Makes one tar file for a bug report and lists what is in it: versions, what `shunt doctor`,\n"
	"`shunt doctor devices` (with --probe) and `shunt stat` say, the logs and traces that shunted processes keep, their limits,\n"
	"namespaces and SHUNT_ variables. It has the processes that you may ask. Nothing of what connections\n"
	"carry is in it, and no secret. Only its owner may read the file.\n\n"
	"  -o FILE      its name; shunt-report-TIME.tar if not given. It must not exist yet\n"
	"  --anonymous  host1, host2 and so on for IP addresses, mac1 and so on for those of hardware\n"
	"  --json       the list as JSON\n\n"
	"Exit status: 0, 1 if there is no report, 2 for wrong usage.\n";

void shunt_report_put(struct shunt_report *report, const char *text, size_t length,
		      const char *format, ...)
{
	char name[100] = FOLDER, *hidden = NULL;
	va_list args;

	va_start(args, format);
	vsnprintf(name + strlen(FOLDER), sizeof(name) - strlen(FOLDER), format, args);
	va_end(args);
	if (report->names)
		text = hidden = shunt_anonymous_text(report->names, text, length, &length);
	shunt_archive_add(&report->archive, name, text, length);
	json_array_append_new(report->entries,
			      json_pack("{s:s, s:I}", "name", name, "bytes", (json_int_t)length));
	free(hidden);
}

static void show(const char *path, const json_t *entries, bool json)
{
	const json_t *entry;
	size_t i;

	if (json) {
		json_t *top = json_pack("{s:i, s:s, s:s, s:O}", "schema", SHUNT_JSON_SCHEMA,
					"version", PACKAGE_VERSION, "file", path, "entries",
					entries);

		shunt_print_json(stdout, top, JSON_INDENT(2));
		json_decref(top);
		return;
	}
	json_array_foreach(entries, i, entry)
	{
		printf("%10lld  %s\n",
		       (long long)json_integer_value(json_object_get(entry, "bytes")),
		       json_string_value(json_object_get(entry, "name")));
	}
	printf("%s: look through it before you send it\n", path);
}

static int make(const char *path, bool anonymous, bool json)
{
	struct shunt_anonymous names = { 0 };
	struct shunt_report report = { .names = anonymous ? &names : NULL };
	int rc = shunt_archive_begin(&report.archive, path), failed;

	if (rc) {
		fprintf(stderr, "shunt report: %s: %s\n", path, strerror(-rc));
		return EXIT_FAILED;
	}
	report.entries = json_array();
	failed = shunt_report_gather(&report);
	rc = shunt_archive_end(&report.archive);
	if (rc)
		fprintf(stderr, "shunt report: %s: %s\n", path, strerror(-rc));
	else if (failed)
		unlink(path);
	else
		show(path, report.entries, json);
	json_decref(report.entries);
	shunt_anonymous_free(&names);
	return rc || failed ? EXIT_FAILED : 0;
}

int shunt_report(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "anonymous", no_argument, NULL, 'a' },
		{ "output", required_argument, NULL, 'o' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	bool json = false, anonymous = false;
	const char *path = NULL;
	time_t now = time(NULL);
	struct tm parts;
	char name[64];
	int c;

	while ((c = getopt_long(argc, argv, "o:", options, NULL)) != -1) {
		if (c == 'h') {
			fputs(help, stdout);
			return 0;
		}
		if (c == '?')
			return EXIT_USAGE;
		if (c == 'o')
			path = optarg;
		json |= c == 'j';
		anonymous |= c == 'a';
	}
	if (optind < argc) {
		fprintf(stderr, "shunt report: no argument '%s'; `shunt report --help` says how\n",
			argv[optind]);
		return EXIT_USAGE;
	}
	strftime(name, sizeof(name), "shunt-report-%Y%m%d-%H%M%S.tar", gmtime_r(&now, &parts));
	return make(path ? path : name, anonymous, json);
}
