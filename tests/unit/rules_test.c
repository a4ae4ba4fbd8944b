/* SPDX-License-Identifier: MIT */
/* Rules of connections: their text, each complaint, and which rule a connection meets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "core/base/rule.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct shunt_rule_list list;

static void good(const char *text)
{
	char error[SHUNT_RULE_ERROR] = "";

	if (shunt_rule_parse(text, "rules", &list, error, sizeof(error)))
		fail_msg("'%s': %s", text, error);
}

static void bad(const char *text, const char *complaint)
{
	char error[SHUNT_RULE_ERROR] = "";

	assert_int_equal(shunt_rule_parse(text, "r", &list, error, sizeof(error)), -EINVAL);
	if (strncmp(error, complaint, strlen(complaint)) != 0)
		fail_msg("'%s': %s, not %s", text, error, complaint);
	for (const char *c = error; *c; c++)
		assert_true(*c >= ' ' && *c <= '~');
	assert_int_equal(shunt_rule_parse(text, "r", &list, NULL, 0), -EINVAL);
	assert_int_equal(shunt_rule_parse(text, NULL, &list, error, sizeof(error)), -EINVAL);
	assert_null(strstr(error, "r:1"));
}

static void test_good(void **state)
{
	char said[SHUNT_RULE_TEXT];
	struct shunt_rule_list again;

	(void)state;
	good("");
	assert_int_equal(list.count, 0);
	good("# none\n ;;\r\n");
	assert_int_equal(list.count, 0);
	good("rule program=redis-* user=7 peer=10.0.0.0/8 local=::1 port=80-90 lport=1 pport=65535 trace=6 mock # x\n"
	     "tcp port=22; link");
	assert_int_equal(list.count, 3);
	assert_int_equal(list.rules[0].action, SHUNT_RULE_MOCK);
	assert_int_equal(list.rules[0].by, 255);
	assert_int_equal(list.rules[0].trace, 7);
	assert_int_equal(list.rules[0].uid, 7);
	assert_int_equal(list.rules[0].peer.bits, 104);
	assert_int_equal(list.rules[0].port.to, 90);
	assert_int_equal(list.rules[1].action, SHUNT_RULE_TCP);
	assert_int_equal(list.rules[2].by, 0);
	shunt_rule_text(&list, said);
	assert_int_equal(shunt_rule_parse(said, "said", &again, NULL, 0), 0);
	assert_memory_equal(&again, &list, sizeof(list));
}

static void test_bad(void **state)
{
	static const struct {
		const char *text, *complaint;
	} cases[] = {
		{ "rule", "r:1:5: a rule has an action" },
		{ "port=1", "r:1:7: a rule has an action" },
		{ "tcp\n\n port=1 drop", "r:3:9: 'drop' is no action" },
		{ "tcp link", "r:1:5: 'link': a rule has one action" },
		{ "port=1 port=2 tcp", "r:1:8: 'port' comes twice" },
		{ "=1 tcp", "r:1:1: '' is not KEY=VALUE" },
		{ "ports=1 tcp", "r:1:1: 'ports' is not KEY=VALUE" },
		{ "port=0 tcp", "r:1:6: '0': port is" },
		{ "port=65536 tcp", "r:1:6: '65536': port is" },
		{ "port=9-8 tcp", "r:1:6: '9-8': port is" },
		{ "port=9- tcp", "r:1:6: '9-': port is" },
		{ "lport=-9 tcp", "r:1:7: '-9': lport is" },
		{ "pport= tcp", "r:1:7: '': pport is" },
		{ "trace=17 link", "r:1:7: '17': trace is a number from 0 to 16" },
		{ "trace=0 tcp", "r:1:12: trace is about sends on a link" },
		{ "peer=10.0.0.1/8 tcp", "r:1:6: '10.0.0.1/8': peer is" },
		{ "local=host tcp", "r:1:7: 'host': local is" },
		{ "user= tcp", "r:1:6: '': user is" },
		{ "user=4294967295 tcp", "r:1:6: '4294967295': user is" },
		{ "program=/bin/sh tcp", "r:1:9: '/bin/sh': program is" },
		{ "program=\x1b[1m tcp", "r:1:9: '?[1m': program is" },
		{ "rule rule tcp", "r:1:6: 'rule' is no action" },
	};
	char many[33 * 4 + 1] = "";

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		bad(cases[i].text, cases[i].complaint);
	for (size_t i = 0; i < 33; i++)
		strcat(many, "tcp;");
	bad(many, "r:1:129: more than 32 rules");
	many[32 * 4] = 0;
	good(many);
}

static void test_long(void **state)
{
	static char text[SHUNT_RULE_BYTES + 2];

	(void)state;
	memset(text, ' ', SHUNT_RULE_BYTES);
	good(text);
	text[SHUNT_RULE_BYTES] = ' ';
	bad(text, "r:1:1: more than 16384 bytes");
}

static void test_room(void **state)
{
	static char text[SHUNT_RULE_BYTES], said[SHUNT_RULE_TEXT];
	static struct shunt_rule_list again;
	size_t length = 0;

	(void)state;
	for (int i = 0; i < SHUNT_RULE_MOST; i++)
		length += (size_t)snprintf(
			text + length, sizeof(text) - length,
			"program=%063d user=%032d peer=1111:2222:3333:4444:5555:6666:7777:8888 "
			"local=1111:2222:3333:4444:5555:6666:7777:8888 port=60000-60001 lport=60000-60001 "
			"pport=60000-60001 trace=16 mock\n", 1, 1);
	for (char *c = text; (c = strstr(c, "user=0")) != NULL; c++)
		c[5] = 'u';
	good(text);
	shunt_rule_text(&list, said);
	assert_int_equal(shunt_rule_parse(said, "said", &again, NULL, 0), 0);
	assert_memory_equal(&again, &list, sizeof(list));
}

/* 10.1.2.3:50000 is the peer of 127.0.0.1:6379. */
static int find(const char *text, const char *command)
{
	uint8_t peer[16] = { [10] = 0xff, [11] = 0xff, 10, 1, 2, 3 };
	uint8_t local[16] = { [10] = 0xff, [11] = 0xff, 127, 0, 0, 1 };
	const struct shunt_rule_facts facts = { .uid = 1000,
						.command = command,
						.program = "redis-server",
						.peer = peer,
						.local = local,
						.peer_port = 50000,
						.local_port = 6379 };
	const struct shunt_rule *rule;

	good(text);
	rule = shunt_rule_find(&list, &facts);
	return rule ? (int)(rule - list.rules) : -1;
}

