/* SPDX-License-Identifier: MIT */
/* The rules of QoS: their text, each complaint, and which class a client matches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "core/qos/rules.h"
#include "core/qos/tokens.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct shunt_qos_rules rules;

static void good(const char *text)
{
	char error[SHUNT_QOS_ERROR] = "";

	if (shunt_qos_parse(text, "rules", &rules, error, sizeof(error)))
		fail_msg("'%s': %s", text, error);
}

static void test_rates(void **state)
{
	static const struct {
		const char *text;
		uint64_t rate;
	} rates[] = {
		{ "2Gbit", 61035156 },	  { "1Gbit", 30517578 },
		{ "0.001Mbit", 30 },	  { "2.5Gbit", 76293945 },
		{ "1000Mbit", 30517578 }, { "1Kops", 1000000 },
		{ "0.5Mops", 500000000 }, { "none", 0 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rates); i++) {
		char text[64];

		snprintf(text, sizeof(text), "class a limit=%s", rates[i].text);
		good(text);
		assert_int_equal(rules.classes[0].limit, rates[i].rate);
	}
	assert_string_equal(shunt_qos_rate_text(61035156, (char[32]) { 0 }, 32), "2Gbit");
	assert_string_equal(shunt_qos_rate_text(0, (char[32]) { 0 }, 32), "none");
}

static void test_statements(void **state)
{
	(void)state;
	good("");
	assert_int_equal(rules.count, 0);
	assert_int_equal(rules.period_ms, 1000);
	good("# nothing\n\n ;; period 500ms # half\nclass a;class b user=7 program=redis-server host=10.0.0.0/8 "
	     "port=6379 declared=x-1 limit=1Gbit\r\nclass c host=fe80::/10 user=backup");
	assert_int_equal(rules.count, 3);
	assert_int_equal(rules.period_ms, 500);
	assert_int_equal(rules.classes[0].by, 0);
	assert_int_equal(rules.classes[1].by, SHUNT_QOS_BY_USER | SHUNT_QOS_BY_PROGRAM |
						      SHUNT_QOS_BY_HOST | SHUNT_QOS_BY_PORT |
						      SHUNT_QOS_BY_DECLARED);
	assert_int_equal(rules.classes[1].uid, 7);
	assert_string_equal(rules.classes[1].program, "redis-server");
	assert_int_equal(rules.classes[1].host.bits, 104);
	assert_int_equal(rules.classes[1].port, 6379);
	assert_string_equal(rules.classes[1].declared, "x-1");
	assert_int_equal(rules.classes[2].host.bits, 10);
	assert_string_equal(rules.classes[2].user, "backup");
}

static void test_capacity(void **state)
{
	static const struct {
		const char *text;
		enum shunt_qos_capacity kind;
		uint64_t capacity;
		uint32_t sigma;
		uint64_t local;
	} table[] = {
		{ "", SHUNT_QOS_CAPACITY_NONE, 0, 0, 0 },
		{ "capacity 10Gbit", SHUNT_QOS_CAPACITY_FIXED, 305175781, 0, 0 },
		{ "capacity 100Kops local=50Kops", SHUNT_QOS_CAPACITY_FIXED, 100000000, 0,
		  50000000 },
		{ "capacity auto", SHUNT_QOS_CAPACITY_AUTO, 0, 0, 0 },
		{ "capacity auto local=50Kops", SHUNT_QOS_CAPACITY_AUTO, 0, 0, 50000000 },
		{ "capacity auto 10Gbit", SHUNT_QOS_CAPACITY_AUTO_FROM, 305175781, 50, 0 },
		{ "capacity auto 10Gbit 2.5%", SHUNT_QOS_CAPACITY_AUTO_FROM, 305175781, 25, 0 },
		{ "capacity auto 10Gbit 0%", SHUNT_QOS_CAPACITY_AUTO_FROM, 305175781, 0, 0 },
		{ "capacity auto 10Gbit 33% local=1Kops", SHUNT_QOS_CAPACITY_AUTO_FROM, 305175781,
		  330, 1000000 },
		{ "capacity auto 10Gbit local=1Kops", SHUNT_QOS_CAPACITY_AUTO_FROM, 305175781, 50,
		  1000000 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		good(table[i].text);
		assert_int_equal(rules.capacity_kind, table[i].kind);
		assert_int_equal(rules.capacity, table[i].capacity);
		assert_int_equal(rules.sigma, table[i].sigma);
		assert_int_equal(rules.local, table[i].local);
		assert_int_equal(rules.batch, 1000);
	}
	good("batch 8");
	assert_int_equal(rules.batch, 8);
	/* A shorter period makes room, wherever it is said. */
	good("capacity 9000Gbit; period 500ms");
}

