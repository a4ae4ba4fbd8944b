/* SPDX-License-Identifier: MIT */
/*
 * A JSON text that grows as it is written. Where memory runs out the text is marked as failed, and
 * what is put behind that is dropped: the writer asks once, at the end.
 */
#ifndef SHUNT_CORE_BASE_JSON_H
#define SHUNT_CORE_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shunt_json {
	char *start;	/* malloc'ed, with a 0 behind it; NULL: begun without memory */
	size_t length, room;
	bool failed;	/* memory has run out */
	bool comma;	/* shunt_json_number() puts one first */
};

void shunt_json_begin(struct shunt_json *json);
/* The whole text, which the caller frees, and its length; NULL: memory has run out. */
char *shunt_json_end(struct shunt_json *json, size_t *bytes);

void shunt_json_put(struct shunt_json *json, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* "name":value */
void shunt_json_number(struct shunt_json *json, const char *name, uint64_t value);
/* A text that may hold anything, in quotes: control characters and bytes beyond ASCII become '?'. */
void shunt_json_string(struct shunt_json *json, const char *text);

#endif
