/* SPDX-License-Identifier: MIT */
/* Says rules of connections again, as a text that is parsed to the same. */
#include <string.h>
#include "core/base/rule.h"
#include "core/base/text.h"

static void put_network(struct shunt_text *text, const char *key,
			const struct shunt_network *network)
{
	char shown[SHUNT_NETWORK_TEXT];

	shunt_text_put(text, " %s=%s", key, shunt_network_text(network, shown, sizeof(shown)));
}

static void put_ports(struct shunt_text *text, const char *key,
		      const struct shunt_rule_ports *ports)
{
	shunt_text_put(text, " %s=%u", key, ports->from);
	if (ports->to != ports->from)
		shunt_text_put(text, "-%u", ports->to);
}

static void put_rule(struct shunt_text *text, const struct shunt_rule *rule)
{
	shunt_text_put(text, "rule");
	if (rule->by & SHUNT_RULE_BY_PROGRAM)
		shunt_text_put(text, " program=%s", rule->program);
	if (rule->by & SHUNT_RULE_BY_USER && rule->user[0])
		shunt_text_put(text, " user=%s", rule->user);
	else if (rule->by & SHUNT_RULE_BY_USER)
		shunt_text_put(text, " user=%u", rule->uid);
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
		shunt_text_put(text, " trace=%u", rule->trace - 1);
	shunt_text_put(text, " %s\n", shunt_rule_action_text(rule->action));
}

void shunt_rule_text(const struct shunt_rule_list *list, char said[SHUNT_RULE_TEXT])
{
	struct shunt_text text;

	shunt_text_begin(&text, said, SHUNT_RULE_TEXT);
	for (uint32_t i = 0; i < list->count; i++)
		put_rule(&text, &list->rules[i]);
}
