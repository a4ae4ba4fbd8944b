/* SPDX-License-Identifier: MIT */
/* Rows of `shunt doctor`: a check, its grade, the finding in words, and the remedy. Text is shown escaped. */
#ifndef SHUNT_TOOLS_FINDINGS_H
#define SHUNT_TOOLS_FINDINGS_H

#include <jansson.h>
#include <stddef.h>

enum shunt_grade { SHUNT_WELL, SHUNT_WARN, SHUNT_BAD };

struct shunt_finding {
	enum shunt_grade grade;
	const char *check; /* a word for scripts, a constant */
	char *what, *todo; /* todo: NULL for none */
};

struct shunt_findings {
	struct shunt_finding *of;
	size_t count;
};

/* Adds a row without a remedy. */
void shunt_findings_add(struct shunt_findings *findings, enum shunt_grade grade, const char *check,
			const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Gives the last row its remedy. */
void shunt_findings_advise(struct shunt_findings *findings, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

enum shunt_grade shunt_findings_worst(const struct shunt_findings *findings);
const char *shunt_grade_word(enum shunt_grade grade);
json_t *shunt_findings_json(const struct shunt_findings *findings);
/* A table; rows that are well have one line. */
void shunt_findings_show(const struct shunt_findings *findings);
void shunt_findings_free(struct shunt_findings *findings);

#endif
