/* SPDX-License-Identifier: MIT */
/* The text of rules. Input: a client of 0 to 100 bytes (its length first), and the text. */
#include "core/qos/rules.h"
#include "core/qos/tokens.h"
#include "tests/fuzz/fuzz.h"

static void check_class(const struct shunt_qos_class *class)
{
	char text[32];

	fuzz_check(shunt_qos_name_is_sound(class->name));
	fuzz_check(memchr(class->user, 0, sizeof(class->user)) &&
		   memchr(class->program, 0, sizeof(class->program)));
	fuzz_check(!(class->by & SHUNT_QOS_BY_DECLARED) ||
		   shunt_qos_name_is_sound(class->declared));
	fuzz_check(!(class->by & SHUNT_QOS_BY_PORT) || class->port);
	fuzz_check(class->host.bits <= 128 && class->by < 32);
	fuzz_check(!class->limit ||
		   (class->limit >= SHUNT_RATE_MIN && class->limit <= SHUNT_RATE_MAX));
	fuzz_check(!class->reserve ||
		   (class->reserve >= SHUNT_RATE_MIN && class->reserve <= SHUNT_RATE_MAX));
	fuzz_check(class->reserve_share <= 1000 && !(class->reserve && class->reserve_share));
	fuzz_check(!class->limit || class->reserve <= class->limit);
	fuzz_check(strlen(shunt_qos_rate_text(class->limit, text, sizeof(text))) < sizeof(text));
}

/* A reservation has a capacity, and both fit into a word. */
static void check_capacity(const struct shunt_qos_rules *rules)
{
	uint32_t shares = 0;

	fuzz_check(rules->batch >= 1 && rules->batch <= SHUNT_QOS_BATCH);
	fuzz_check(!rules->capacity == (rules->capacity_kind == SHUNT_QOS_CAPACITY_NONE ||
					rules->capacity_kind == SHUNT_QOS_CAPACITY_AUTO));
	fuzz_check(rules->capacity_kind != SHUNT_QOS_CAPACITY_NONE || !rules->local);
	fuzz_check(!rules->sigma || rules->capacity_kind == SHUNT_QOS_CAPACITY_AUTO_FROM);
	fuzz_check(rules->sigma * 3 < 1000);
	fuzz_check(shunt_qos_tokens(rules->capacity, rules->period_ms) < SHUNT_QOS_TOKENS_END);
	for (uint32_t i = 0; i < rules->count; i++) {
		uint64_t reserved = shunt_qos_reserved(&rules->classes[i], rules->capacity);

		shares += rules->classes[i].reserve_share;
		fuzz_check(!rules->classes[i].reserve ||
			   rules->capacity_kind != SHUNT_QOS_CAPACITY_NONE);
		fuzz_check(shunt_qos_tokens(reserved, rules->period_ms) < SHUNT_QOS_TOKENS_END);
	}
	fuzz_check(shares <= 1000 && (!shares || rules->capacity_kind != SHUNT_QOS_CAPACITY_NONE));
}

/* The rules' text makes the same rules. */
static void check_text(const struct shunt_qos_rules *rules)
{
	char said[SHUNT_QOS_TEXT];
	struct shunt_qos_rules again;

	shunt_qos_text(rules, said);
	fuzz_check(!shunt_qos_parse(said, "said", &again, NULL, 0));
	fuzz_check(!memcmp(rules, &again, sizeof(again)));
}

/* One printable line. */
static void check_error(const char *error)
{
	fuzz_check(*error);
	for (; *error; error++)
		fuzz_check(*error >= ' ' && *error <= '~');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct shunt_qos_client client = { .has_user = true };
	size_t skip = size ? data[0] % 101u + 1 : 0;
	char error[SHUNT_QOS_ERROR] = "", *text;
	struct shunt_qos_rules rules;

	skip = skip < size ? skip : size;
	if (skip > 1)
		memcpy(client.command, data + 1,
		       skip - 1 < sizeof(client.command) - 1 ? skip - 1 :
							       sizeof(client.command) - 1);
	if (skip > 16)
		memcpy(client.host, data + 1, sizeof(client.host));
	text = malloc(size - skip + 1);
	fuzz_check(text);
	memcpy(text, data + skip, size - skip);
	text[size - skip] = 0;
	if (shunt_qos_parse(text, "rules", &rules, error, sizeof(error))) {
		check_error(error);
	} else {
		fuzz_check(!*error && rules.count <= SHUNT_QOS_CLASSES && rules.period_ms >= 100 &&
			   rules.period_ms <= 10000);
		for (uint32_t i = 0; i < rules.count; i++)
			check_class(&rules.classes[i]);
		check_capacity(&rules);
		check_text(&rules);
		fuzz_check(shunt_qos_match(&rules, &client) <= SHUNT_QOS_NO_CLASS);
	}
	free(text);
	return 0;
}
