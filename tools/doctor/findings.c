/* SPDX-License-Identifier: MIT */
#include "tools/doctor/findings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/common/output.h"

#define TEXT_BYTES 2048 /* of a row as it is shown */
#define INDENT 21 /* of the words, behind grade and check */

static const char *const words[] = { "ok", "warn", "bad" };

const char *shunt_grade_word(enum shunt_grade grade)
{
	return words[grade];
}

void shunt_findings_add(struct shunt_findings *findings, enum shunt_grade grade, const char *check,
			const char *format, ...)
{
	struct shunt_finding finding = { .grade = grade, .check = check };
	va_list args;

	va_start(args, format);
	if (vasprintf(&finding.what, format, args) < 0)
		abort();
	va_end(args);
	findings->of = reallocarray(findings->of, findings->count + 1, sizeof(*findings->of));
	if (!findings->of)
		abort();
	findings->of[findings->count++] = finding;
}

void shunt_findings_advise(struct shunt_findings *findings, const char *format, ...)
{
	struct shunt_finding *last = &findings->of[findings->count - 1];
	va_list args;

	free(last->todo);
	va_start(args, format);
	if (vasprintf(&last->todo, format, args) < 0)
		abort();
	va_end(args);
}

enum shunt_grade shunt_findings_worst(const struct shunt_findings *findings)
{
	enum shunt_grade worst = SHUNT_WELL;

	for (size_t i = 0; i < findings->count; i++)
		if (findings->of[i].grade > worst)
			worst = findings->of[i].grade;
	return worst;
}

/* Text that the kernel or another process has given need not be UTF-8, which JSON wants. */
static json_t *text_json(const char *text)
{
	json_t *string = json_string(text ? text : "");
	char shown[TEXT_BYTES];

	return string ? string : json_string(shunt_escape(text, shown, sizeof(shown)));
}

json_t *shunt_findings_json(const struct shunt_findings *findings)
{
	json_t *rows = json_array();

	for (size_t i = 0; i < findings->count; i++) {
		const struct shunt_finding *row = &findings->of[i];

		json_array_append_new(rows,
				      json_pack("{s:s, s:s, s:o, s:o}", "check", row->check,
						"grade", words[row->grade], "what",
						text_json(row->what), "do", text_json(row->todo)));
	}
	return rows;
}

void shunt_findings_show(const struct shunt_findings *findings)
{
	char shown[TEXT_BYTES];

	for (size_t i = 0; i < findings->count; i++) {
		const struct shunt_finding *row = &findings->of[i];

		printf("  %-4s  %-12s ", words[row->grade], row->check);
		shunt_print_wrapped(INDENT, INDENT, shunt_escape(row->what, shown, sizeof(shown)));
		if (!row->todo)
			continue;
		printf("%*s", INDENT, "");
		shunt_print_wrapped(INDENT + 4, INDENT + printf("do: "),
				    shunt_escape(row->todo, shown, sizeof(shown)));
	}
}

void shunt_findings_free(struct shunt_findings *findings)
{
	for (size_t i = 0; i < findings->count; i++) {
		free(findings->of[i].what);
		free(findings->of[i].todo);
	}
	free(findings->of);
	*findings = (struct shunt_findings) { 0 };
}
