/* SPDX-License-Identifier: MIT */
/* `shunt doctor --plan`: resources that a process takes for its connections, and whether this shell's limits bear it. */
#ifndef SHUNT_TOOLS_PLAN_PLAN_H
#define SHUNT_TOOLS_PLAN_PLAN_H

#include <stdbool.h>

/*
 * `text`: "connections=N[,peers=M][,sets=S][,device=soft|verbs]". SHUNT_TUNE of the environment counts, as it would for
 * the process. The exit status: 0; 1 where a row is bad, or warns and `strict`; 2 after saying what is wrong in `text`.
 */
int shunt_plan_say(const char *text, bool json, bool strict);

#endif
