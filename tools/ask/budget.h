/* SPDX-License-Identifier: MIT */
/*
 * Bounds for the answers of processes. Any process may take any number of names of doors, and answer anything: a JSON
 * text of 60 MB can become 5 GB of values. So a look has a budget. Our own user's processes and root's have one half
 * of it, and so has a process that was named. Those of all other users, strangers, have the other half. No stranger
 * has more than its share, however many others there are.
 */
#ifndef SHUNT_TOOLS_BUDGET_H
#define SHUNT_TOOLS_BUDGET_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define SHUNT_BUDGET_DOORS 4096 /* of one stranger, in a look */
#define SHUNT_BUDGET_ABREAST 256 /* of one stranger, that are asked at the same time */

/* Of each half. */
struct shunt_budget_limits {
	size_t text; /* bytes of answers; of one stranger a quarter */
	size_t values; /* bytes of what becomes of them, by estimate; strangers share */
};

extern const struct shunt_budget_limits shunt_budget_usual, shunt_budget_monitor;

struct shunt_budget_user {
	uid_t user;
	size_t doors, abreast, text;
	size_t wanted; /* bytes of values that its answers would become */
	size_t values; /* that they may */
	bool judged;
};

struct shunt_budget {
	const struct shunt_budget_limits *limits;
	struct shunt_budget_user ours, *strangers; /* in no order */
	size_t count;
	size_t text; /* of all strangers */
};

/* The user's account. It stays where it is until the next call. */
struct shunt_budget_user *shunt_budget_of(struct shunt_budget *budget, uid_t user, bool named);
void shunt_budget_free(struct shunt_budget *budget);
/* Our own user, or root. */
bool shunt_budget_trusts(uid_t user);

/* One more door is looked at, is asked. False: there have been too many. */
bool shunt_budget_door(struct shunt_budget_user *user);
bool shunt_budget_asks(struct shunt_budget_user *user);
/* That many more bytes of an answer are held. False: they are too many. */
bool shunt_budget_holds(struct shunt_budget *budget, struct shunt_budget_user *user, size_t bytes);
void shunt_budget_drops(struct shunt_budget *budget, struct shunt_budget_user *user, size_t bytes);
/*
 * All answers have been weighed, and added to `wanted`: how much each stranger may have. A stranger that wants less than
 * its share leaves the rest to others.
 */
void shunt_budget_share(struct shunt_budget *budget);

/* Bytes that the values of a JSON text take at most. */
size_t shunt_budget_weigh(const char *text, size_t bytes);
/* Takes the array of the outermost object's member "streams" out of a text. Its new length. */
size_t shunt_budget_cut_streams(char *text, size_t bytes);
/* json_loadb() for a text of another process. Too many values: NULL, and the error says so. */
json_t *shunt_budget_parse(const char *text, size_t bytes, size_t values, size_t flags,
			   json_error_t *error);

#endif