static void test_reserves(void **state)
{
	(void)state;
	/* The capacity may come last. */
	good("class a reserve=60%; class b reserve=12.5% limit=10Gbit; class c reserve=1Gbit;"
	     "class d reserve=none; class e; capacity 10Gbit");
	assert_int_equal(rules.classes[0].reserve_share, 600);
	assert_int_equal(rules.classes[0].reserve, 0);
	assert_int_equal(rules.classes[0].by, 0);
	assert_int_equal(rules.classes[1].reserve_share, 125);
	assert_int_equal(rules.classes[2].reserve_share, 0);
	assert_int_equal(rules.classes[2].reserve, 30517578);
	assert_int_equal(shunt_qos_reserved(&rules.classes[0], 1000), 600);
	assert_int_equal(shunt_qos_reserved(&rules.classes[1], 1000), 125);
	assert_int_equal(shunt_qos_reserved(&rules.classes[2], 1000), 30517578);
	assert_int_equal(shunt_qos_reserved(&rules.classes[3], 1000), 0);
	assert_int_equal(shunt_qos_reserved(&rules.classes[4], 1000), 0);
	good("class a reserve=none");
	good("capacity auto; class a reserve=100%");
	good("capacity 10Gbit; class a limit=1Gbit reserve=10%");
	/* Admission refuses what does not fit. */
	good("capacity 10Gbit; class a reserve=8Gbit; class b reserve=8Gbit");
	/* Of a capacity that is measured, a share is not known yet. */
	good("capacity auto 10Gbit; class a limit=1Gbit reserve=20%");
}

static void test_tokens(void **state)
{
	(void)state;
	assert_int_equal(shunt_qos_tokens(0, 1000), 0);
	assert_int_equal(shunt_qos_tokens(999, 1000), 0);
	assert_int_equal(shunt_qos_tokens(1000, 1000), 1);
	assert_int_equal(shunt_qos_tokens(1999, 1000), 1);
	assert_int_equal(shunt_qos_tokens(30517578, 100), 3051);
	assert_int_equal(shunt_qos_tokens(SHUNT_RATE_MAX, 10000), 10000000000);
	assert_int_equal(shunt_qos_tokens(UINT64_MAX, 1000), UINT64_MAX / 1000);
}

/* The rules' text makes the same rules. */
static void same(const char *text)
{
	struct shunt_qos_rules before;
	char said[SHUNT_QOS_TEXT];

	good(text);
	before = rules;
	shunt_qos_text(&before, said);
	good(said);
	if (memcmp(&before, &rules, sizeof(rules)))
		fail_msg("'%s' is said as '%s'", text, said);
}

static void test_text(void **state)
{
	static const char *const numbers[] = { "1",	"0.001",   "0.999", "2.5",
					       "10.01", "333.333", "999.9", "12345.678" };
	static const char *const names[] = { "Mbit", "Gbit", "Kops", "Mops" };
	char text[SHUNT_QOS_TEXT];

	(void)state;
	same("");
	same("period 500ms; batch 8; capacity auto 10Gbit 2.5% local=50Kops;"
	     "class a user=backup reserve=60%; class b user=7 program=x+1 reserve=1Kops limit=none");
	same("capacity auto; class a host=0.0.0.0/0; class b host=::/0; class c host=10.0.0.0/8;"
	     "class d host=fe80::/10 declared=x-1 port=1; class e host=::1 reserve=0.1%");
	same("capacity 10Gbit; class a host=127.0.0.1");
	for (size_t i = 0; i < COUNT(numbers); i++)
		for (size_t j = 0; j < COUNT(names); j++) {
			if (j == 3 && i == 7) /* a rate that is too high */
				continue;
			snprintf(text, sizeof(text), "class a limit=%s%s", numbers[i], names[j]);
			same(text);
		}
	assert_string_equal(shunt_qos_exact_text(1000000, text, 32), "1Kops");
	assert_string_equal(shunt_qos_exact_text(76293945, text, 32), "2.5Gbit");
	/* The longest there are. */
	snprintf(text, sizeof(text), "capacity 1.001Gbit local=1.001Gbit;");
	for (int i = 0; i < SHUNT_QOS_CLASSES; i++)
		snprintf(
			text + strlen(text), sizeof(text) - strlen(text),
			"class %031d user=x%031d program=%063d host=1111:2222:3333:4444:5555:6666:7777:8888 "
			"port=65535 declared=%031d limit=30000.123Gbit reserve=1.001Gbit;",
			i, i, i, i);
	same(text);
}

