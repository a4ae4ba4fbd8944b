/* SPDX-License-Identifier: MIT */
/* The capacity of a node, and what may be reserved of it. */
#include <string.h>
#include "core/qos/rules_words.h"

#define SIGMA_MOST 330 /* three deviations are less than the mean */
#define ALLOWED                                                                                    \
	"a capacity is RATE, auto, or auto RATE [0% to 33%], and then local=RATE; a RATE is " SHUNT_RULES_RATE

static int wrong(const struct shunt_rules_parser *parser, struct shunt_word word)
{
	return shunt_rules_wrong(parser, word.at, "%s", ALLOWED);
}

/* "auto", "auto 10Gbit", "auto 10Gbit 5%": `word` is behind it then. */
static bool adaptive(struct shunt_qos_rules *rules, struct shunt_word *word, const char **text)
{
	*word = shunt_word_next(text);
	rules->capacity_kind = SHUNT_QOS_CAPACITY_AUTO;
	if (!shunt_word_rate(*word, &rules->capacity))
		return true;
	rules->capacity_kind = SHUNT_QOS_CAPACITY_AUTO_FROM;
	rules->sigma = SHUNT_QOS_SIGMA;
	*word = shunt_word_next(text);
	if (!shunt_word_share(*word, &rules->sigma))
		return true;
	if (rules->sigma > SIGMA_MOST)
		return false;
	*word = shunt_word_next(text);
	return true;
}

/* "local=1Gbit", or nothing. */
static bool local(struct shunt_qos_rules *rules, struct shunt_word word)
{
	static const char key[] = "local=";

	if (word.at == word.end)
		return true;
	if (shunt_word_length(word) < strlen(key) || memcmp(word.at, key, strlen(key)))
		return false;
	word.at += strlen(key);
	return shunt_word_rate(word, &rules->local);
}

int shunt_rules_capacity(struct shunt_rules_parser *parser, const char **text)
{
	struct shunt_qos_rules *rules = parser->rules;
	struct shunt_word word = shunt_word_next(text);

	if (parser->capacity_at)
		return shunt_rules_wrong(parser, word.at, "a capacity comes twice, and may once");
	parser->capacity_at = word.at;
	if (shunt_word_is(word, "auto")) {
		if (!adaptive(rules, &word, text))
			return wrong(parser, word);
	} else if (shunt_word_rate(word, &rules->capacity)) {
		rules->capacity_kind = SHUNT_QOS_CAPACITY_FIXED;
		word = shunt_word_next(text);
	} else {
		return wrong(parser, word);
	}
	return local(rules, word) ? 0 : wrong(parser, word);
}

/* --- all statements together --- */

static int check_tokens(const struct shunt_rules_parser *parser, uint64_t rate, const char *at,
			const char *name)
{
	uint64_t tokens = shunt_qos_tokens(rate, parser->rules->period_ms);

	return !rate || (tokens && tokens < SHUNT_QOS_TOKENS_END) ?
		       0 :
		       shunt_rules_wrong(
			       parser, at,
			       "%s is %llu tokens in a period of %u ms: 1 to %llu are allowed",
			       name, (unsigned long long)tokens, parser->rules->period_ms,
			       SHUNT_QOS_TOKENS_END - 1);
}

/* A share of a capacity that changes may exceed a limit for a time; the limit holds. */
static int check_class(const struct shunt_rules_parser *parser, uint32_t i)
{
	const struct shunt_qos_rules *rules = parser->rules;
	const struct shunt_qos_class *class = &rules->classes[i];
	uint64_t fixed = rules->capacity_kind == SHUNT_QOS_CAPACITY_FIXED ? rules->capacity : 0,
		 rate = shunt_qos_reserved(class, fixed);

	if (!class->reserve && !class->reserve_share)
		return 0;
	if (rules->capacity_kind == SHUNT_QOS_CAPACITY_NONE)
		return shunt_rules_wrong(
			parser, parser->reserve_at[i],
			"to reserve needs a capacity: a statement 'capacity RATE' or 'capacity auto' is allowed");
	if (class->limit && rate > class->limit)
		return shunt_rules_wrong(
			parser, parser->reserve_at[i],
			"class %s reserves more than its limit: up to the limit is allowed",
			class->name);
	return check_tokens(parser, rate, parser->reserve_at[i], "a reserve");
}

int shunt_rules_check(const struct shunt_rules_parser *parser)
{
	const struct shunt_qos_rules *rules = parser->rules;
	uint32_t shares = 0;
	int result = check_tokens(parser, rules->capacity, parser->capacity_at, "a capacity");

	for (uint32_t i = 0; !result && i < rules->count; i++) {
		result = check_class(parser, i);
		shares += rules->classes[i].reserve_share;
		if (!result && shares > 1000)
			result = shunt_rules_wrong(
				parser, parser->reserve_at[i],
				"the classes reserve %u.%u%% up to here: 100%% of the capacity is allowed",
				shares / 10, shares % 10);
	}
	return result;
}
