/* SPDX-License-Identifier: MIT */
/*
 * Commands for a running process: one line of words, which comes to its control socket (admin.c). A
 * command is one row of the table in command.c.
 */
#ifndef SHUNT_CORE_ADMIN_COMMAND_H
#define SHUNT_CORE_ADMIN_COMMAND_H

#include <stddef.h>

struct shunt_answer;
struct shunt_engine;

#define SHUNT_COMMAND_MAX 512	/* bytes of a line */
#define SHUNT_COMMAND_WORDS 64

/*
 * Carries out a line: printable ASCII, words with one space between them. 0, or -1 if it was refused, and nothing
 * has changed; the answer says why. The caller ends the answer. Service thread.
 */
int shunt_command_run(struct shunt_engine *engine, const char *line, size_t bytes, struct shunt_answer *answer);

/* Names and meanings of the commands; NULL behind the last. Any thread. */
const char *shunt_command_name(size_t i, const char **help);

#endif
