/* SPDX-License-Identifier: MIT */
#include "core/base/rule.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define KEYS "program, user, peer, local, port, lport, pport or trace"
#define ACTIONS "link, tcp or mock"

struct parser {
	const char *source, *text; /* all of it */
	char *error; /* NULL: nobody reads it */
	size_t bytes;
};

__attribute__((format(printf, 3, 4))) static int wrong(const struct parser *parser, const char *at,
						       const char *format, ...)
{
	unsigned int line = 1, column = 1;
	int length = 0;
	va_list args;

	if (!parser->error || !parser->bytes)
		return -EINVAL;
	for (const char *c = parser->text; c < at; c++) {
		column = *c == '\n' ? 1 : column + 1;
		line += *c == '\n';
	}
	if (parser->source)
		length = snprintf(parser->error, parser->bytes, "%.128s:%u:%u: ", parser->source,
				  line, column);
	va_start(args, format);
	if (length >= 0 && (size_t)length < parser->bytes)
		vsnprintf(parser->error + length, parser->bytes - (size_t)length, format, args);
	va_end(args);
	return -EINVAL;
}

/* --- words --- */

static bool program(struct shunt_word word, struct shunt_rule *rule)
{
	return shunt_word_program(word, rule->program, sizeof(rule->program));
}

static bool user(struct shunt_word word, struct shunt_rule *rule)
{
	return shunt_word_user(word, rule->user, sizeof(rule->user), &rule->uid);
}

static bool peer(struct shunt_word word, struct shunt_rule *rule)
{
	return shunt_word_network(word, &rule->peer);
}

static bool local(struct shunt_word word, struct shunt_rule *rule)
{
	return shunt_word_network(word, &rule->local);
}

/* "80", "8000-8999" */
static bool parse_ports(struct shunt_word word, struct shunt_rule_ports *ports)
{
	const char *dash = memchr(word.at, '-', shunt_word_length(word));
	uint64_t from, to;

	if (!shunt_word_number((struct shunt_word) { word.at, dash ? dash : word.end }, 65535,
			       &from) ||
	    !from)
		return false;
	to = from;
	if (dash && !shunt_word_number((struct shunt_word) { dash + 1, word.end }, 65535, &to))
		return false;
	*ports = (struct shunt_rule_ports) { (uint16_t)from, (uint16_t)to };
	return from <= to;
}

static bool port(struct shunt_word word, struct shunt_rule *rule)
{
	return parse_ports(word, &rule->port);
}

static bool lport(struct shunt_word word, struct shunt_rule *rule)
{
	return parse_ports(word, &rule->lport);
}

static bool pport(struct shunt_word word, struct shunt_rule *rule)
{
	return parse_ports(word, &rule->pport);
}

static bool trace(struct shunt_word word, struct shunt_rule *rule)
{
	uint64_t k;

	if (!shunt_word_number(word, 16, &k))
		return false;
	rule->trace = (uint8_t)(k + 1);
	return true;
}

#define NETWORK "an address, or a network ADDRESS/BITS with no bit of the address beyond those"
#define PORTS "a port from 1 to 65535, or FIRST-LAST"

static const struct key {
	const char *name;
	uint32_t by;
	bool (*set)(struct shunt_word word, struct shunt_rule *rule);
	const char *allowed;
} keys[] = {
	{ "program", SHUNT_RULE_BY_PROGRAM, program,
	  "the name of an executable, without its folder, of up to 63 characters" },
	{ "user", SHUNT_RULE_BY_USER, user, "a name of up to 32 characters, or a number" },
	{ "peer", SHUNT_RULE_BY_PEER, peer, NETWORK },
	{ "local", SHUNT_RULE_BY_LOCAL, local, NETWORK },
	{ "port", SHUNT_RULE_BY_PORT, port, PORTS },
	{ "lport", SHUNT_RULE_BY_LPORT, lport, PORTS },
	{ "pport", SHUNT_RULE_BY_PPORT, pport, PORTS },
	{ "trace", SHUNT_RULE_TRACES, trace, "a number from 0 to 16" },
};

static const char *const actions[] = { "link", "tcp", "mock" };

const char *shunt_rule_action_text(enum shunt_rule_action action)
{
	return actions[action];
}

/* --- a rule --- */

static int parse_pair(const struct parser *parser, struct shunt_rule *rule, struct shunt_word pair)
{
	const char *equals = memchr(pair.at, '=', shunt_word_length(pair));
	struct shunt_word key = { pair.at, equals ? equals : pair.end },
			  value = { equals ? equals + 1 : pair.end, pair.end };
	char text[32];

	for (size_t i = 0; i < COUNT(keys); i++) {
		if (!shunt_word_is(key, keys[i].name))
			continue;
		if (rule->by & keys[i].by)
			return wrong(parser, pair.at, "'%s' comes twice, and may once",
				     keys[i].name);
		rule->by |= keys[i].by;
		shunt_word_show(value, text);
		return keys[i].set(value, rule) ? 0 :
						  wrong(parser, value.at, "'%s': %s is %s", text,
							keys[i].name, keys[i].allowed);
	}
	shunt_word_show(key, text);
	return wrong(parser, pair.at, "'%s' is not KEY=VALUE with the key " KEYS, text);
}

