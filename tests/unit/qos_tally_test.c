/* SPDX-License-Identifier: MIT */
/* The report of a node's tokens: the ring of periods, and texts that always have room. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "core/base/answer.h"
#include "core/qos/tally.h"

static struct shunt_qos_node node;
static struct shunt_qos_rules rules;

static void parse(const char *text)
{
	assert_int_equal(shunt_qos_parse(text, "rules", &rules, NULL, 0), 0);
	memset(&node, 0, sizeof(node));
}

static void end_period(uint64_t number)
{
	node.period = number;
	node.capacity = 1000 + number;
	shunt_tally_ended(&node)->taken[0] = number;
}

static void test_ring(void **state)
{
	(void)state;
	parse("");
	assert_null(shunt_tally_period(&node, 0));
	end_period(1);
	end_period(2);
	assert_int_equal(shunt_tally_period(&node, 0)->number, 2);
	assert_int_equal(shunt_tally_period(&node, 0)->capacity, 1002);
	assert_int_equal(shunt_tally_period(&node, 1)->taken[0], 1);
	assert_null(shunt_tally_period(&node, 2));
	for (uint64_t number = 3; number <= 200; number++)
		end_period(number);
	for (uint32_t n = 0; n < SHUNT_TALLY_PERIODS; n++)
		assert_int_equal(shunt_tally_period(&node, n)->number, 200 - n);
	assert_null(shunt_tally_period(&node, SHUNT_TALLY_PERIODS));
}

/* The largest numbers have room. */
static void test_room(void **state)
{
	struct shunt_qos_period period;
	struct shunt_qos_tally tally;
	char text[SHUNT_TALLY_ROOM];

	(void)state;
	parse("class a");
	memset(&tally, 0xff, sizeof(tally));
	memset(&period, 0xff, sizeof(period));
	memset(&rules.classes[0], 0xff, sizeof(rules.classes[0]));
	shunt_tally_class_json(&rules.classes[0], &tally, text);
	assert_string_equal(text + strlen(text) - strlen("\"refused\":4294967295,"),
			    "\"refused\":4294967295,");
	shunt_tally_period_json(&period, SHUNT_QOS_CLASSES, text);
	assert_string_equal(text + strlen(text) - strlen("18446744073709551615]]}"),
			    "18446744073709551615]]}");
	memset(&node, 0xff, sizeof(node));
	node.monitor = SHUNT_QOS_MONITOR_PROCESSOR;
	shunt_tally_node_json(&rules, &node, text);
	assert_string_equal(text + strlen(text) - strlen("\"period\":18446744073709551615,"),
			    "\"period\":18446744073709551615,");
	assert_non_null(strstr(text, "\"monitor\":\"processor\""));
}

static void test_shown(void **state)
{
	struct shunt_qos_tally tally = { .granted = 100, .taken = 90, .periods = 9, .missed = 1 };
	struct shunt_answer answer = { 0 };

	(void)state;
	parse("capacity 10Kops; class db reserve=60%; class rest");
	shunt_tally_node_show(&rules, &node, &answer);
	assert_non_null(strstr(answer.text, "capacity fixed: not known yet; monitor none"));
	shunt_tally_class_show(&rules.classes[1], &(struct shunt_qos_tally) { 0 }, &answer);
	assert_null(strstr(answer.text, "missed"));
	tally.unused_in_a_row = SHUNT_TALLY_ALERT - 1;
	shunt_tally_class_show(&rules.classes[0], &tally, &answer);
	assert_non_null(strstr(answer.text, "missed in 1 of 9 periods"));
	assert_null(strstr(answer.text, "less would do"));
	tally.unused_in_a_row++;
	shunt_tally_class_show(&rules.classes[0], &tally, &answer);
	assert_non_null(strstr(answer.text, "for 8 periods: less would do"));
	end_period(7);
	shunt_tally_periods_show(&rules, &node, &answer);
	assert_non_null(strstr(answer.text, "     7      1007  7/0  0/0\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ring),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
