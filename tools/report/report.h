/* SPDX-License-Identifier: MIT */
/* shunt report: files of the report (report_files.c) and the command (report.c). */
#ifndef SHUNT_TOOLS_REPORT_H
#define SHUNT_TOOLS_REPORT_H

#include <jansson.h>
#include "tools/report/anonymous.h"
#include "tools/report/archive.h"

struct shunt_report {
	struct shunt_archive archive;
	struct shunt_anonymous *names; /* NULL: addresses stay */
	json_t *entries; /* the list of files: name and bytes */
};

/* One file; `format` makes its name. The text's addresses are replaced if that was asked for. */
void shunt_report_put(struct shunt_report *report, const char *text, size_t length,
		      const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Everything that a report has. 0, or -1 after saying why not. */
int shunt_report_gather(struct shunt_report *report);

#endif
