/* SPDX-License-Identifier: MIT */
/* The answer to a command of the operator, and numbers among its words. An answer of all zeros is an empty one. */
#ifndef SHUNT_CORE_BASE_ANSWER_H
#define SHUNT_CORE_BASE_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

#define SHUNT_ANSWER_MAX 4096

struct shunt_answer {	/* text for people, with a newline behind each line; what has no room is cut off */
	size_t length;
	char *more;	/* malloc'ed text of any length that follows; NULL: none */
	size_t more_length;
	bool keeps; /* the connection stays behind the answer (core/admin/dump.h) */
	char text[SHUNT_ANSWER_MAX];
};

void shunt_answer_begin(struct shunt_answer *answer);
/* The answer owns `text`, which follows its own; there was none before. */
void shunt_answer_give(struct shunt_answer *answer, char *text, size_t length);
void shunt_answer_end(struct shunt_answer *answer);

void shunt_answer_put(struct shunt_answer *answer, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Digits alone, and not more than `most`; -1: it is something else. */
long shunt_answer_number(const char *word, long most);

#endif
