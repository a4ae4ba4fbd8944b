/* SPDX-License-Identifier: MIT */
/* shunt advise: the rule of the verdict, and figures in the output of known programs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "tools/advise/advise.h"

static void test_below_rounds_nothing_is_told(void **state)
{
	static const double ratios[] = { 5, 5, 5, 5 };

	(void)state;
	for (int i = 0; i < 5; i++)
		assert_int_equal(advise_judge(ratios, i, 5), ADVISE_MORE);
}

static void test_clear_pairs_are_enough(void **state)
{
	static const double up[] = { 5, 4, 6, 1.11, 5 }, down[] = { 0.5, 0.9, 0.4, 0.6, 0.7 };

	(void)state;
	assert_int_equal(advise_judge(up, 5, 5), ADVISE_FASTER);
	assert_int_equal(advise_judge(down, 5, 5), ADVISE_SLOWER);
}

static void test_two_against_three_is_no_difference(void **state)
{
	static const double ratios[] = { 1.5, 0.8, 1.4, 0.7, 1.6 }, equal[] = { 1, 1, 1, 1, 1 };

	(void)state;
	assert_int_equal(advise_judge(ratios, 5, 5), ADVISE_SAME);
	assert_int_equal(advise_judge(equal, 5, 5), ADVISE_SAME);
}

static void test_unclear_pairs_take_as_many_again(void **state)
{
	static const double near[] = { 1.05, 1.04, 1.06, 1.05, 1.03, 1.04, 1.05, 1.06, 0.99, 1.04 };
	static const double against[] = {
		1.05, 1.04, 1.06, 1.05, 1.03, 1.04, 0.98, 1.06, 0.99, 1.04
	};
	static const double tiny[] = { 1.01, 1.01, 1.01, 1.01, 1.01, 1.01, 1.01, 1.01, 1.01, 1.01 };
	static const double slower[] = {
		0.95, 0.94, 0.96, 0.95, 0.97, 0.94, 0.95, 0.96, 1.01, 0.94
	};

	(void)state;
	assert_int_equal(advise_judge(near, 5, 5), ADVISE_MORE);
	assert_int_equal(advise_judge(near, 9, 5), ADVISE_MORE);
	assert_int_equal(advise_judge(near, 10, 5), ADVISE_FASTER);
	assert_int_equal(advise_judge(slower, 10, 5), ADVISE_SLOWER);
	assert_int_equal(advise_judge(tiny, 10, 5), ADVISE_SAME);
	/* The second that disagrees is the ninth: their ranks are 1 and 2, and the tenth cannot help. */
	assert_int_equal(advise_judge(against, 8, 5), ADVISE_MORE);
	assert_int_equal(advise_judge(against, 9, 5), ADVISE_SAME);
}

/* Two equal ways, with runs that spread by 20 %: a thousand verdicts, of which few are wrong. */
static void test_equal_ways_seldom_differ(void **state)
{
	int wrong = 0;

	(void)state;
	srand48(7);
	for (int trial = 0; trial < 1000; trial++) {
		enum advise_verdict verdict = ADVISE_MORE;
		double ratios[10];
		int count = 0;

		while (verdict == ADVISE_MORE) {
			assert_true(count < 10);
			ratios[count++] = (0.9 + 0.2 * drand48()) / (0.9 + 0.2 * drand48());
			verdict = advise_judge(ratios, count, 5);
		}
		wrong += verdict != ADVISE_SAME;
	}
	assert_true(wrong < 20);
}

static void reads(const char *command, const char *text, double wanted)
{
	char *argv[] = { (char *)command, NULL };
	const struct advise_metric *rows;
	size_t count = advise_metric_find(argv, &rows);
	double figure = 0;

	assert_true(count > 0);
	assert_int_equal(advise_metric_read(rows, count, text, &figure), 0);
	if (fabs(figure - wanted) > wanted / 1e6)
		fail_msg("%s: %f, not %f", command, figure, wanted);
}

static void test_known_programs(void **state)
{
	(void)state;
	reads("redis-benchmark",
	      " GET: rps=0.0 (overall: -nan)\rGET: 357142.84 requests per second, p50=0.071 msec\n",
	      357142.84);
	reads("/usr/bin/redis-benchmark",
	      "SET: 100 requests per second\nGET: 400 requests per second\n", 200);
	reads("redis-benchmark", "\"test\",\"rps\"\n\"GET\",\"2500.00\",\"0.1\"\n", 2500);
	reads("wrk", "Running 1s test\nRequests/sec:  21042.57\nTransfer/sec:     17.20MB\n",
	      21042.57);
	reads("ab", "Requests per second:    1234.56 [#/sec] (mean)\n", 1234.56);
	reads("pgbench",
	      "latency average = 0.5 ms\ntps = 7423.5 (without initial connection time)\n", 7423.5);
	reads("iperf3",
	      "[  5] 0.00-1.00 sec 1.2 GBytes 25.5 Gbits/sec 0 sender\n[  5] 0.00-1.00 sec 1.1 GBytes 24.5 Gbits/sec receiver\n",
	      24.5e9);
	reads("iperf3",
	      "[  5] 1 sec 1 GBytes 2.5 Gbits/sec receiver\n[SUM] 1 sec 1 GBytes 5.0 Gbits/sec receiver\n",
	      5e9);
	reads("iperf3",
	      "{\"sum_sent\":{\"bits_per_second\": 1},\n\"sum_received\":{\n\t\"start\":\t0,\n\"bits_per_second\":\t3.5e+10}}",
	      3.5e10);
	reads("memaslap", "cmd_get: 1\nRun time: 1.0s Ops: 5 TPS: 45123 Net_rate: 1M/s\n", 45123);
	reads("memcslap", "\tThreads connecting to servers 1\n\tTook 1.25 seconds to load data\n",
	      1.25);
}

static void test_wrapped_and_unknown(void **state)
{
	static char *wrapped[] = { "taskset", "-c", "0", "/usr/bin/wrk", "url", NULL };
	static char *unknown[] = { "rsync", "wrk", NULL };
	const struct advise_metric *rows;

	(void)state;
	assert_int_equal(advise_metric_find(wrapped, &rows), 1);
	assert_int_equal(advise_metric_find(unknown, &rows), 0);
}

static void test_no_figure(void **state)
{
	static const struct advise_metric own = { "", "took ([0-9]+)", "figure", false, true };
	double figure = 7;
	char why[SHUNT_WHY_MAX];

	(void)state;
	assert_int_equal(advise_metric_read(&own, 1, "", &figure), -1);
	assert_int_equal(advise_metric_read(&own, 1, "took none", &figure), -1);
	assert_int_equal(advise_metric_read(&own, 1, "took 0", &figure), -1);
	assert_true(figure > 6.9);
	assert_int_equal(advise_metric_read(&own, 1, "it took 12 s", &figure), 0);
	assert_true(fabs(figure - 12) < 1e-6);
	assert_null(advise_metric_check("a(b)", why));
	assert_non_null(advise_metric_check("a(b", why));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_below_rounds_nothing_is_told),
		cmocka_unit_test(test_clear_pairs_are_enough),
		cmocka_unit_test(test_two_against_three_is_no_difference),
		cmocka_unit_test(test_unclear_pairs_take_as_many_again),
		cmocka_unit_test(test_equal_ways_seldom_differ),
		cmocka_unit_test(test_known_programs),
		cmocka_unit_test(test_wrapped_and_unknown),
		cmocka_unit_test(test_no_figure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
