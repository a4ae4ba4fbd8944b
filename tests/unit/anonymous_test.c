/* SPDX-License-Identifier: MIT */
/* Addresses become names, the same address the same name, and nothing else changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "tools/report/anonymous.h"

static void check(struct shunt_anonymous *names, const char *text, const char *wanted)
{
	size_t bytes;
	char *made = shunt_anonymous_text(names, text, strlen(text), &bytes);

	assert_string_equal(made, wanted);
	assert_int_equal(bytes, strlen(wanted));
	free(made);
}

static void test_addresses_have_names(void **state)
{
	struct shunt_anonymous names = { 0 };

	(void)state;
	check(&names, "10.0.0.1:80", "host1:80");
	check(&names, "\"local\":\"10.0.0.2:5001\",\"peer\":\"10.0.0.1:80\"",
	      "\"local\":\"host2:5001\",\"peer\":\"host1:80\"");
	check(&names, "[2001:db8::7]:443 and 2001:DB8:0:0::7.", "[host3]:443 and host3.");
	check(&names, "10.0.0.1:80: said 10.0.0.2.", "host1:80: said host2.");
	check(&names, "fe80::1%eth0, fe80::1: x", "host4%eth0, host4: x");
	check(&names, "link/ether 52:54:00:12:34:56 and 52:54:00:12:34:57, 52:54:00:12:34:56",
	      "link/ether mac1 and mac2, mac1");
	shunt_anonymous_free(&names);
}

/* One host in all the ways in which it is written. */
static void test_writings_of_one_address(void **state)
{
	struct shunt_anonymous names = { 0 };

	(void)state;
	check(&names, "0000:0000:0000:0000:0000:ffff:0a00:0001", "host1");
	check(&names, "::ffff:10.0.0.1 10.0.0.1 ::ffff:a00:1", "host1 host1 host1");
	check(&names, "a\\n10.0.0.1\\tfe80::9", "a\\nhost1\\thost2");
	check(&names, "\\u000a10.0.0.1", "\\u000ahost1");
	shunt_anonymous_free(&names);
}

static void test_other_texts_stay(void **state)
{
	static const char *const texts[] = { "",
					     "127.0.0.1:5000 [::1]:80 0.0.0.0:0 [::]:7",
					     "20:14:10 6.18.44 1.2.3 version 0.1.0",
					     "0000:00:1f.0 deadbeef.cafe: abc::def::",
					     "999.1.1.1 300.300.300.300",
					     "{\"a\":1,\"b\":[2,3]}" };
	struct shunt_anonymous names = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		check(&names, texts[i], texts[i]);
	assert_int_equal(names.host_count, 0);
	shunt_anonymous_free(&names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses_have_names),
		cmocka_unit_test(test_writings_of_one_address),
		cmocka_unit_test(test_other_texts_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
