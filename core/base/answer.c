/* SPDX-License-Identifier: MIT */
#include "core/base/answer.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void shunt_answer_begin(struct shunt_answer *answer)
{
	answer->length = answer->more_length = 0;
	answer->more = NULL;
	answer->keeps = false;
	answer->text[0] = '\0';
}

void shunt_answer_give(struct shunt_answer *answer, char *text, size_t length)
{
	answer->more = text;
	answer->more_length = length;
}

void shunt_answer_end(struct shunt_answer *answer)
{
	free(answer->more);
	answer->more = NULL;
	answer->more_length = 0;
}

void shunt_answer_put(struct shunt_answer *answer, const char *format, ...)
{
	size_t room = sizeof(answer->text) - answer->length;
	va_list args;
	int wanted;

	va_start(args, format);
	wanted = vsnprintf(answer->text + answer->length, room, format, args);
	va_end(args);
	if (wanted > 0)
		answer->length += (size_t)wanted < room ? (size_t)wanted : room - 1;
}

long shunt_answer_number(const char *word, long most)
{
	long number = 0;

	for (const char *c = word; *c; c++) {
		if (*c < '0' || *c > '9' || number > (most - (*c - '0')) / 10)
			return -1;
		number = number * 10 + (*c - '0');
	}
	return *word ? number : -1;
}