static void test_errors(void **state)
{
	static const struct {
		const char *text, *error; /* how it begins */
	} errors[] = {
		{ "klass a",
		  "rules:1:1: 'klass' is no statement: class, period, capacity or batch is allowed" },
		{ "class a\n  class", "rules:2:8: a class has a name of up to 31 letters" },
		{ "class a limit=2Gbit;class a", "rules:1:27: the class 'a' is there already" },
		{ "class a limt=2Gbit",
		  "rules:1:9: 'limt' is not KEY=VALUE with the key user, program, host, port, declared, limit or reserve" },
		{ "class a limit", "rules:1:9: 'limit' is not KEY=VALUE" },
		{ "class a limit=2Gb",
		  "rules:1:15: limit is none, or a number up to 1000000 with at most three decimals, and Mbit" },
		{ "class a limit=0Gbit", "rules:1:15: limit is" },
		{ "class a limit=1.2345Gbit", "rules:1:15: limit is" },
		{ "class a limit=.5Gbit", "rules:1:15: limit is" },
		{ "class a limit=1.Gbit", "rules:1:15: limit is" },
		{ "class a limit=1000000Gbit", "rules:1:15: limit is" },
		{ "class a limit=1Gbit limit=none", "rules:1:21: 'limit' comes twice" },
		{ "class a reserve=60%", "rules:1:17: to reserve needs a capacity" },
		{ "capacity fast", "rules:1:10: a capacity is RATE, auto, or auto RATE" },
		{ "capacity", "rules:1:9: a capacity is" },
		{ "capacity 0Gbit", "rules:1:10: a capacity is" },
		{ "capacity auto 10Gbit 34%", "rules:1:22: a capacity is" },
		{ "capacity auto 5%", "rules:1:15: a capacity is" },
		{ "capacity auto 10Gbit lokal=1Gbit", "rules:1:22: a capacity is" },
		{ "capacity 10Gbit local=none", "rules:1:17: a capacity is" },
		{ "capacity 10Gbit 5%", "rules:1:17: a capacity is" },
		{ "capacity 10Gbit local=1Gbit 5%", "rules:1:29: '5%' is too much" },
		{ "capacity 1Gbit\ncapacity auto", "rules:2:10: a capacity comes twice" },
		{ "capacity 9000Gbit; period 1s",
		  "rules:1:10: a capacity is 274658203 tokens in a period of 1000 ms: 1 to 268435455 are allowed" },
		{ "capacity auto 1000Gbit; period 10s",
		  "rules:1:10: a capacity is 305175781 tokens" },
		{ "capacity 0.001Mbit", "rules:1:10: a capacity is 0 tokens" },
		{ "capacity auto; class a reserve=9000Gbit",
		  "rules:1:32: a reserve is 274658203 tokens" },
		{ "capacity 1Kops; period 100ms; class a reserve=0.5%",
		  "rules:1:47: a reserve is 0" },
		{ "capacity auto; class a reserve=0%",
		  "rules:1:32: reserve is none, 0.1% to 100%, or a number" },
		{ "capacity auto; class a reserve=100.1%", "rules:1:32: reserve is" },
		{ "capacity auto; class a reserve=1.25%", "rules:1:32: reserve is" },
		{ "capacity auto; class a reserve=50", "rules:1:32: reserve is" },
		{ "capacity auto; class a reserve=%", "rules:1:32: reserve is" },
		{ "capacity auto; class a reserve=5% reserve=5%", "rules:1:35: 'reserve' comes" },
		{ "capacity auto; class a reserve=2Gbit limit=1Gbit",
		  "rules:1:32: class a reserves more than its limit" },
		{ "capacity 10Gbit; class a limit=1Gbit reserve=10.1%",
		  "rules:1:46: class a reserves more than its limit" },
		{ "class a reserve=60%; class b reserve=40.1%; capacity auto",
		  "rules:1:38: the classes reserve 100.1% up to here" },
		{ "batch 0", "rules:1:7: a batch is 1 to 1000 tokens" },
		{ "batch 1001", "rules:1:7: a batch is" },
		{ "batch", "rules:1:6: a batch is" },
		{ "batch 1; batch 1", "rules:1:16: a batch comes twice" },
		{ "class a port=0", "rules:1:14: port is a number from 1 to 65535" },
		{ "class a port=65536", "rules:1:14: port is" },
		{ "class a host=10.0.0.1/8", "rules:1:14: host is an address" },
		{ "class a host=10.0.0.0/33", "rules:1:14: host is" },
		{ "class a host=ten", "rules:1:14: host is" },
		{ "class a user=7up", "rules:1:14: user is" },
		{ "class a user=4294967295", "rules:1:14: user is" },
		{ "class a program=/bin/sh", "rules:1:17: program is" },
		{ "class a declared=a/b", "rules:1:18: declared is" },
		{ "period 1", "rules:1:8: a period is 100ms to 10s" },
		{ "period 99ms", "rules:1:8: a period is" },
		{ "period 11s", "rules:1:8: a period is" },
		{ "period 1s 2s", "rules:1:11: '2s' is too much" },
		{ "\x01\xff", "rules:1:1: '\?\?' is no statement" },
	};
	char error[SHUNT_QOS_ERROR];

	(void)state;
	for (size_t i = 0; i < COUNT(errors); i++) {
		assert_int_equal(
			shunt_qos_parse(errors[i].text, "rules", &rules, error, sizeof(error)),
			-EINVAL);
		if (strncmp(error, errors[i].error, strlen(errors[i].error)))
			fail_msg("'%s': '%s' is not '%s'", errors[i].text, error, errors[i].error);
	}
	assert_int_equal(shunt_qos_parse("x", "rules", &rules, NULL, 0), -EINVAL);
}

