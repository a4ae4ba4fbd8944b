/* SPDX-License-Identifier: MIT */
#include "core/base/json.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define FIRST_ROOM 8192

void shunt_json_begin(struct shunt_json *json)
{
	*json = (struct shunt_json){ .start = malloc(FIRST_ROOM), .room = FIRST_ROOM };
	json->failed = !json->start;
	if (json->start)
		json->start[0] = '\0';
}

char *shunt_json_end(struct shunt_json *json, size_t *bytes)
{
	char *text = json->start;

	*bytes = json->length;
	if (json->failed) {
		free(text);
		text = NULL;
	}
	*json = (struct shunt_json){ .failed = true };
	return text;
}

void shunt_json_put(struct shunt_json *json, const char *format, ...)
{
	va_list args;
	int wanted;

	while (!json->failed) {
		size_t room = json->room - json->length;
		char *more;

		va_start(args, format);
		wanted = vsnprintf(json->start + json->length, room, format, args);
		va_end(args);
		if (wanted < 0)
			return;
		if ((size_t)wanted < room) {
			json->length += (size_t)wanted;
			return;
		}
		more = realloc(json->start, json->room * 2 + (size_t)wanted);
		json->failed = !more;
		if (more) {
			json->start = more;
			json->room = json->room * 2 + (size_t)wanted;
		}
	}
}

void shunt_json_number(struct shunt_json *json, const char *name, uint64_t value)
{
	shunt_json_put(json, "%s\"%s\":%llu", json->comma ? "," : "", name,
		       (unsigned long long)value);
	json->comma = true;
}

void shunt_json_string(struct shunt_json *json, const char *text)
{
	shunt_json_put(json, "\"");
	for (const char *c = text; *c; c++)
		shunt_json_put(json,
			       *c == '"' || *c == '\\' ? "\\%c" :
			       *c < ' ' || *c > '~'    ? "?" :
							 "%c",
			       *c);
	shunt_json_put(json, "\"");
}
