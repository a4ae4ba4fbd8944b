/* SPDX-License-Identifier: MIT */
/*
 * The text of a configuration file, shunt.conf(5): lines "SHUNT_NAME = VALUE" and "rule …", empty lines, and
 * comments behind a "#" that begins a line. Pure: nothing is allocated, opened or asked.
 */
#ifndef SHUNT_CORE_BASE_CONF_LINES_H
#define SHUNT_CORE_BASE_CONF_LINES_H

#include <stddef.h>

#define SHUNT_CONF_LINE_MAX 1280 /* a line with its final 0; room for any name and value */

struct shunt_conf_line {
	unsigned int number; /* from 1 */
	const char *name; /* of a variable; NULL: a rule */
	const char *value; /* of the variable, or the words behind "rule"; never empty */
};

struct shunt_conf_reader {
	void (*take)(const struct shunt_conf_line *line, void *arg);
	/* A line that is neither: a phrase. NULL: nobody wants to know. */
	void (*wrong)(unsigned int number, const char *why, void *arg);
	void *arg;
};

/* The text may hold any bytes. */
void shunt_conf_lines(const char *text, size_t bytes, const struct shunt_conf_reader *reader);

#endif
