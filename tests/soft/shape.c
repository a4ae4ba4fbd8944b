/* SPDX-License-Identifier: MIT */
/* The shapes of RDMAbox's figures, with the preset's numbers (RB-E1, RB-E7, RB-E5; XR-E5). */
#include "tests/soft/iops.h"
#include "tests/soft/rig.h"

enum { THREADS = 12 };

static void sweep(struct iops_load load, struct iops_result result[THREADS + 1])
{
	for (load.threads = 1; load.threads <= THREADS; load.threads++)
		result[load.threads] = iops_run(&load);
}

static uint32_t peak_of(const struct iops_result result[THREADS + 1])
{
	uint32_t peak = 1;

	for (uint32_t n = 2; n <= THREADS; n++)
		if (result[n].per_second > result[peak].per_second)
			peak = n;
	return peak;
}

static void RB_E1_more_threads_are_worse_than_four(void **state)
{
	struct iops_result open[THREADS + 1];
	uint32_t peak;

	(void)state;
	sweep(IOPS_LOAD, open);
	peak = peak_of(open);
	assert_in_range(peak, 3, 5);
	for (uint32_t n = 2; n <= peak; n++)
		assert_true(open[n].per_second > open[n - 1].per_second);
	for (uint32_t n = peak + 1; n <= THREADS; n++) {
		assert_true(open[n].per_second < open[n - 1].per_second);
		assert_true(open[n].wr_max > open[n - 1].wr_max);
		assert_true(open[n].mean_ns > open[n - 1].mean_ns);
	}
	assert_true(open[THREADS].per_second * 10 < open[peak].per_second * 9);
}

/* Without the cache there is nothing to overrun: a plateau (RB-E1). */
static void RB_E1_without_the_cache_a_plateau(void **state)
{
	struct iops_result open[THREADS + 1];
	struct iops_load load = IOPS_LOAD;

	(void)state;
	load.model = "connectx3,cache=0";
	sweep(load, open);
	assert_true(open[THREADS].per_second * 100 >= open[peak_of(open)].per_second * 99);
}

/* The window is what was outstanding at the peak: the paper's two steps (RB-E7). */
static void RB_E7_the_window_keeps_the_peak(void **state)
{
	struct iops_result open[THREADS + 1], kept[THREADS + 1];
	struct iops_load load = IOPS_LOAD;
	uint32_t peak;

	(void)state;
	sweep(load, open);
	peak = peak_of(open);
	load.window = open[peak].bytes_max;
	sweep(load, kept);
	for (uint32_t n = peak; n <= THREADS; n++) {
		assert_true(kept[n].per_second * 100 >= open[peak].per_second * 97);
		assert_true(kept[n].bytes_max <= load.window);
	}
	assert_int_equal(kept[THREADS].misses, 0);
}

/* One QP has its peak where its unit is busy, four where the device is: later, and higher (RB-21, RB-E7). */
static void RB_E7_four_qps_peak_later_than_one(void **state)
{
	struct iops_result one[THREADS + 1], four[THREADS + 1], kept[THREADS + 1];
	struct iops_load load = IOPS_LOAD;
	uint32_t peak;

	(void)state;
	load.model = IOPS_UNITS;
	load.think = IOPS_UNITS_THINK;
	sweep(load, one);
	assert_int_equal(peak_of(one), 4);
	load.qps = 4;
	sweep(load, four);
	peak = peak_of(four);
	assert_int_equal(peak, 7);
	assert_true(four[peak].per_second * 10 > one[4].per_second * 16);
	for (uint32_t n = peak + 1; n <= THREADS; n++)
		assert_true(four[n].per_second < four[n - 1].per_second);
	load.window = four[peak].bytes_max;
	sweep(load, kept);
	for (uint32_t n = peak; n <= THREADS; n++)
		assert_true(kept[n].per_second * 100 >= four[peak].per_second * 97);
}

/* The engine's aimd finds a window by itself that keeps the peak (RB-E7, RB-15). */
static void RB_E7_aimd_keeps_the_peak(void **state)
{
	struct iops_result open[THREADS + 1], adapted[THREADS + 1];
	struct iops_load load = IOPS_LOAD;
	uint32_t peak;

	(void)state;
	load.model = IOPS_UNITS;
	load.think = IOPS_UNITS_THINK;
	load.qps = 4;
	sweep(load, open);
	peak = peak_of(open);
	load.adapts = 1 << 20;
	sweep(load, adapted);
	for (uint32_t n = peak + 1; n <= THREADS; n++) {
		assert_true(adapted[n].per_second * 100 >= open[peak].per_second * 97);
		assert_true(adapted[n].wr_max < open[n].wr_max);
		assert_true(adapted[n].cuts > 0);
		assert_in_range(adapted[n].window, load.bytes, 4 * load.adapts);
	}
}

/* Bursts that overrun a buffer on the way are stopped and started; a window below it is not (XR-E5). */
static void XR_E5_a_window_avoids_the_pauses(void **state)
{
	struct iops_load load = IOPS_LOAD;
	struct iops_result open, kept;

	(void)state;
	load.model = "gbit=56,wqe=30,delay=850,queue=1M,pause=5000";
	load.threads = THREADS;
	load.bytes = 128 << 10;
	load.writes = 5000;
	open = iops_run(&load);
	load.window = 1 << 20;
	kept = iops_run(&load);
	assert_true(kept.per_second * 100 >= open.per_second * 110);
	assert_true(kept.mean_ns < open.mean_ns);
	assert_true(kept.bytes_max <= 1 << 20);
}

static void RB_E1_the_same_twice(void **state)
{
	struct iops_load load = IOPS_LOAD;
	struct iops_result first, second;

	(void)state;
	load.threads = 7;
	load.qps = 4;
	load.writes = 3000;
	first = iops_run(&load);
	second = iops_run(&load);
	assert_memory_equal(&first, &second, sizeof(first));
}

RIG_TABLE(shape, cmocka_unit_test(RB_E1_more_threads_are_worse_than_four),
	  cmocka_unit_test(RB_E1_without_the_cache_a_plateau),
	  cmocka_unit_test(RB_E7_the_window_keeps_the_peak),
	  cmocka_unit_test(RB_E7_four_qps_peak_later_than_one),
	  cmocka_unit_test(RB_E7_aimd_keeps_the_peak),
	  cmocka_unit_test(XR_E5_a_window_avoids_the_pauses), cmocka_unit_test(RB_E1_the_same_twice));
