/* SPDX-License-Identifier: MIT */
/* The keys of a class. */
#include <string.h>
#include "core/qos/rules_words.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define KEYS "user, program, host, port, declared, limit or reserve"

static bool host(struct shunt_word word, struct shunt_qos_class *class)
{
	return shunt_word_network(word, &class->host);
}

static bool user(struct shunt_word word, struct shunt_qos_class *class)
{
	return shunt_word_user(word, class->user, sizeof(class->user), &class->uid);
}

static bool program(struct shunt_word word, struct shunt_qos_class *class)
{
	return shunt_word_program(word, class->program, sizeof(class->program));
}

static bool port(struct shunt_word word, struct shunt_qos_class *class)
{
	uint64_t n;

	if (!shunt_word_number(word, 65535, &n) || !n)
		return false;
	class->port = (uint16_t)n;
	return true;
}

static bool declared(struct shunt_word word, struct shunt_qos_class *class)
{
	return shunt_word_name(word, class->declared, sizeof(class->declared));
}

static bool limit(struct shunt_word word, struct shunt_qos_class *class)
{
	class->limit = 0;
	return shunt_word_is(word, "none") || shunt_word_rate(word, &class->limit);
}

static bool reserve(struct shunt_word word, struct shunt_qos_class *class)
{
	class->reserve = class->reserve_share = 0;
	if (shunt_word_share(word, &class->reserve_share))
		return class->reserve_share != 0;
	return shunt_word_is(word, "none") || shunt_word_rate(word, &class->reserve);
}

enum { /* beside SHUNT_QOS_BY_: the key has come */
       LIMIT = 0x40000000,
       RESERVE = 0x20000000,
};

static const struct key {
	const char *name;
	uint32_t by;
	bool (*set)(struct shunt_word word, struct shunt_qos_class *class);
	const char *allowed;
} keys[] = {
	{ "user", SHUNT_QOS_BY_USER, user, "a name of up to 32 characters, or a number" },
	{ "program", SHUNT_QOS_BY_PROGRAM, program,
	  "the name of an executable, without its folder, of up to 63 characters" },
	{ "host", SHUNT_QOS_BY_HOST, host,
	  "an address, or a network ADDRESS/BITS with no bit of the address beyond those" },
	{ "port", SHUNT_QOS_BY_PORT, port, "a number from 1 to 65535" },
	{ "declared", SHUNT_QOS_BY_DECLARED, declared, SHUNT_RULES_NAME },
	{ "limit", LIMIT, limit, "none, or " SHUNT_RULES_RATE },
	{ "reserve", RESERVE, reserve, "none, 0.1% to 100%, or " SHUNT_RULES_RATE },
};

static int class_set(struct shunt_rules_parser *parser, struct shunt_qos_class *class,
		     struct shunt_word pair)
{
	const char *equals = memchr(pair.at, '=', shunt_word_length(pair));
	struct shunt_word key = { pair.at, equals ? equals : pair.end },
			  value = { equals ? equals + 1 : pair.end, pair.end };
	char text[32];

	shunt_word_show(key, text);
	for (size_t i = 0; equals && i < COUNT(keys); i++) {
		if (!shunt_word_is(key, keys[i].name))
			continue;
		if (class->by & keys[i].by)
			return shunt_rules_wrong(parser, pair.at, "'%s' comes twice, and may once",
						 text);
		class->by |= keys[i].by;
		if (keys[i].by == RESERVE)
			parser->reserve_at[parser->rules->count] = value.at;
		return keys[i].set(value, class) ? 0 :
						   shunt_rules_wrong(parser, value.at, "%s is %s",
								     keys[i].name, keys[i].allowed);
	}
	return shunt_rules_wrong(parser, pair.at, "'%s' is not KEY=VALUE with the key %s", text,
				 KEYS);
}

int shunt_rules_class(struct shunt_rules_parser *parser, const char **text)
{
	struct shunt_qos_rules *rules = parser->rules;
	struct shunt_qos_class *class = &rules->classes[rules->count];
	struct shunt_word word = shunt_word_next(text);
	int result = 0;

	if (rules->count == SHUNT_QOS_CLASSES)
		return shunt_rules_wrong(parser, word.at, "more than %d classes",
					 SHUNT_QOS_CLASSES);
	memset(class, 0, sizeof(*class));
	if (!shunt_word_name(word, class->name, sizeof(class->name)))
		return shunt_rules_wrong(parser, word.at, "a class has " SHUNT_RULES_NAME);
	for (uint32_t i = 0; i < rules->count; i++)
		if (!strcmp(rules->classes[i].name, class->name))
			return shunt_rules_wrong(parser, word.at, "the class '%s' is there already",
						 class->name);
	for (word = shunt_word_next(text); !result && word.at != word.end;
	     word = shunt_word_next(text))
		result = class_set(parser, class, word);
	class->by &= ~(uint32_t)(LIMIT | RESERVE);
	rules->count++;
	return result;
}
