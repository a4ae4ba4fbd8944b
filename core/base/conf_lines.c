/* SPDX-License-Identifier: MIT */
#include "core/base/conf_lines.h"
#include <stdbool.h>
#include <string.h>

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* A value may hold these characters: the environment could hold more, but a line is also shown. */
static bool is_plain(const char *at, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if ((unsigned char)at[i] < ' ' ? at[i] != '\t' : at[i] == 0x7f)
			return false;
	return true;
}

static void trim(const char **at, size_t *bytes)
{
	while (*bytes && is_blank(**at))
		(*at)++, (*bytes)--;
	while (*bytes && is_blank((*at)[*bytes - 1]))
		(*bytes)--;
}

static bool is_name(const char *name)
{
	return !strncmp(name, "SHUNT_", 6) && name[6] &&
	       !name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")];
}

static char *without_blanks(char *text)
{
	size_t bytes;

	text += strspn(text, " \t");
	for (bytes = strlen(text); bytes && is_blank(text[bytes - 1]); bytes--)
		;
	text[bytes] = '\0';
	return text;
}

/* NULL; or what is wrong. */
static const char *split(char *text, struct shunt_conf_line *line)
{
	char *equals = strchr(text, '=');

	if (!strncmp(text, "rule", 4) && is_blank(text[4])) {
		line->value = without_blanks(text + 5);
		return NULL;
	}
	if (!equals)
		return "it is neither SHUNT_NAME = VALUE nor a rule";
	*equals = '\0';
	line->name = without_blanks(text);
	line->value = without_blanks(equals + 1);
	if (!is_name(line->name))
		return "before the equals sign is no name SHUNT_NAME";
	return *line->value ? NULL : "there is no value behind the equals sign";
}

static void take_line(const char *at, size_t bytes, unsigned int number,
		      const struct shunt_conf_reader *reader)
{
	struct shunt_conf_line line = { .number = number };
	char text[SHUNT_CONF_LINE_MAX];
	const char *why;

	if (bytes && at[bytes - 1] == '\r')
		bytes--;
	trim(&at, &bytes);
	if (!bytes || *at == '#')
		return;
	if (bytes >= sizeof(text)) {
		why = "it is too long";
	} else if (!is_plain(at, bytes)) {
		why = "it has a character that cannot be printed";
	} else {
		memcpy(text, at, bytes);
		text[bytes] = '\0';
		why = split(text, &line);
	}
	if (!why)
		reader->take(&line, reader->arg);
	else if (reader->wrong)
		reader->wrong(number, why, reader->arg);
}

void shunt_conf_lines(const char *text, size_t bytes, const struct shunt_conf_reader *reader)
{
	const char *end = text + bytes;

	for (unsigned int number = 1; text < end; number++) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		size_t length = (size_t)((newline ? newline : end) - text);

		take_line(text, length, number, reader);
		text += length + (newline != NULL);
	}
}
