/* SPDX-License-Identifier: MIT */
#include "core/base/fault_rules.h"
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "core/base/word.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define US 1000ull
#define MS 1000000ull

enum { P = 1, NTH = 2, TIMES = 4, LANE = 8, BYTES = 16, TIME = 32, WHAT = 64, ALWAYS = P | NTH | TIMES };

struct action {
	const char *name;
	uint32_t keys;		/* that it takes */
	uint64_t ns;		/* if no time is given */
	const char *what;	/* its words for `what`, in the order of their numbers */
};

static const struct action actions[SHUNT_FAULT_ACTIONS] = {
	[SHUNT_FAULT_DELAY] = { "delay", ALWAYS | LANE | TIME, 1000 * US, NULL },
	[SHUNT_FAULT_STALL] = { "stall", ALWAYS | LANE | TIME, 0, NULL },
	[SHUNT_FAULT_DROP] = { "drop", ALWAYS | LANE | BYTES, 0, NULL },
	[SHUNT_FAULT_KILL] = { "kill", ALWAYS | LANE | BYTES, 0, NULL },
	[SHUNT_FAULT_POST] = { "post", ALWAYS | LANE | BYTES, 0, NULL },
	[SHUNT_FAULT_CORRUPT] = { "corrupt", ALWAYS | LANE | BYTES | WHAT, 0, "imm|word|any" },
	[SHUNT_FAULT_FREEZE] = { "freeze", ALWAYS | TIME, 100 * MS, NULL },
	[SHUNT_FAULT_REFUSE] = { "refuse", ALWAYS, 0, NULL },
	[SHUNT_FAULT_DENY] = { "deny", ALWAYS | WHAT, 0, "malloc|map|fd|mr|thread|any" },
};

static const struct key {
	const char *name;
	uint32_t key;
	uint64_t most;
	uint64_t unit;
	bool size;		/* takes K, M, G */
} keys[] = {
	{ "p", P, 0, 0, false },
	{ "nth", NTH, UINT32_MAX, 1, false },
	{ "count", TIMES, UINT32_MAX, 1, false },
	{ "lane", LANE, UINT32_MAX - 1, 1, false },
	{ "bytes", BYTES, 1ull << 50, 1, true },
	{ "us", TIME, 3600000000ull, US, false },
	{ "ms", TIME, 3600000ull, MS, false },
	{ "what", WHAT, 0, 0, false },
};

struct parser {
	struct shunt_fault_plan *plan;
	uint32_t item;		/* for messages, from 1 */
	const char *action;	/* the same; NULL: not known yet */
	char *error;
	size_t bytes;
};

const char *shunt_fault_name(enum shunt_fault_action action)
{
	return actions[action].name;
}

__attribute__((format(printf, 2, 3))) static int wrong(const struct parser *parser, const char *format, ...)
{
	va_list arguments;
	int length;

	if (!parser->error || !parser->bytes)
		return -EINVAL;
	length = snprintf(parser->error, parser->bytes, "rule %u%s%s%s: ", parser->item, parser->action ? " (" : "",
			  parser->action ? parser->action : "", parser->action ? ")" : "");
	va_start(arguments, format);
	if (length >= 0 && (size_t)length < parser->bytes)
		vsnprintf(parser->error + length, parser->bytes - (size_t)length, format, arguments);
	va_end(arguments);
	return -EINVAL;
}

/* The next word up to one of `ends`; *text is moved behind it and the separator. */
static struct shunt_word word_take(const char **text, const char *ends)
{
	struct shunt_word word = { *text, *text + strcspn(*text, ends) };

	*text = *word.end ? word.end + 1 : word.end;
	return word;
}

static unsigned int shift_of(char suffix)
{
	return suffix == 'K' ? 10 : suffix == 'M' ? 20 : suffix == 'G' ? 30 : 0;
}

/* Digits and nothing else, except a suffix where the key has them. */
static bool number(struct shunt_word word, const struct key *key, uint64_t *result)
{
	unsigned int shift = key->size && word.end > word.at ? shift_of(word.end[-1]) : 0;

	word.end -= shift > 0;
	if (!shunt_word_number(word, key->most >> shift, result))
		return false;
	*result = (*result << shift) * key->unit;
	return true;
}

/* "0.25": up to nine digits behind the point. */
static bool odds(struct shunt_word word, uint64_t *result)
{
	uint64_t n = 0, one = 1;
	bool point = false, digits = false;

	for (; word.at < word.end; word.at++) {
		if (*word.at == '.' && !point) {
			point = true;
			continue;
		}
		if (*word.at < '0' || *word.at > '9' || one == 1000000000)
			return false;
		n = n * 10 + (uint64_t)(*word.at - '0');
		one *= point ? 10 : 1;
		digits = true;
		if (n > one)
			return false;
	}
	*result = (n << 32) / one;
	return digits;
}

