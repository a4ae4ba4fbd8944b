/* SPDX-License-Identifier: MIT */
/* A text in memory of the caller's. The end that has no room is cut off. */
#ifndef SHUNT_CORE_BASE_TEXT_H
#define SHUNT_CORE_BASE_TEXT_H

#include <stddef.h>

struct shunt_text {
	char *to;	/* `room` bytes, with a 0 behind what was put */
	size_t length, room;
};

void shunt_text_begin(struct shunt_text *text, char *to, size_t room);
void shunt_text_put(struct shunt_text *text, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
