/* SPDX-License-Identifier: MIT */
/* The text of rules of connections. Input: a connection of 0 to 100 bytes (its length first), and the text. */
#include "core/base/rule.h"
#include "tests/fuzz/fuzz.h"

static void check_ports(const struct shunt_rule *rule, uint32_t by,
			const struct shunt_rule_ports *ports)
{
	fuzz_check(rule->by & by ? ports->from && ports->from <= ports->to : !ports->to);
}

static void check_rule(const struct shunt_rule *rule)
{
	fuzz_check(rule->by < 256 && rule->trace <= 17 && rule->action <= SHUNT_RULE_MOCK);
	fuzz_check(memchr(rule->program, 0, sizeof(rule->program)) &&
		   memchr(rule->user, 0, sizeof(rule->user)));
	fuzz_check(!(rule->by & SHUNT_RULE_TRACES) == !rule->trace);
	fuzz_check(!(rule->by & SHUNT_RULE_BY_PROGRAM) == !*rule->program);
	fuzz_check(rule->peer.bits <= 128 && rule->local.bits <= 128);
	check_ports(rule, SHUNT_RULE_BY_PORT, &rule->port);
	check_ports(rule, SHUNT_RULE_BY_LPORT, &rule->lport);
	check_ports(rule, SHUNT_RULE_BY_PPORT, &rule->pport);
}

/* The text of rules is parsed to the same rules. */
static void check_text(const struct shunt_rule_list *list)
{
	char said[SHUNT_RULE_TEXT];
	struct shunt_rule_list again;

	shunt_rule_text(list, said);
	fuzz_check(!shunt_rule_parse(said, "said", &again, NULL, 0));
	fuzz_check(!memcmp(list, &again, sizeof(again)));
}

/* One printable line. */
static void check_error(const char *error)
{
	fuzz_check(*error);
	for (; *error; error++)
		fuzz_check(*error >= ' ' && *error <= '~');
}

static void find(const struct shunt_rule_list *list, const uint8_t *data, size_t size)
{
	uint8_t bytes[104] = { 0 };
	struct shunt_rule_facts facts = {
		.peer = bytes, .local = bytes + 16, .command = (char *)bytes + 36, .program = ""
	};
	const struct shunt_rule *rule;

	memcpy(bytes, data, size);
	memcpy(&facts.peer_port, bytes + 32, 2);
	memcpy(&facts.local_port, bytes + 34, 2);
	rule = shunt_rule_find(list, &facts);
	fuzz_check(!rule || (rule >= list->rules && rule < list->rules + list->count));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t skip = size ? data[0] % 101u + 1 : 0;
	char error[SHUNT_RULE_ERROR] = "", *text;
	struct shunt_rule_list list;

	skip = skip < size ? skip : size;
	text = malloc(size - skip + 1);
	fuzz_check(text);
	memcpy(text, data + skip, size - skip);
	text[size - skip] = 0;
	if (shunt_rule_parse(text, "rules", &list, error, sizeof(error))) {
		check_error(error);
	} else {
		fuzz_check(!*error && list.count <= SHUNT_RULE_MOST);
		for (uint32_t i = 0; i < list.count; i++)
			check_rule(&list.rules[i]);
		check_text(&list);
		find(&list, data + (skip > 0), skip > 0 ? skip - 1 : 0);
	}
	free(text);
	return 0;
}
