/* SPDX-License-Identifier: MIT */
/* The language of SHUNT_FAULT, and when a rule strikes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include "core/base/fault_rules.h"
#include "core/engine.h"

static struct shunt_fault_plan plan;

static void good(const char *text)
{
	char error[128] = "";

	if (shunt_fault_parse(text, &plan, error, sizeof(error)))
		fail_msg("%s: %s", text, error);
}

static void bad(const char *text, const char *expected)
{
	char error[128] = "";

	assert_int_equal(shunt_fault_parse(text, &plan, error, sizeof(error)), -EINVAL);
	assert_string_equal(error, expected);
	assert_int_equal(shunt_fault_parse(text, &plan, NULL, 0), -EINVAL);
}

static void test_rules(void **state)
{
	(void)state;
	good("");
	assert_int_equal(plan.count, 0);
	good("kill");
	assert_int_equal(plan.count, 1);
	assert_int_equal(plan.rules[0].action, SHUNT_FAULT_KILL);
	assert_int_equal(plan.rules[0].odds, 1ull << 32);
	assert_int_equal(plan.rules[0].lane, SHUNT_FAULT_ANY);
	good("delay:p=0.25,us=1500;seed=77;corrupt:what=word,bytes=64K,count=3,lane=2;deny:what=fd,nth=12;stall;freeze:ms=7");
	assert_int_equal(plan.count, 5);
	assert_int_equal(plan.seed, 77);
	assert_int_equal(plan.rules[0].odds, 1ull << 30);
	assert_int_equal(plan.rules[0].ns, 1500000);
	assert_int_equal(plan.rules[1].what, SHUNT_CORRUPT_WORD);
	assert_int_equal(plan.rules[1].bytes, 65536);
	assert_int_equal(plan.rules[1].count, 3);
	assert_int_equal(plan.rules[1].lane, 2);
	assert_int_equal(plan.rules[2].what, SHUNT_DENY_FD);
	assert_int_equal(plan.rules[2].nth, 12);
	assert_int_equal(plan.rules[3].ns, 0);
	assert_int_equal(plan.rules[4].ns, 7000000);
	good("deny:what=any;drop:p=1;post:p=0.000000001");
	assert_int_equal(plan.rules[0].what, SHUNT_FAULT_ANY);
	assert_int_equal(plan.rules[1].odds, 1ull << 32);
	assert_int_equal(plan.rules[2].odds, 4);
	good("kill;kill;kill;kill;kill;kill;kill;kill");
}

static void test_errors(void **state)
{
	(void)state;
	bad("explode", "rule 1: there is no action 'explode'");
	bad("kill;explode:p=1", "rule 2: there is no action 'explode'");
	bad(";kill", "rule 1: there is no action ''");
	bad("kill:", "rule 1 (kill): '' is not KEY=VALUE");
	bad("kill:p=1,", "rule 1 (kill): '' is not KEY=VALUE");
	bad("kill:often", "rule 1 (kill): 'often' is not KEY=VALUE");
	bad("kill:q=1", "rule 1 (kill): there is no key 'q'");
	bad("kill:us=1", "rule 1 (kill): it takes no 'us'");
	bad("refuse:bytes=1", "rule 1 (refuse): it takes no 'bytes'");
	bad("drop:what=any", "rule 1 (drop): it takes no 'what'");
	bad("kill:p=1.5", "rule 1 (kill): p is not a number from 0 to 1");
	bad("kill:p=", "rule 1 (kill): p is not a number from 0 to 1");
	bad("kill:p=.", "rule 1 (kill): p is not a number from 0 to 1");
	bad("kill:p=0.1.2", "rule 1 (kill): p is not a number from 0 to 1");
	bad("kill:p=-1", "rule 1 (kill): p is not a number from 0 to 1");
	bad("kill:nth=1K", "rule 1 (kill): nth is not a number up to 4294967295");
	bad("kill:nth=4294967296", "rule 1 (kill): nth is not a number up to 4294967295");
	bad("kill:bytes=K", "rule 1 (kill): bytes is not a number up to 1125899906842624");
	bad("kill:bytes=99999999999G", "rule 1 (kill): bytes is not a number up to 1125899906842624");
	bad("deny:what=love",
	    "rule 1 (deny): the key what is not one of malloc|map|fd|mr|thread|any");
	bad("kill;seed=x", "rule 2: the seed is not a number up to 1152921504606846975");
	bad("kill;kill;kill;kill;kill;kill;kill;kill;kill", "rule 9: more than 8 rules");
}

static uint32_t strikes(struct shunt_fault *fault, uint32_t action, uint32_t turns, uint64_t *last)
{
	uint32_t count = 0;
	uint64_t ns;

	for (uint32_t i = 1; i <= turns; i++) {
		if (shunt_fault_strikes(fault, action, SHUNT_FAULT_ANY, NULL, &ns)) {
			*last = i;
			count++;
		}
	}
	return count;
}

static void test_strikes(void **state)
{
	struct shunt_fault fault = { .plan = NULL };
	uint64_t last = 0, again = 0;
	uint32_t count;

	(void)state;
	good("refuse:nth=5;freeze:count=3;stall:p=0.01;seed=3");
	assert_int_equal(strikes(&fault, SHUNT_FAULT_REFUSE, 10, &last), 0);
	atomic_store(&fault.plan, &plan);
	assert_int_equal(strikes(&fault, SHUNT_FAULT_REFUSE, 10, &last), 1);
	assert_int_equal(last, 5);
	assert_int_equal(strikes(&fault, SHUNT_FAULT_FREEZE, 10, &last), 3);
	assert_int_equal(last, 3);
	assert_int_equal(strikes(&fault, SHUNT_FAULT_KILL, 10, &last), 0);
	count = strikes(&fault, SHUNT_FAULT_STALL, 100000, &last);
	assert_in_range(count, 900, 1100);
	/* the same seed, the same turns */
	good("refuse:nth=5;freeze:count=3;stall:p=0.01;seed=3");
	assert_int_equal(strikes(&fault, SHUNT_FAULT_STALL, 100000, &again), count);
	assert_int_equal(again, last);
	good("refuse:nth=5;freeze:count=3;stall:p=0.01;seed=4");
	assert_int_not_equal(strikes(&fault, SHUNT_FAULT_STALL, 100000, &again), count);
}

static void test_memory(void **state)
{
	(void)state;
	assert_false(shunt_fault_denies(SHUNT_DENY_MALLOC));
	shunt_fault_set_memory("kill;deny:what=fd,nth=2");
	assert_false(shunt_fault_denies(SHUNT_DENY_MALLOC));
	assert_false(shunt_fault_denies(SHUNT_DENY_FD));
	assert_true(shunt_fault_denies(SHUNT_DENY_FD));
	assert_int_equal(errno, EMFILE);
	assert_false(shunt_fault_denies(SHUNT_DENY_FD));
	shunt_fault_set_memory("deny");
	assert_true(shunt_fault_denies(SHUNT_DENY_THREAD));
	assert_int_equal(errno, EAGAIN);
	shunt_fault_set_memory("kill");
	assert_null(atomic_load(&shunt_fault_memory));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_strikes),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
