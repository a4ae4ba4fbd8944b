/* SPDX-License-Identifier: MIT */
#include "core/base/conf.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/base/rule.h"

#define VARIABLE "SHUNT_CONF"

static void conf_say(const struct shunt_conf_asker *asker, const char *path, unsigned int number,
		     const char *what)
{
	char line[SHUNT_CONFIG_LINE_MAX], at[16] = "";

	if (!asker->complain)
		return;
	if (number)
		snprintf(at, sizeof(at), ":%u", number);
	snprintf(line, sizeof(line), "%.600s%s: %.800s", path, at, what);
	asker->complain(line, asker->carg);
}

/* --- the files --- */

/* A daemon that has changed its user keeps HOME. Its new user may not look there, or does not own the file. */
static bool is_strangers(const char *path)
{
	struct stat st;

	return stat(path, &st) || st.st_uid != geteuid();
}

static void read_file(struct shunt_conf *conf, const char *directory, const char *name,
		      enum shunt_conf_owner owner)
{
	struct shunt_conf_text *file = &conf->file[conf->count];
	int length = snprintf(file->path, sizeof(file->path), "%s%s", directory, name), bytes;

	if (length < 0 || (size_t)length >= sizeof(file->path))
		return;
	file->why = NULL;
	bytes = shunt_conf_file_read(file->path, owner, file->text, &file->why);
	if (bytes == -EACCES && owner == SHUNT_CONF_USER && is_strangers(file->path))
		return;
	file->bytes = bytes < 0 ? 0 : (size_t)bytes;
	conf->count += bytes != -ENOENT;
}

/* A relative name would be another file in each folder. */
static const char *absolute(const struct shunt_conf_asker *asker, const char *name)
{
	const char *value = asker->get(name, asker->arg);

	return value && *value == '/' ? value : NULL;
}

static void read_user(struct shunt_conf *conf, const struct shunt_conf_asker *asker)
{
	const char *directory = absolute(asker, "XDG_CONFIG_HOME");

	if (directory) {
		read_file(conf, directory, "/shunt.conf", SHUNT_CONF_USER);
		return;
	}
	directory = absolute(asker, "HOME");
	if (directory)
		read_file(conf, directory, "/.config/shunt.conf", SHUNT_CONF_USER);
}

void shunt_conf_read(struct shunt_conf *conf, const struct shunt_conf_asker *asker)
{
	const char *chosen = asker->get(VARIABLE, asker->arg);

	conf->count = 0;
	conf->missing = false;
	if (chosen && *chosen) {
		if (!strcmp(chosen, "none"))
			return;
		if (*chosen == '/')
			read_file(conf, "", chosen, SHUNT_CONF_EITHER);
		conf->missing = *chosen == '/' && !conf->count;
		return;
	}
	read_file(conf, "", SHUNT_CONF_SYSTEM, SHUNT_CONF_ROOT);
	read_user(conf, asker);
}

/* --- the layers --- */

struct layer {
	const struct shunt_conf_text *file;
	struct shunt_config *config;
	const struct shunt_conf_asker *asker;
	struct shunt_conf_origin *origins;
	struct shunt_conf_wrong wrong;
	unsigned int line; /* of the file that is read */
	uint32_t rules; /* of all files so far */
	size_t rules_end; /* of this file's in config->rule_lines: those of lower ones follow */
};

static void complain_line(unsigned int number, const char *why, void *arg)
{
	struct layer *layer = arg;

	layer->wrong.lines++;
	conf_say(layer->asker, layer->file->path, number, why);
}

static void take_of_file(size_t row, void *arg)
{
	struct layer *layer = arg;

	if (layer->origins)
		layer->origins[row] = (struct shunt_conf_origin) { .path = layer->file->path,
								   .line = layer->line };
}

static void complain_of_file(const char *why, void *arg)
{
	struct layer *layer = arg;

	complain_line(layer->line, why, layer);
}

static void take_of_environment(size_t row, void *arg)
{
	struct layer *layer = arg;

	if (layer->origins)
		layer->origins[row] = (struct shunt_conf_origin) { .environment = true };
}

