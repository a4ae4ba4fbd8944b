/* SPDX-License-Identifier: MIT */
/*
 * Commands for shunted processes: one line goes to the control sockets of one, several or all
 * (core/admin/command.h). Each answer comes back whole. All are asked at the same time, and one
 * deadline is for all. An answer is the text of another process: it may hold anything.
 */
#ifndef SHUNT_TOOLS_ASK_H
#define SHUNT_TOOLS_ASK_H

#include <stdbool.h>
#include <stddef.h>
#include "tools/ask/door.h"

struct shunt_reply {
	struct shunt_door door;
	bool refused;	/* the text says why */
	char *text;	/* with a 0 behind it; NULL: there is no answer */
	size_t length;
	char why[256];	/* no answer: a phrase for people */
};

struct shunt_replies {
	struct shunt_reply *of;	/* in the order of `wanted`, or in ascending order */
	size_t count;
};

/*
 * Asks the processes that are wanted, or with a count of 0 all of this network namespace that let
 * us in. A process that is wanted has one reply at least: the kernel may know several doors for
 * its number, and none hides another. 0, or -errno of /proc/net/unix, and no replies.
 */
int shunt_ask(const struct shunt_door *wanted, size_t count, const char *line,
	      struct shunt_replies *replies);
/* The same with a deadline, in seconds, and a budget. */
struct shunt_budget_limits;
int shunt_ask_within(const struct shunt_door *wanted, size_t count, const char *line,
		     double patience, const struct shunt_budget_limits *limits,
		     struct shunt_replies *replies);
void shunt_ask_free(struct shunt_replies *replies);

/*
 * Words as one line of `room` bytes, with its 0. Its length; 0 where it has no room, or there are
 * no words.
 */
size_t shunt_ask_line(int count, char **words, char *line, size_t room);

#endif
