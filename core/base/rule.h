/* SPDX-License-Identifier: MIT */
/*
 * Rules of shunt.conf(5): which connections a link carries. The first rule that a connection meets decides, and where it
 * meets none a link does. Pure: a text becomes one bounded structure, and nothing is allocated, opened or asked.
 */
#ifndef SHUNT_CORE_BASE_RULE_H
#define SHUNT_CORE_BASE_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/base/word.h"

#define SHUNT_RULE_MOST 32 /* of a list */
#define SHUNT_RULE_BYTES 16384 /* of a text, at most */
#define SHUNT_RULE_NAME 64 /* of a program, with its final 0 */
#define SHUNT_RULE_USER 33 /* the same of a user */
#define SHUNT_RULE_TEXT 12288 /* room for all rules of a list as text */
#define SHUNT_RULE_ERROR 256 /* room for any complaint */

enum { /* the things that a rule asks about a connection */
       SHUNT_RULE_BY_PROGRAM = 1,
       SHUNT_RULE_BY_USER = 2,
       SHUNT_RULE_BY_PEER = 4,
       SHUNT_RULE_BY_LOCAL = 8,
       SHUNT_RULE_BY_PORT = 16, /* either one */
       SHUNT_RULE_BY_LPORT = 32, /* ours */
       SHUNT_RULE_BY_PPORT = 64, /* the peer's */
       SHUNT_RULE_TRACES = 128, /* and `trace` is set, which asks nothing */
};

enum shunt_rule_action { SHUNT_RULE_LINK, SHUNT_RULE_TCP, SHUNT_RULE_MOCK };

struct shunt_rule_ports { /* in host order */
	uint16_t from, to;
};

struct shunt_rule {
	enum shunt_rule_action action;
	uint32_t by; /* SHUNT_RULE_BY_…; none of them: every connection */
	char program[SHUNT_RULE_NAME]; /* "*" and "?" as in a shell */
	char user[SHUNT_RULE_USER]; /* as written; "": `uid` is known */
	uint32_t uid;
	struct shunt_network peer, local;
	struct shunt_rule_ports port, lport, pport;
	uint8_t trace; /* K + 1: one send in 2^K is followed; 0: SHUNT_TRACE counts */
};

struct shunt_rule_list {
	uint32_t count;
	struct shunt_rule rules[SHUNT_RULE_MOST];
};

/* All that rules ask of a connection, and of the process that has it. */
struct shunt_rule_facts {
	uint32_t uid;
	const char *command, *program; /* /proc/PID/comm and the name of exe; "": not known */
	const uint8_t *peer, *local; /* 16 bytes each */
	uint16_t peer_port, local_port; /* in host order */
};

/*
 * 0; or -EINVAL and one line "SOURCE:LINE:COLUMN: …" about the first wrong word. Without a source the line is the
 * complaint alone. Users that are names stay names. Nothing of `list` counts after an error.
 */
int shunt_rule_parse(const char *text, const char *source, struct shunt_rule_list *list,
		     char *error, size_t bytes);
/* The first rule that is met; NULL: none. A user's name that nobody has looked up is met by nobody. */
const struct shunt_rule *shunt_rule_find(const struct shunt_rule_list *list,
					 const struct shunt_rule_facts *facts);
/* The rules as a text that is parsed to the same rules. */
void shunt_rule_text(const struct shunt_rule_list *list, char text[SHUNT_RULE_TEXT]);
/* "tcp" */
const char *shunt_rule_action_text(enum shunt_rule_action action);

#endif