/* NULL; or why the rule cannot stand there. Its text is kept: the engine parses it again. */
static const char *take_rule(struct layer *layer, const char *text,
			     char why[SHUNT_RULE_ERROR])
{
	char *lines = layer->config->rule_lines, *at = lines + layer->rules_end;
	size_t bytes = strlen(text), all = strlen(lines);
	struct shunt_rule_list list;

	if (shunt_rule_parse(text, NULL, &list, why, SHUNT_RULE_ERROR))
		return why;
	if (layer->rules + list.count > SHUNT_RULE_MOST)
		return "there are too many rules";
	if (all + bytes + 2 > SHUNT_CONFIG_RULES_MAX)
		return "the rules are too long";
	memmove(at + bytes + 1, at, all - layer->rules_end + 1);
	memcpy(at, text, bytes);
	at[bytes] = '\n';
	layer->rules += list.count;
	layer->rules_end += bytes + 1;
	return NULL;
}

static void hear_rule(struct layer *layer, const struct shunt_conf_line *line)
{
	char why[SHUNT_RULE_ERROR];
	const char *wrong = take_rule(layer, line->value, why);

	if (wrong)
		complain_line(line->number, wrong, layer);
}

static void take_line(const struct shunt_conf_line *line, void *arg)
{
	struct layer *layer = arg;
	const struct shunt_config_listener listener = { .took = take_of_file,
							.complain = complain_of_file,
							.arg = layer };

	layer->line = line->number;
	if (!line->name)
		hear_rule(layer, line);
	else if (!strcmp(line->name, VARIABLE))
		complain_line(line->number, VARIABLE " counts in the environment alone", layer);
	else
		shunt_config_set(layer->config, line->name, line->value, &listener);
}

static void take_file(struct layer *layer, const struct shunt_conf_text *file)
{
	const struct shunt_conf_reader reader = { .take = take_line,
						  .wrong = complain_line,
						  .arg = layer };

	layer->file = file;
	layer->rules_end = 0;
	if (file->why)
		complain_line(0, file->why, layer);
	else
		shunt_conf_lines(file->text, file->bytes, &reader);
}

static void complain_of_environment(const char *line, void *arg)
{
	struct layer *layer = arg;

	layer->wrong.values++;
	if (layer->asker->complain)
		layer->asker->complain(line, layer->asker->carg);
}

static void take_environment(struct layer *layer, bool missing)
{
	const struct shunt_config_listener listener = { .took = take_of_environment,
							.complain = complain_of_environment,
							.arg = layer };

	shunt_config_take(layer->config, layer->asker->get, layer->asker->arg, &listener);
	if (missing)
		complain_of_environment(VARIABLE ": there is no such file", layer);
}

struct search {
	const char *name;
	bool found;
};

static void find_line(const struct shunt_conf_line *line, void *arg)
{
	struct search *search = arg;

	if (line->name && !strcmp(line->name, search->name))
		search->found = true;
}

static void pass_by(unsigned int number, const char *why, void *arg)
{
	(void)number;
	(void)why;
	(void)arg;
}

bool shunt_conf_has(const struct shunt_conf *conf, const char *name)
{
	struct search search = { .name = name };
	const struct shunt_conf_reader reader = { .take = find_line,
						  .wrong = pass_by,
						  .arg = &search };

	for (unsigned int i = 0; i < conf->count; i++)
		if (!conf->file[i].why)
			shunt_conf_lines(conf->file[i].text, conf->file[i].bytes, &reader);
	return search.found;
}

struct shunt_conf_wrong shunt_conf_load(const struct shunt_conf *conf, struct shunt_config *config,
					const struct shunt_conf_asker *asker,
					struct shunt_conf_origin *origins)
{
	struct layer layer = { .config = config, .asker = asker, .origins = origins };

	shunt_config_defaults(config);
	if (origins)
		memset(origins, 0, shunt_config_count * sizeof(*origins));
	for (unsigned int i = 0; i < conf->count; i++)
		take_file(&layer, &conf->file[i]);
	take_environment(&layer, conf->missing);
	layer.wrong.values += shunt_config_check(config, asker->complain, asker->carg);
	return layer.wrong;
}
