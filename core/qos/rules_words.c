/* SPDX-License-Identifier: MIT */
#include "core/qos/rules_words.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

bool shunt_qos_name_is_sound(const char text[SHUNT_QOS_NAME])
{
	size_t length = strnlen(text, SHUNT_QOS_NAME);
	char name[SHUNT_QOS_NAME];

	return shunt_word_name((struct shunt_word) { text, text + length }, name, sizeof(name)) &&
	       !memcmp(name, text, sizeof(name));
}