static bool is_action(struct shunt_word word, struct shunt_rule *rule)
{
	for (size_t i = 0; i < COUNT(actions); i++)
		if (shunt_word_is(word, actions[i])) {
			rule->action = (enum shunt_rule_action)i;
			return true;
		}
	return false;
}

/* Behind "rule", which may be left out. */
static int parse_rule(const struct parser *parser, struct shunt_rule *rule, struct shunt_word word,
		      const char **text)
{
	bool acts = false;
	char shown[32];

	memset(rule, 0, sizeof(*rule));
	for (; word.at != word.end; word = shunt_word_next(text)) {
		bool action = !memchr(word.at, '=', shunt_word_length(word));

		shunt_word_show(word, shown);
		if (action && acts)
			return wrong(parser, word.at, "'%s': a rule has one action", shown);
		if (action && !is_action(word, rule))
			return wrong(parser, word.at,
				     "'%s' is no action, which is " ACTIONS ", nor KEY=VALUE",
				     shown);
		if (!action && parse_pair(parser, rule, word))
			return -EINVAL;
		acts = acts || action;
	}
	if (acts && rule->trace && rule->action == SHUNT_RULE_TCP)
		return wrong(parser, word.at,
			     "trace is about sends on a link, and tcp leaves none");
	return acts ? 0 : wrong(parser, word.at, "a rule has an action, which is " ACTIONS);
}

static int parse_statement(const struct parser *parser, struct shunt_rule_list *list,
			   const char **text)
{
	struct shunt_word word = shunt_word_next(text);
	bool named = shunt_word_is(word, "rule");

	if (word.at == word.end)
		return 0;
	if (list->count == SHUNT_RULE_MOST)
		return wrong(parser, word.at, "more than %d rules", SHUNT_RULE_MOST);
	return parse_rule(parser, &list->rules[list->count++],
			  named ? shunt_word_next(text) : word, text);
}

int shunt_rule_parse(const char *text, const char *source, struct shunt_rule_list *list,
		     char *error, size_t bytes)
{
	struct parser parser = { .source = source, .text = text, .error = error, .bytes = bytes };
	int result = 0;

	memset(list, 0, sizeof(*list));
	if (strnlen(text, SHUNT_RULE_BYTES + 1) > SHUNT_RULE_BYTES)
		return wrong(&parser, text, "more than %d bytes", SHUNT_RULE_BYTES);
	while (!result && *text) {
		result = parse_statement(&parser, list, &text);
		if (*text == '#')
			text += strcspn(text, "\n");
		text += *text == '\n' || *text == ';';
	}
	return result;
}

/* --- a connection --- */

/* The last star takes as little as it can, and one character more each time that the rest does not fit. */
static bool fits(const char *pattern, const char *name)
{
	const char *star = NULL, *rest = NULL;

	if (!*name)
		return false; /* it is not known */
	while (*name) {
		if (*pattern == '*') {
			star = ++pattern;
			rest = name;
		} else if (*pattern == '?' || *pattern == *name) {
			pattern++;
			name++;
		} else if (star) {
			pattern = star;
			name = ++rest;
		} else {
			return false;
		}
	}
	pattern += strspn(pattern, "*");
	return !*pattern;
}

static bool has(const struct shunt_rule_ports *ports, uint16_t number)
{
	return number >= ports->from && number <= ports->to;
}

static bool meets(const struct shunt_rule *rule, const struct shunt_rule_facts *facts)
{
	if (rule->by & SHUNT_RULE_BY_PROGRAM && !fits(rule->program, facts->command) &&
	    !fits(rule->program, facts->program))
		return false;
	if (rule->by & SHUNT_RULE_BY_USER && (rule->user[0] || rule->uid != facts->uid))
		return false;
	if (rule->by & SHUNT_RULE_BY_PEER && !shunt_network_has(&rule->peer, facts->peer))
		return false;
	if (rule->by & SHUNT_RULE_BY_LOCAL && !shunt_network_has(&rule->local, facts->local))
		return false;
	if (rule->by & SHUNT_RULE_BY_PORT && !has(&rule->port, facts->local_port) &&
	    !has(&rule->port, facts->peer_port))
		return false;
	if (rule->by & SHUNT_RULE_BY_LPORT && !has(&rule->lport, facts->local_port))
		return false;
	return !(rule->by & SHUNT_RULE_BY_PPORT) || has(&rule->pport, facts->peer_port);
}

const struct shunt_rule *shunt_rule_find(const struct shunt_rule_list *list,
					 const struct shunt_rule_facts *facts)
{
	for (uint32_t i = 0; i < list->count; i++)
		if (meets(&list->rules[i], facts))
			return &list->rules[i];
	return NULL;
}
