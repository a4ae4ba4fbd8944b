/* SPDX-License-Identifier: MIT */
#include "core/base/text.h"
#include <stdarg.h>
#include <stdio.h>

void shunt_text_begin(struct shunt_text *text, char *to, size_t room)
{
	*text = (struct shunt_text) { .to = to, .room = room };
	*to = '\0';
}

void shunt_text_put(struct shunt_text *text, const char *format, ...)
{
	va_list args;
	int wanted;

	va_start(args, format);
	wanted = vsnprintf(text->to + text->length, text->room - text->length, format, args);
	va_end(args);
	if (wanted < 0 || (size_t)wanted >= text->room - text->length)
		text->length = text->room - 1;
	else
		text->length += (size_t)wanted;
}
