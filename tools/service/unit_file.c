/* SPDX-License-Identifier: MIT */
#include "tools/service/unit_file.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SUFFIX ".service"

/* The first that has a name counts. */
static const char *const folders[] = { "/etc/systemd/system", "/run/systemd/system",
				       "/usr/local/lib/systemd/system", "/usr/lib/systemd/system",
				       "/lib/systemd/system" };

enum { FOLDERS = sizeof(folders) / sizeof(folders[0]), LINE_MAX_BYTES = 1 << 16 };

/* --- one file --- */

static char *trimmed(char *text)
{
	size_t length;

	text += strspn(text, " \t");
	length = strlen(text);
	while (length && strchr(" \t\r\n", text[length - 1]))
		length--;
	text[length] = '\0';
	return text;
}

static int add(struct shunt_unit *unit, const char *key, const char *value)
{
	struct shunt_unit_setting *more =
		realloc(unit->settings, (unit->count + 1) * sizeof(*more));

	if (!more)
		return -ENOMEM;
	unit->settings = more;
	more[unit->count].key = strdup(key);
	more[unit->count].value = strdup(value);
	unit->count++;
	return more[unit->count - 1].key && more[unit->count - 1].value ? 0 : -ENOMEM;
}

/* A line and those that continue it. False: the file has ended. */
static bool next_line(FILE *file, char *line, size_t room)
{
	size_t length = 0;

	while (fgets(line + length, (int)(room - length), file)) {
		length += strcspn(line + length, "\n");
		line[length] = '\0';
		if (!length || line[length - 1] != '\\' || length + 2 >= room)
			return true;
		line[length - 1] = ' ';
	}
	return length;
}

static int read_settings(struct shunt_unit *unit, const char *path)
{
	FILE *file = fopen(path, "re");
	char *line, *at, *equals;
	bool service = false;
	int rc = 0;

	if (!file)
		return -errno;
	line = malloc(LINE_MAX_BYTES);
	while (line && !rc && next_line(file, line, LINE_MAX_BYTES)) {
		at = trimmed(line);
		if (*at == '[')
			service = !strcmp(at, "[Service]");
		equals = strchr(at, '=');
		if (!service || !*at || strchr("#;[", *at) || !equals)
			continue;
		*equals = '\0';
		rc = add(unit, trimmed(at), trimmed(equals + 1));
	}
	rc = line ? rc : -ENOMEM;
	free(line);
	fclose(file);
	return rc;
}

/* --- which files --- */

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* "name@.service" of "name@instance.service". False: it is no instance. */
static bool template_of(const char *name, char *text, size_t room)
{
	const char *at = strchr(name, '@');

	if (!at || !strcmp(at + 1, SUFFIX))
		return false;
	return (size_t)snprintf(text, room, "%.*s%s", (int)(at - name + 1), name, SUFFIX) < room;
}

static int find(const char *root, const char *name, char path[PATH_MAX])
{
	struct stat st;

	for (int i = 0; i < FOLDERS; i++)
		if (snprintf(path, PATH_MAX, "%s%s/%s", root, folders[i], name) < PATH_MAX &&
		    !stat(path, &st))
			return S_ISREG(st.st_mode) ? 0 : -ENOTSUP; /* masked: a link to /dev/null */
	return -ENOENT;
}

static int by_base(const void *a, const void *b)
{
	return strcmp(base_of(*(char *const *)a), base_of(*(char *const *)b));
}

/* A drop-in of one name counts once, from the first folder. */
static bool is_hidden(const glob_t *found, size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (!strcmp(base_of(found->gl_pathv[i]), base_of(found->gl_pathv[j])))
			return true;
	return false;
}

static int read_drop_ins(const char *root, const char *name, struct shunt_unit *unit)
{
	char pattern[PATH_MAX], **used;
	size_t count = 0;
	glob_t found = { 0 };
	int rc = 0;

	for (int i = 0; i < FOLDERS; i++)
		if (snprintf(pattern, sizeof(pattern), "%s%s/%s.d/*.conf", root, folders[i], name) <
		    (int)sizeof(pattern))
			glob(pattern, i ? GLOB_APPEND : 0, NULL, &found);
	used = calloc(found.gl_pathc + 1, sizeof(*used));
	for (size_t i = 0; used && i < found.gl_pathc; i++)
		if (!is_hidden(&found, i) && strcmp(base_of(found.gl_pathv[i]), SHUNT_DROP_IN))
			used[count++] = found.gl_pathv[i];
	if (used)
		qsort(used, count, sizeof(*used), by_base);
	for (size_t i = 0; used && i < count && !rc; i++)
		rc = read_settings(unit, used[i]);
	rc = used ? rc : -ENOMEM;
	free(used);
	globfree(&found);
	return rc;
}

