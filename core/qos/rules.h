/* SPDX-License-Identifier: MIT */
/*
 * The rules of a node (docs/QOS.md), and which of them a client matches. Pure: a text becomes one bounded structure,
 * and nothing is allocated, opened or asked.
 */
#ifndef SHUNT_CORE_QOS_RULES_H
#define SHUNT_CORE_QOS_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/base/word.h"
#include "shunt/wire.h"

#define SHUNT_QOS_CLASSES 16
#define SHUNT_QOS_NO_CLASS SHUNT_QOS_CLASSES
#define SHUNT_QOS_USER 33 /* of a name, with its final 0 */
#define SHUNT_QOS_PROGRAM 64 /* the same */
#define SHUNT_QOS_PERIOD_LEAST 100u /* ms */
#define SHUNT_QOS_PERIOD_MOST 10000u
#define SHUNT_QOS_BATCH 1000 /* tokens that a client takes of the pool at once, at most */
#define SHUNT_QOS_TOKENS_END (1ull << 28) /* tokens of a period are fewer */
#define SHUNT_QOS_SIGMA 50 /* of a capacity that is given with no deviation */
#define SHUNT_QOS_TEXT 8192 /* room for all rules */
#define SHUNT_QOS_ERROR 256 /* room for any complaint */

enum { /* what a rule asks about a client */
       SHUNT_QOS_BY_USER = 1,
       SHUNT_QOS_BY_PROGRAM = 2,
       SHUNT_QOS_BY_HOST = 4,
       SHUNT_QOS_BY_PORT = 8,
       SHUNT_QOS_BY_DECLARED = 16,
};

struct shunt_qos_class {
	char name[SHUNT_QOS_NAME];
	uint32_t by; /* SHUNT_QOS_BY_; 0: every client */
	char user[SHUNT_QOS_USER]; /* as written; "": `uid` is known */
	uint32_t uid;
	char program[SHUNT_QOS_PROGRAM];
	struct shunt_network host;
	uint16_t port; /* of ours, in host order */
	char declared[SHUNT_QOS_NAME];
	uint64_t limit; /* as in tokens.h; 0: none */
	uint64_t reserve; /* a rate as well; 0: none, or a share */
	uint32_t reserve_share; /* thousandths of the capacity; 0: none, or a rate */
};

enum shunt_qos_capacity {
	SHUNT_QOS_CAPACITY_NONE, /* nothing is reserved */
	SHUNT_QOS_CAPACITY_FIXED,
	SHUNT_QOS_CAPACITY_AUTO, /* the node measures it */
	SHUNT_QOS_CAPACITY_AUTO_FROM, /* it was measured: `capacity` is the mean */
};

struct shunt_qos_rules {
	uint32_t period_ms;
	uint32_t batch;
	enum shunt_qos_capacity capacity_kind;
	uint64_t capacity; /* a rate; 0: NONE or AUTO */
	uint32_t sigma; /* of AUTO_FROM: the standard deviation, in thousandths of `capacity` */
	uint64_t local; /* a rate: what a client alone can send; 0: not known */
	uint32_t count;
	struct shunt_qos_class classes[SHUNT_QOS_CLASSES];
};

/* All that is known of a client. */
struct shunt_qos_client {
	bool has_user; /* within one host */
	uint32_t uid;
	/* /proc/PID/comm and the name of exe; "": not known. */
	char command[SHUNT_QOS_PROGRAM], program[SHUNT_QOS_PROGRAM];
	uint8_t host[16];
	uint16_t port;
	char declared[SHUNT_QOS_NAME]; /* "": nothing */
};

/* The characters of a name, and its final 0 within the room; what is behind that is 0, too. */
bool shunt_qos_name_is_sound(const char name[SHUNT_QOS_NAME]);

/*
 * 0; or -EINVAL and one line "SOURCE:LINE:COLUMN: what is wrong, and what is allowed". `source` names the text. `error`
 * may be NULL. Users that are names stay names.
 */
int shunt_qos_parse(const char *text, const char *source, struct shunt_qos_rules *rules,
		    char *error, size_t bytes);
/* The number of the first class whose rule the client meets; SHUNT_QOS_NO_CLASS. */
uint32_t shunt_qos_match(const struct shunt_qos_rules *rules,
			 const struct shunt_qos_client *client);
/* Tokens of a rate in a period, rounded down. */
uint64_t shunt_qos_tokens(uint64_t rate, uint32_t period_ms);
/* A class's reservation as a rate, of a capacity that is a rate; 0: nothing. */
uint64_t shunt_qos_reserved(const struct shunt_qos_class *class, uint64_t capacity);
/* The rules as a text that is parsed to the same rules. */
void shunt_qos_text(const struct shunt_qos_rules *rules, char text[SHUNT_QOS_TEXT]);
/* A rate that was parsed, as the shortest text that is parsed to it. Returns `text`, of at least 24 bytes. */
const char *shunt_qos_exact_text(uint64_t rate, char *text, size_t room);
/* A rate as the rules would have it: "2Gbit". Returns `text`. */
const char *shunt_qos_rate_text(uint64_t rate, char *text, size_t room);

#endif
