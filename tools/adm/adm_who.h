/* SPDX-License-Identifier: MIT */
/* The processes that `shunt adm` is to tell something: those that are named, or all that meet a user and a pattern. */
#ifndef SHUNT_TOOLS_ADM_WHO_H
#define SHUNT_TOOLS_ADM_WHO_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include "tools/ask/door.h"

#define ADM_PROGRAM 64	/* room for a program's name */
#define ADM_PATIENCE 20	/* seconds that a host has, unless told otherwise */

struct adm_who {
	struct shunt_door *wanted;
	size_t count;
	bool many;	/* the answers are a table, be it of one row */
	bool json;
	const char *hosts;	/* a file: the command is for processes of these hosts; NULL: of this one */
	double patience;	/* seconds that a host has */
};

/* The index of the command's first word in argv, and `who`; or -1, and nothing is held. */
int adm_who_parse(int argc, char **argv, struct adm_who *who);
void adm_who_free(struct adm_who *who);

/* ---- adm_hosts.c ---- */

/* Says argv, of which the first `used` are options, on each host of who->hosts. The exit status. */
int adm_hosts(int argc, char **argv, int used, const struct adm_who *who);

/* /proc/PID/comm, or "-" where that cannot be read. Returns `name`. */
const char *adm_program(pid_t pid, char name[ADM_PROGRAM]);

#endif
