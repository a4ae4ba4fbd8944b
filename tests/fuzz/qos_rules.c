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
	fuzz_check(class->host_bits <= 128 && class->by < 32);
	fuzz_check(!class->limit ||
		   (class->limit >= SHUNT_RATE_MIN && class->limit <= SHUNT_RATE_MAX));
	fuzz_check(strlen(shunt_qos_rate_text(class->limit, text, sizeof(text))) < sizeof(text));
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
		fuzz_check(shunt_qos_match(&rules, &client) <= SHUNT_QOS_NO_CLASS);
	}
	free(text);
	return 0;
}