static void test_too_many(void **state)
{
	char text[1024] = "", error[SHUNT_QOS_ERROR];

	(void)state;
	for (int i = 0; i < SHUNT_QOS_CLASSES; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "class c%d;", i);
	good(text);
	strcat(text, "class more");
	assert_int_equal(shunt_qos_parse(text, "rules", &rules, error, sizeof(error)), -EINVAL);
	assert_non_null(strstr(error, "more than 16 classes"));
}

static struct shunt_qos_client client_of(const char *address, uint16_t port)
{
	struct shunt_qos_client client = { .has_user = true,
					   .uid = 1000,
					   .command = "redis-server",
					   .program = "redis-check-rdb",
					   .port = port };

	if (inet_pton(AF_INET6, address, client.host) == 1)
		return client;
	client.host[10] = client.host[11] = 0xff;
	assert_int_equal(inet_pton(AF_INET, address, client.host + 12), 1);
	return client;
}

/* Each of these alone decides. */
static void test_match(void **state)
{
	static const struct {
		const char *text;
		bool matches;
	} table[] = {
		{ "class a", true },
		{ "class a user=1000", true },
		{ "class a user=1001", false },
		{ "class a user=backup", false },
		{ "class a program=redis-server", true },
		{ "class a program=redis-check-rdb", true },
		{ "class a program=redis", false },
		{ "class a host=10.1.2.3", true },
		{ "class a host=10.1.2.4", false },
		{ "class a host=10.1.0.0/16", true },
		{ "class a host=10.2.0.0/16", false },
		{ "class a host=10.1.2.2/31", true },
		{ "class a host=0.0.0.0/0", true },
		{ "class a host=::/0", true },
		{ "class a host=fe80::/10", false },
		{ "class a port=6379", true },
		{ "class a port=6380", false },
		{ "class a declared=gold", false },
		{ "class a port=6379 user=1", false },
	};
	struct shunt_qos_client client = client_of("10.1.2.3", 6379);

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		good(table[i].text);
		if ((shunt_qos_match(&rules, &client) == 0) != table[i].matches)
			fail_msg("'%s'", table[i].text);
	}
	good("class a declared=gold");
	strcpy(client.declared, "gold");
	assert_int_equal(shunt_qos_match(&rules, &client), 0);
	/* The first that matches. */
	good("class a port=1; class b; class c");
	assert_int_equal(shunt_qos_match(&rules, &client), 1);
	good("class a port=1");
	assert_int_equal(shunt_qos_match(&rules, &client), SHUNT_QOS_NO_CLASS);
	/* Of another host, the user is not known. */
	client.has_user = false;
	good("class a user=1000");
	assert_int_equal(shunt_qos_match(&rules, &client), SHUNT_QOS_NO_CLASS);
}

static void test_names(void **state)
{
	char name[SHUNT_QOS_NAME] = "gold";

	(void)state;
	assert_true(shunt_qos_name_is_sound(name));
	name[10] = 'x'; /* behind its end */
	assert_false(shunt_qos_name_is_sound(name));
	memset(name, 'a', sizeof(name));
	assert_false(shunt_qos_name_is_sound(name));
	name[31] = 0;
	assert_true(shunt_qos_name_is_sound(name));
	name[3] = '"';
	assert_false(shunt_qos_name_is_sound(name));
	memset(name, 0, sizeof(name));
	assert_false(shunt_qos_name_is_sound(name));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rates),	 cmocka_unit_test(test_statements),
		cmocka_unit_test(test_errors),	 cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_match),	 cmocka_unit_test(test_names),
		cmocka_unit_test(test_capacity), cmocka_unit_test(test_reserves),
		cmocka_unit_test(test_tokens),	 cmocka_unit_test(test_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
