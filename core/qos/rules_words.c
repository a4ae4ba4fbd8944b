/* SPDX-License-Identifier: MIT */
#include "core/qos/rules_words.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

size_t shunt_word_length(struct shunt_word word)
{
	return (size_t)(word.end - word.at);
}

bool shunt_word_is(struct shunt_word word, const char *text)
{
	return strlen(text) == shunt_word_length(word) &&
	       !memcmp(word.at, text, shunt_word_length(word));
}

void shunt_word_show(struct shunt_word word, char text[32])
{
	size_t bytes = 0;

	for (; word.at < word.end && bytes < 31; word.at++)
		text[bytes++] = *word.at >= ' ' && *word.at <= '~' ? *word.at : '?';
	text[bytes] = 0;
}

struct shunt_word shunt_word_digits(struct shunt_word word)
{
	while (word.end > word.at && (word.end[-1] < '0' || word.end[-1] > '9'))
		word.end--;
	return word;
}

int shunt_rules_wrong(const struct shunt_rules_parser *parser, const char *at, const char *format,
		      ...)
{
	unsigned int line = 1, column = 1;
	va_list arguments;
	int length;

	if (!parser->error || !parser->bytes)
		return -EINVAL;
	for (const char *c = parser->text; c < at; c++) {
		column = *c == '\n' ? 1 : column + 1;
		line += *c == '\n';
	}
	length = snprintf(parser->error, parser->bytes, "%s:%u:%u: ", parser->source, line, column);
	va_start(arguments, format);
	if (length >= 0 && (size_t)length < parser->bytes)
		vsnprintf(parser->error + length, parser->bytes - (size_t)length, format,
			  arguments);
	va_end(arguments);
	return -EINVAL;
}

/* --- values --- */

static bool is_name_character(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-' || c == '.';
}

bool shunt_word_name(struct shunt_word word, char *to, size_t room)
{
	if (word.at == word.end || shunt_word_length(word) >= room)
		return false;
	for (const char *c = word.at; c < word.end; c++)
		if (!is_name_character(*c))
			return false;
	memset(to, 0, room);
	memcpy(to, word.at, shunt_word_length(word));
	return true;
}

bool shunt_qos_name_is_sound(const char text[SHUNT_QOS_NAME])
{
	size_t length = strnlen(text, SHUNT_QOS_NAME);

	for (size_t i = 0; i < length; i++)
		if (!is_name_character(text[i]))
			return false;
	for (size_t i = length; i < SHUNT_QOS_NAME; i++)
		if (text[i])
			return false;
	return length && length < SHUNT_QOS_NAME;
}

/* Digits and nothing else. */
bool shunt_word_number(struct shunt_word word, uint64_t most, uint64_t *result)
{
	uint64_t n = 0;

	if (word.at == word.end)
		return false;
	for (; word.at < word.end; word.at++) {
		if (*word.at < '0' || *word.at > '9')
			return false;
		n = n * 10 + (uint64_t)(*word.at - '0');
		if (n > most)
			return false;
	}
	*result = n;
	return true;
}

bool shunt_word_thousandths(struct shunt_word word, uint64_t most, uint64_t *result)
{
	const char *point = memchr(word.at, '.', shunt_word_length(word));
	struct shunt_word whole = { word.at, point ? point : word.end },
			  rest = { point ? point + 1 : word.end, word.end };
	uint64_t n, part = 0;

	if (!shunt_word_number(whole, most, &n) ||
	    (point && (shunt_word_length(rest) > 3 || !shunt_word_number(rest, 999, &part))))
		return false;
	for (size_t i = shunt_word_length(rest); point && i < 3; i++)
		part *= 10;
	*result = n * 1000 + part;
	return true;
}

/* --- the next one --- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static bool ends_statement(char c)
{
	return !c || c == '\n' || c == ';' || c == '#';
}

struct shunt_word shunt_word_next(const char **text)
{
	struct shunt_word word;

	while (is_blank(**text))
		(*text)++;
	word.at = *text;
	while (!ends_statement(**text) && !is_blank(**text))
		(*text)++;
	word.end = *text;
	return word;
}
