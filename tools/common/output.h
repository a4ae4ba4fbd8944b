/* SPDX-License-Identifier: MIT */
/*
 * Output of the command. Text from another process (statistics, answers, last words) may hold anything. It is shown
 * escaped, so that it cannot move a cursor, set a title or look like lines of ours.
 */
#ifndef SHUNT_TOOLS_OUTPUT_H
#define SHUNT_TOOLS_OUTPUT_H

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

#define SHUNT_COLUMNS 100	/* the width of tables */

/* `text` with every byte that is not printable ASCII as \xNN, and \ doubled; cut with "..." to `room`. Returns buf. */
const char *shunt_escape(const char *text, char *buf, size_t room);
/* The same straight to a file; newlines stay. */
void shunt_print_escaped(FILE *file, const char *text, size_t length);

/* A member that is a string, escaped as above, or a number; else "". Returns buf. */
const char *shunt_member_text(const json_t *object, const char *key, char *buf, size_t room);

/* Why a stream of statistics is on TCP, "reason: detail", cut to `room`; "" for one that has no reason. Returns buf. */
const char *shunt_reason_said(const json_t *stream, char *buf, size_t room);

/* JSON of printable ASCII and a newline, with json_dumpf()'s flags. 0 or -1. */
int shunt_print_json(FILE *file, const json_t *root, size_t flags);

/* Prints words up to SHUNT_COLUMNS, from `column` on, further lines from `indent` on, each with its newline. */
void shunt_print_wrapped(int indent, int column, const char *text);

/* From here on exit() says so, with EXIT_FAILED, where standard output has not taken everything. */
void shunt_output_begin(void);

#endif