/* The number of a word in "a|b|any", of which the last means all. */
static bool choose(struct shunt_word word, const char *words, uint32_t *result)
{
	for (uint32_t i = 0; *words; i++) {
		struct shunt_word one = word_take(&words, "|");

		if (one.end - one.at == word.end - word.at && !memcmp(one.at, word.at, (size_t)(one.end - one.at))) {
			*result = *words ? i : SHUNT_FAULT_ANY;
			return true;
		}
	}
	return false;
}

static int rule_set(const struct parser *parser, struct shunt_fault_rule *rule,
		    const struct key *key, struct shunt_word value)
{
	const struct action *action = &actions[rule->action];
	uint64_t n = 0;

	if (key->key == P)
		return odds(value, &rule->odds) ? 0 : wrong(parser, "p is not a number from 0 to 1");
	if (key->key == WHAT)
		return choose(value, action->what, &rule->what) ? 0 :
			wrong(parser, "the key what is not one of %s", action->what);
	if (!number(value, key, &n))
		return wrong(parser, "%s is not a number up to %llu", key->name, (unsigned long long)key->most);
	switch (key->key) {
	case NTH:
		rule->nth = n;
		break;
	case TIMES:
		rule->count = n;
		break;
	case LANE:
		rule->lane = (uint32_t)n;
		break;
	case BYTES:
		rule->bytes = n;
		break;
	case TIME:
		rule->ns = n;
		break;
	}
	return 0;
}

static int parse_pair(const struct parser *parser, struct shunt_fault_rule *rule,
		      struct shunt_word pair)
{
	const char *equals = memchr(pair.at, '=', (size_t)(pair.end - pair.at));

	if (!equals)
		return wrong(parser, "'%.*s' is not KEY=VALUE", (int)(pair.end - pair.at), pair.at);
	for (size_t i = 0; i < COUNT(keys); i++) {
		if (!shunt_word_is((struct shunt_word) { pair.at, equals }, keys[i].name))
			continue;
		if (!(actions[rule->action].keys & keys[i].key))
			return wrong(parser, "it takes no '%s'", keys[i].name);
		return rule_set(parser, rule, &keys[i],
				(struct shunt_word) { equals + 1, pair.end });
	}
	return wrong(parser, "there is no key '%.*s'", (int)(equals - pair.at), pair.at);
}

static int parse_rule(struct parser *parser, struct shunt_word item)
{
	struct shunt_fault_rule *rule = &parser->plan->rules[parser->plan->count];
	const char *colon = memchr(item.at, ':', (size_t)(item.end - item.at));
	struct shunt_word name = { item.at, colon ? colon : item.end }, pair = name;
	uint32_t action = 0;
	int result = 0;

	while (action < SHUNT_FAULT_ACTIONS && !shunt_word_is(name, actions[action].name))
		action++;
	if (action == SHUNT_FAULT_ACTIONS)
		return wrong(parser, "there is no action '%.*s'", (int)(name.end - name.at), name.at);
	if (parser->plan->count == SHUNT_FAULT_RULES)
		return wrong(parser, "more than %d rules", SHUNT_FAULT_RULES);
	parser->action = actions[action].name;
	*rule = (struct shunt_fault_rule) { .action = action, .what = SHUNT_FAULT_ANY, .lane = SHUNT_FAULT_ANY,
					    .odds = 1ull << 32, .ns = actions[action].ns };
	while (!result && pair.end < item.end) {
		pair.at = pair.end + 1;
		for (pair.end = pair.at; pair.end < item.end && *pair.end != ','; pair.end++)
			;
		result = parse_pair(parser, rule, pair);
	}
	parser->plan->count++;
	return result;
}

int shunt_fault_parse(const char *text, struct shunt_fault_plan *plan, char *error, size_t bytes)
{
	static const struct key seed = { "seed", 0, UINT64_MAX >> 4, 1, false };
	struct parser parser = { .plan = plan, .error = error, .bytes = bytes };
	int result = 0;

	memset(plan, 0, sizeof(*plan));
	plan->seed = 1;
	while (*text && !result) {
		struct shunt_word item = word_take(&text, ";");

		parser.item++;
		parser.action = NULL;
		if (item.end - item.at > 5 && !memcmp(item.at, "seed=", 5))
			result = number((struct shunt_word) { item.at + 5, item.end }, &seed,
					&plan->seed) ?
					 0 :
					 wrong(&parser, "the seed is not a number up to %llu",
					       (unsigned long long)seed.most);
		else
			result = parse_rule(&parser, item);
	}
	return result;
}
