/* SPDX-License-Identifier: MIT */
/* shunt config: the table of core/base/config_table.h for people, programs and the manual. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/api.h"
#include "core/base/conf.h"
#include "core/base/rule.h"
#include "tools/common/output.h"
#include "tools/shunt.h"

static const char help[] =
	"Usage: shunt config [--json | --man]\n\n"
	"Shows every variable SHUNT_*, and behind them the words of SHUNT_TUNE, with the value that a\n"
	"program started now would see. A star marks what differs from the default, + what a running\n"
	"program can be told to change. A value of /etc/shunt.conf or ~/.config/shunt.conf is shown with\n"
	"its file and line.\n\n"
	"  --json   the same as JSON\n"
	"  --man    as a section of a manual page, without values\n\n"
	"Exit status: 0, or 2 if a variable or a line of a file is invalid.\n";

static const char *const type_names[] = {
	[SHUNT_CONFIG_BOOL] = "bool",
	[SHUNT_CONFIG_ENUM] = "enum",
	[SHUNT_CONFIG_UINT] = "uint",
	[SHUNT_CONFIG_PATH] = "path",
	[SHUNT_CONFIG_FORM] = "text",
	[SHUNT_CONFIG_WORDS] = "words",
};

/* A path is the environment's, and may hold anything. */
static void print_path(const char *path)
{
	shunt_print_escaped(stdout, path, strlen(path));
}

static void print_origin(const struct shunt_conf_origin *origin)
{
	if (origin->environment)
		puts("      from the environment");
	if (!origin->path)
		return;
	printf("      from ");
	print_path(origin->path);
	printf(":%u\n", origin->line);
}

static void print_files(const struct shunt_conf *files)
{
	for (unsigned int i = 0; i < files->count; i++) {
		const struct shunt_conf_text *file = &files->file[i];

		printf("# ");
		print_path(file->path);
		printf("%s%s\n", file->why ? " does not count: " : "", file->why ? file->why : "");
	}
}

/* As they are understood. False: there are none that count. */
static bool rules_text(const struct shunt_config *c, char text[SHUNT_RULE_TEXT])
{
	struct shunt_rule_list list;

	if (c->rules[0] || shunt_rule_parse(c->rule_lines, NULL, &list, NULL, 0))
		return false;
	shunt_rule_text(&list, text);
	return list.count;
}

static void print_rules(const struct shunt_config *c)
{
	char text[SHUNT_RULE_TEXT];

	if (rules_text(c, text))
		printf("# rules of these files:\n%s", text);
}

static json_t *rules_json(const struct shunt_config *c)
{
	char text[SHUNT_RULE_TEXT], *rest = NULL;
	json_t *all = json_array();

	for (char *line = rules_text(c, text) ? strtok_r(text, "\n", &rest) : NULL; line;
	     line = strtok_r(NULL, "\n", &rest))
		json_array_append_new(all, json_string(line));
	return all;
}

/* Whether the words of SHUNT_TUNE begin with this row. */
static bool is_first_word(const struct shunt_config_row *row)
{
	return shunt_config_is_word(row) &&
	       (row == shunt_config_rows || !shunt_config_is_word(row - 1));
}

/* Where a value comes from and its meaning have lines of their own: beside the rest there is no room for them. */
static void print_table(const struct shunt_config *c, const struct shunt_conf_origin *origins)
{

	char value[SHUNT_CONFIG_TEXT_MAX], def[64], range[128];

	printf("  %-20s %-10s %-10s %s\n", "VARIABLE", "VALUE", "DEFAULT", "ALLOWED");
	for (size_t i = 0; i < shunt_config_count; i++) {
		const struct shunt_config_row *row = &shunt_config_rows[i];

		shunt_config_value_text(row, c, value, sizeof(value));
		shunt_config_default_text(row, def, sizeof(def));
		if (is_first_word(row))
			printf("\n  Words of SHUNT_TUNE=WORD=VALUE,..., which may change in any version\n");
		printf("%c%c%-20s %-10s %-10s %s\n", shunt_config_changed(row, c) ? '*' : ' ',
		       row->live == SHUNT_CONFIG_LIVE ? '+' : ' ', row->name, *value ? value : "-",
		       *def ? def : "-",
		       row->type == SHUNT_CONFIG_PATH ?
			       "a path" :
			       shunt_config_range_text(row, range, sizeof(range)));
		print_origin(&origins[i]);
		shunt_print_wrapped(6, printf("      "), row->help);
	}
}