/* An alias stands for the last name of a chain of links. */
static void real_name(struct shunt_unit *unit)
{
	char path[PATH_MAX];
	const char *base;

	if (strchr(unit->name, '@') || !realpath(unit->path, path))
		return;
	base = base_of(path);
	if (strlen(base) > sizeof(SUFFIX) && strlen(base) < sizeof(unit->name) &&
	    !strcmp(base + strlen(base) - strlen(SUFFIX), SUFFIX))
		memcpy(unit->name, base, strlen(base) + 1);
}

int shunt_unit_read(const char *root, const char *name, struct shunt_unit *unit)
{
	const char *dot = strrchr(name, '.');
	bool has_suffix = dot && !strcmp(dot, SUFFIX);
	char base[NAME_MAX + 1];
	bool instance;
	int rc;

	memset(unit, 0, sizeof(*unit));
	if (!*name || *name == '.' || strchr(name, '/') ||
	    (dot && !has_suffix &&
	     (!strcmp(dot, ".socket") || !strcmp(dot, ".timer") || !strcmp(dot, ".target"))) ||
	    snprintf(unit->name, sizeof(unit->name), "%s%s", name, has_suffix ? "" : SUFFIX) >=
		    (int)sizeof(unit->name))
		return -EINVAL;
	instance = template_of(unit->name, base, sizeof(base));
	rc = find(root, unit->name, unit->path);
	if (rc == -ENOENT && instance)
		rc = find(root, base, unit->path);
	if (rc)
		return rc;
	real_name(unit);
	rc = read_settings(unit, unit->path);
	if (!rc && instance)
		rc = read_drop_ins(root, base, unit);
	return rc ? rc : read_drop_ins(root, unit->name, unit);
}

void shunt_unit_free(struct shunt_unit *unit)
{
	for (size_t i = 0; i < unit->count; i++) {
		free(unit->settings[i].key);
		free(unit->settings[i].value);
	}
	free(unit->settings);
	unit->settings = NULL;
	unit->count = 0;
}

/* --- what they say --- */

const char *shunt_unit_value(const struct shunt_unit *unit, const char *key)
{
	for (size_t i = unit->count; i; i--)
		if (!strcmp(unit->settings[i - 1].key, key))
			return unit->settings[i - 1].value;
	return NULL;
}

bool shunt_unit_is_true(const struct shunt_unit *unit, const char *key)
{
	static const char *const words[] = { "1", "yes", "y", "true", "t", "on" };
	const char *value = shunt_unit_value(unit, key);

	for (size_t i = 0; value && i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcasecmp(value, words[i]))
			return true;
	return false;
}

/* The next word of a value, as systemd.syntax(7) has it, in place. NULL: there is no other. */
static char *next_word(char **rest)
{
	char *from = *rest + strspn(*rest, " \t"), *word = from, *to = from, quote = 0;

	if (!*from)
		return NULL;
	for (; *from && (quote || !strchr(" \t", *from)); from++) {
		if (*from == quote)
			quote = 0;
		else if (!quote && (*from == '"' || *from == '\''))
			quote = *from;
		else
			*to++ = *from;
	}
	*rest = from + (*from != '\0');
	*to = '\0';
	return word;
}

bool shunt_unit_words(const struct shunt_unit *unit, const char *key,
		      bool (*take)(const char *word, void *arg), void *arg)
{
	size_t first = 0;
	bool goes_on = true;

	for (size_t i = 0; i < unit->count; i++)
		if (!strcmp(unit->settings[i].key, key) && !*unit->settings[i].value)
			first = i + 1;
	for (size_t i = first; i < unit->count && goes_on; i++) {
		char *copy, *rest, *word;

		if (strcmp(unit->settings[i].key, key))
			continue;
		copy = rest = strdup(unit->settings[i].value);
		while (copy && goes_on && (word = next_word(&rest)))
			goes_on = take(word, arg);
		free(copy);
	}
	return goes_on;
}