static void test_find(void **state)
{
	static const struct {
		const char *text;
		int found;
	} cases[] = {
		{ "", -1 },
		{ "tcp", 0 },
		{ "port=1 tcp; tcp", 1 },
		{ "port=6379 tcp", 0 },
		{ "port=50000 tcp", 0 },
		{ "port=6000-6379 tcp", 0 },
		{ "port=6380-49999 tcp", -1 },
		{ "lport=6379 tcp", 0 },
		{ "lport=50000 tcp", -1 },
		{ "pport=50000 tcp", 0 },
		{ "pport=6379 tcp", -1 },
		{ "peer=10.0.0.0/8 tcp", 0 },
		{ "peer=10.1.2.2/31 tcp", 0 },
		{ "peer=10.1.2.4/31 tcp", -1 },
		{ "peer=127.0.0.1 tcp", -1 },
		{ "local=127.0.0.1 tcp", 0 },
		{ "local=::/0 tcp", 0 },
		{ "user=1000 tcp", 0 },
		{ "user=1001 tcp", -1 },
		{ "user=nobody-has-looked tcp", -1 },
		{ "program=redis-server tcp", 0 },
		{ "program=main tcp", 0 },
		{ "program=redis tcp", -1 },
		{ "program=redis* tcp", 0 },
		{ "program=*server tcp", 0 },
		{ "program=*s*r*r tcp", 0 },
		{ "program=*x tcp", -1 },
		{ "program=r?dis-server tcp", 0 },
		{ "program=redis-server? tcp", -1 },
		{ "program=* tcp", 0 },
		{ "program=redis-server port=1 tcp; program=redis-server port=6379 link; tcp", 1 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		if (find(cases[i].text, "main") != cases[i].found)
			fail_msg("'%s': %d", cases[i].text, find(cases[i].text, "main"));
	assert_int_equal(find("program=main tcp", ""), -1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good), cmocka_unit_test(test_bad),
		cmocka_unit_test(test_long), cmocka_unit_test(test_room),
		cmocka_unit_test(test_find),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