static json_t *value_json(const struct shunt_config_row *row, const struct shunt_config *c)
{
	char text[SHUNT_CONFIG_TEXT_MAX];
	const char *field = (const char *)c + row->offset;

	if (row->type == SHUNT_CONFIG_BOOL)
		return json_boolean(*(const uint64_t *)field);
	/* Numbers as numbers of the unit, except the few that JSON cannot hold exactly; `auto` is none. */
	if (row->type == SHUNT_CONFIG_UINT && row->max <= 1ULL << 53 &&
	    *(const uint64_t *)field != UINT64_MAX)
		return json_integer((json_int_t)*(const uint64_t *)field);
	return json_string(shunt_config_value_text(row, c, text, sizeof(text)));
}

static json_t *row_json(const struct shunt_config_row *row, const struct shunt_config *c,
			const struct shunt_config *defaults)
{
	char range[128];

	return json_pack("{s:s, s:b, s:s, s:o, s:o, s:s, s:s, s:b, s:b, s:s}", "name", row->name,
			 "word", shunt_config_is_word(row), "type",
			 type_names[row->type], "value", value_json(row, c), "default",
			 value_json(row, defaults), "unit", row->unit, "allowed",
			 shunt_config_range_text(row, range, sizeof(range)), "live",
			 row->live == SHUNT_CONFIG_LIVE, "changed", shunt_config_changed(row, c),
			 "help", row->help);
}

static json_t *path_json(const char *path)
{
	char text[4 * SHUNT_CONFIG_PATH_MAX];

	return json_string(shunt_escape(path, text, sizeof(text)));
}

static void add_origin(json_t *row, const struct shunt_conf_origin *origin)
{
	json_object_set_new(row, "from",
			    json_string(origin->path	    ? "file" :
					origin->environment ? "environment" :
							      "default"));
	if (!origin->path)
		return;
	json_object_set_new(row, "file", path_json(origin->path));
	json_object_set_new(row, "line", json_integer(origin->line));
}

static json_t *files_json(const struct shunt_conf *files)
{
	json_t *all = json_array();

	for (unsigned int i = 0; i < files->count; i++)
		json_array_append_new(
			all, json_pack("{s:o, s:b, s:s*}", "path", path_json(files->file[i].path),
				       "counts", !files->file[i].why, "why", files->file[i].why));
	return all;
}

static void print_json(const struct shunt_config *c, const struct shunt_conf_origin *origins,
		       const struct shunt_conf *files)
{
	json_t *rows = json_array(), *root;
	struct shunt_config defaults;

	shunt_config_defaults(&defaults);
	for (size_t i = 0; i < shunt_config_count; i++) {
		json_t *row = row_json(&shunt_config_rows[i], c, &defaults);

		add_origin(row, &origins[i]);
		json_array_append_new(rows, row);
	}
	root = json_pack("{s:i, s:s, s:o, s:o, s:o}", "schema", SHUNT_JSON_SCHEMA, "version",
			 PACKAGE_VERSION, "files", files_json(files), "rules", rules_json(c),
			 "variables", rows);
	shunt_print_json(stdout, root, JSON_INDENT(2));
	json_decref(root);
}

static void print_man(void)
{
	char def[64], range[128];

	for (size_t i = 0; i < shunt_config_count; i++) {
		const struct shunt_config_row *row = &shunt_config_rows[i];

		shunt_config_default_text(row, def, sizeof(def));
		shunt_config_range_text(row, range, sizeof(range));
		if (is_first_word(row))
			printf(".SS Words of SHUNT_TUNE\nThey may change in any version.\n");
		printf(".TP\n.B %s\n%c%s.\n", row->name, row->help[0] & ~0x20, row->help + 1);
		printf("Allowed: %s; default: %s.\n", range, *def ? def : "none");
	}
}

int shunt_config(int argc, char **argv)
{
	const char *option = argc > 1 ? argv[1] : "";
	struct shunt_conf_origin *origins;
	const struct shunt_conf *files;
	struct shunt_conf_wrong wrong;
	struct shunt_config c;

	if (argc > 2 || (*option && strcmp(option, "--json") && strcmp(option, "--man") &&
			 strcmp(option, "--help"))) {
		fputs(help, stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(option, "--help")) {
		fputs(help, stdout);
		return 0;
	}
	if (!strcmp(option, "--man")) {
		print_man();
		return 0;
	}
	origins = calloc(shunt_config_count, sizeof(*origins));
	if (!origins)
		abort();
	wrong = shunt_variables_load("shunt config", &c, origins, &files);
	if (!strcmp(option, "--json")) {
		print_json(&c, origins, files);
	} else {
		print_files(files);
		print_rules(&c);
		print_table(&c, origins);
	}
	free(origins);
	return wrong.lines || wrong.values ? EXIT_USAGE : 0;
}
