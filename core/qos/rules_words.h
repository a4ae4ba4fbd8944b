/* SPDX-License-Identifier: MIT */
/*
 * The parser of rules, for the files of rules*.c alone: values of words beside those of core/base/word.h, and one
 * complaint. Functions that return a bool write their result only where they return true.
 */
#ifndef SHUNT_CORE_QOS_RULES_WORDS_H
#define SHUNT_CORE_QOS_RULES_WORDS_H

#include "core/base/word.h"
#include "core/qos/rules.h"

#define SHUNT_RULES_RATE                                                                           \
	"a number up to 1000000 with at most three decimals, and Mbit, Gbit, Kops or Mops"
#define SHUNT_RULES_NAME "a name of up to 31 letters, digits, dots, dashes and underscores"

struct shunt_rules_parser {
	const char *source, *text; /* all of it */
	struct shunt_qos_rules *rules;
	char *error; /* NULL: nobody reads it */
	size_t bytes;
	const char *capacity_at; /* the statement's value; NULL: it has not come */
	const char *batch_at; /* the same */
	const char *reserve_at[SHUNT_QOS_CLASSES]; /* the value of a class's key */
};

/* "2.5Gbit", as in tokens.h. */
bool shunt_word_rate(struct shunt_word word, uint64_t *result);
/* "12.5%", in thousandths of the whole, up to 1000. */
bool shunt_word_share(struct shunt_word word, uint32_t *result);

/* -EINVAL, and the line: SOURCE:LINE:COLUMN of `at`, and the complaint. */
__attribute__((format(printf, 3, 4))) int shunt_rules_wrong(const struct shunt_rules_parser *parser,
							    const char *at, const char *format,
							    ...);
/* The statement `class`, behind its word. 0, or -EINVAL and a complaint. */
int shunt_rules_class(struct shunt_rules_parser *parser, const char **text);
/* The statement `capacity`, the same. */
int shunt_rules_capacity(struct shunt_rules_parser *parser, const char **text);
/* All statements are there: do capacity and reservations fit together? */
int shunt_rules_check(const struct shunt_rules_parser *parser);

#endif
