/* SPDX-License-Identifier: MIT */
/* Histograms by powers of two: borders of buckets, sums, and a reader beside the writer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include "core/trace/histogram.h"

#define BUCKETS SHUNT_SIZE_BUCKETS
#define VALUES 200000

static uint64_t total_of(const uint64_t *counts)
{
	uint64_t total = 0;

	for (uint32_t i = 0; i < BUCKETS; i++)
		total += __atomic_load_n(&counts[i], __ATOMIC_RELAXED);
	return total;
}

static void borders(void **state)
{
	(void)state;
	assert_int_equal(shunt_histogram_bucket(BUCKETS, 0), 0);
	assert_int_equal(shunt_histogram_bucket(BUCKETS, 1), 0);
	for (uint32_t i = 1; i < BUCKETS; i++) {
		assert_int_equal(shunt_histogram_bucket(BUCKETS, UINT64_C(1) << i), i);
		assert_int_equal(shunt_histogram_bucket(BUCKETS, (UINT64_C(1) << i) - 1), i - 1);
	}
	assert_int_equal(shunt_histogram_bucket(BUCKETS, UINT64_C(1) << BUCKETS), BUCKETS - 1);
	assert_int_equal(shunt_histogram_bucket(BUCKETS, UINT64_MAX), BUCKETS - 1);
	assert_int_equal(shunt_histogram_bucket(SHUNT_TIME_BUCKETS, UINT64_MAX),
			 SHUNT_TIME_BUCKETS - 1);
	assert_int_equal(shunt_histogram_bucket(1, 77), 0);
}

static void sums(void **state)
{
	uint64_t one[BUCKETS] = { 0 }, other[BUCKETS] = { 0 };

	(void)state;
	for (uint64_t value = 0; value < 1000; value++)
		shunt_histogram_add(one, BUCKETS, value);
	assert_int_equal(total_of(one), 1000);
	assert_int_equal(one[0], 2);
	assert_int_equal(one[1], 2);
	assert_int_equal(one[8], 256);
	assert_int_equal(one[9], 1000 - 512);
	shunt_histogram_add(other, BUCKETS, 300);
	shunt_histogram_merge(one, other, BUCKETS);
	assert_int_equal(one[8], 257);
	assert_int_equal(other[8], 1);
	assert_int_equal(total_of(one), 1001);
}

static void *write_values(void *counts)
{
	for (uint64_t value = 0; value < VALUES; value++)
		shunt_histogram_add(counts, BUCKETS, value & 0xffff);
	return NULL;
}

/* ThreadSanitizer looks at this one. */
static void reader_beside_writer(void **state)
{
	uint64_t counts[BUCKETS] = { 0 }, last = 0, now;
	pthread_t writer;

	(void)state;
	assert_int_equal(pthread_create(&writer, NULL, write_values, counts), 0);
	do {
		now = total_of(counts);
		assert_true(now >= last);
		last = now;
	} while (now < VALUES);
	pthread_join(writer, NULL);
	assert_int_equal(total_of(counts), VALUES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(borders),
		cmocka_unit_test(sums),
		cmocka_unit_test(reader_beside_writer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
