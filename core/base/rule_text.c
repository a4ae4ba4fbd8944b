/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "core/base/rule.h"

struct text {
	char *to;
	size_t length, room;
};

__attribute__((format(printf, 2, 3))) static void put(struct text *text, const char *format, ...)
{
	va_list args;
	int wanted;

	va_start(args, format);
	wanted = vsnprintf(text->to + text->length, text->room - text->length, format, args);
	va_end(args);
	if (wanted < 0 || (size_t)wanted >= text->room - text->length)
		text->length = text->room - 1;
	else
		text->length += (size_t)wanted;
}

static void put_network(struct text *text, const char *key, const struct shunt_network *network)
{
	char shown[SHUNT_NETWORK_TEXT];

	put(text, " %s=%s", key, shunt_network_text(network, shown, sizeof(shown)));
}

static void put_ports(struct text *text, const char *key, const struct shunt_rule_ports *ports)
{
	put(text, " %s=%u", key, ports->from);
	if (ports->to != ports->from)
		put(text, "-%u", ports->to);
}

static void put_rule(struct text *text, const struct shunt_rule *rule)
{
	put(text, "rule");
	if (rule->by & SHUNT_RULE_BY_PROGRAM)
		put(text, " program=%s", rule->program);
	if (rule->by & SHUNT_RULE_BY_USER && rule->user[0])
		put(text, " user=%s", rule->user);
	else if (rule->by & SHUNT_RULE_BY_USER)
		put(text, " user=%u", rule->uid);
	if (rule->by & SHUNT_RULE_BY_PEER)
		put_network(text, "peer", &rule->peer);
	if (rule->by & SHUNT_RULE_BY_LOCAL)
		put_network(text, "local", &rule->local);
	if (rule->by & SHUNT_RULE_BY_PORT)
		put_ports(text, "port", &rule->port);
	if (rule->by & SHUNT_RULE_BY_LPORT)
		put_ports(text, "lport", &rule->lport);
	if (rule->by & SHUNT_RULE_BY_PPORT)
		put_ports(text, "pport", &rule->pport);
	if (rule->trace)
		put(text, " trace=%u", rule->trace - 1);
	put(text, " %s\n", shunt_rule_action_text(rule->action));
}

void shunt_rule_text(const struct shunt_rule_list *list, char said[SHUNT_RULE_TEXT])
{
	struct text text = { .to = said, .room = SHUNT_RULE_TEXT };

	*said = 0;
	for (uint32_t i = 0; i < list->count; i++)
		put_rule(&text, &list->rules[i]);
}
