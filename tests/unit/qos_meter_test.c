/* SPDX-License-Identifier: MIT */
/* The meter, with a clock of the test's own: an honest client is never beyond, and one that is not soon is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "core/qos/meter.h"
#include "core/qos/tokens.h"

#define MS 1000000ull
#define SECOND 1000000000ull
#define MBIT100 3051757ull
#define QUEUE 100000

static struct shunt_meter meter;
static struct shunt_bucket bucket;
static uint64_t seed;

static uint64_t below(uint64_t limit)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (seed >> 33) % limit;
}

static uint64_t arrived(void)
{
	return atomic_load(&meter.arrived);
}

/* Work requests on their way, by bytes. */
static struct {
	uint32_t bytes[QUEUE];
	unsigned int count;
} wire;

/* The node's poll: all of it comes, or a part. */
static void poll_at(uint64_t now, unsigned int most, uint64_t *emptied)
{
	unsigned int taken = wire.count < most ? wire.count : most;

	for (unsigned int i = 0; i < taken; i++)
		shunt_meter_take(&meter, wire.bytes[i], *emptied);
	for (unsigned int i = taken; i < wire.count; i++)
		wire.bytes[i - taken] = wire.bytes[i];
	wire.count -= taken;
	if (!wire.count)
		*emptied = now;
}

/*
 * A client that posts all that its bucket lets it, idles, and hears of rates late; a node that polls late, seldom and by
 * parts. The client is never beyond.
 */
static void honest_client(uint64_t rate)
{
	uint64_t now = 7 * SECOND, emptied = 0, told = rate, heard_at = 0, told_at = 0;
	uint64_t idle_until = 0, stopped_until = 0;
	uint32_t piece = shunt_tokens_piece(rate, 65536);

	wire.count = 0;
	shunt_meter_begin(&meter, rate, now);
	shunt_bucket_begin(&bucket, rate, now);
	for (int step = 0; step < 20000; step++) {
		now += 1 + below(MS);
		if (!below(2000))
			idle_until = now + below(2 * SECOND);
		if (!below(1000))
			stopped_until = now + below(SECOND);
		if (!below(500) && !heard_at) {
			told = rate / (1 + below(8)) + SHUNT_RATE_MIN;
			told_at = now;
			shunt_meter_tell(&meter, told, now);
			heard_at = now + 1 + below(200 * MS);
		}
		if (heard_at && (now >= heard_at || now - told_at > 200 * MS)) {
			shunt_bucket_change(&bucket, told);
			piece = shunt_tokens_piece(told, 65536);
			heard_at = 0;
		}
		while (now >= idle_until && wire.count < QUEUE) {
			uint32_t bytes = 1 + (uint32_t)below(piece);

			if (!shunt_bucket_take(&bucket, now, shunt_tokens_of(bytes), below(2)))
				break;
			wire.bytes[wire.count++] = bytes;
		}
		if (now >= stopped_until)
			poll_at(now, 1 + (unsigned int)below(200), &emptied);
		if (shunt_meter_is_beyond(&meter, 0, now))
			fail_msg("rate %llu: an honest client is beyond by %llu tokens in step %d",
				 (unsigned long long)rate,
				 (unsigned long long)shunt_meter_excess(&meter, now), step);
	}
	assert_true(arrived() > 0);
}

static void test_honest(void **state)
{
	(void)state;
	for (uint64_t rate = 1000; rate <= 1000000000; rate *= 10)
		for (uint64_t n = 1; n < 6; n++) {
			seed = n;
			honest_client(rate);
		}
}

/* A client that sends without tokens, and stops when it is found beyond: in the long run it has its limit. */
static void test_cheat(void **state)
{
	uint64_t now = SECOND, begin = now;

	(void)state;
	shunt_meter_begin(&meter, MBIT100, now);
	for (; now < begin + 10 * SECOND; now += MS)
		for (int i = 0; i < 100 && !shunt_meter_is_beyond(&meter, 0, now); i++)
			shunt_meter_take(&meter, 65536, now - MS);
	assert_in_range(arrived(), 30517, 30517 + 107 + 2 * 16);
	assert_true(shunt_meter_due(&meter, now) < now + 20 * MS);
}

/* An idle client's savings are bounded, and so is a burst after them. */
static void test_depth(void **state)
{
	uint64_t now = SECOND, before;

	(void)state;
	shunt_meter_begin(&meter, MBIT100, now);
	shunt_meter_take(&meter, 1, now);
	now += 3600 * SECOND;
	before = arrived();
	while (!shunt_meter_is_beyond(&meter, 0, now))
		shunt_meter_take(&meter, 4096, now);
	assert_in_range(arrived() - before, 106, 108);
	assert_true(shunt_meter_excess(&meter, now) == 1);
	assert_false(shunt_meter_is_beyond(&meter, 1, now));
	assert_false(shunt_meter_is_beyond(&meter, 0, shunt_meter_due(&meter, now)));
}

static void test_rates(void **state)
{
	uint64_t now = SECOND;

	(void)state;
	shunt_meter_begin(&meter, 1000000, now);
	shunt_meter_tell(&meter, 2000000, now);
	assert_int_equal(meter.rate, 2000000);
	/* A cut waits, and further ones with it; a rate told meanwhile that is higher is the one that counts. */
	shunt_meter_tell(&meter, 500000, now);
	shunt_meter_tell(&meter, 1500000, now + MS);
	shunt_meter_tell(&meter, 1000000, now + 2 * MS);
	shunt_meter_take(&meter, 1, now + SHUNT_METER_NEWS - 1);
	assert_int_equal(meter.rate, 2000000);
	shunt_meter_take(&meter, 1, now += SHUNT_METER_NEWS);
	assert_int_equal(meter.rate, 1500000);
	shunt_meter_take(&meter, 1, now += SHUNT_METER_NEWS);
	assert_int_equal(meter.rate, 1000000);
	/* No limit is a raise, and a limit a cut. */
	shunt_meter_tell(&meter, 0, now);
	for (int i = 0; i < 1000000; i++)
		shunt_meter_take(&meter, 4096, now);
	assert_false(shunt_meter_is_beyond(&meter, 0, now));
	shunt_meter_tell(&meter, 1000, now);
	shunt_meter_take(&meter, 4096, now);
	assert_false(shunt_meter_is_beyond(&meter, 0, now));
	now += SHUNT_METER_NEWS;
	for (int i = 0; i < 6; i++)
		shunt_meter_take(&meter, 4096, now);
	assert_true(shunt_meter_is_beyond(&meter, 0, now));
}

/* Tokens by period: what is left of the former one counts for a while, and what was too much is owed. */
static void test_grants(void **state)
{
	uint64_t now = SECOND;

	(void)state;
	shunt_meter_begin(&meter, 0, now);
	shunt_meter_allow(&meter, 100, now);
	for (int i = 0; i < 60; i++)
		shunt_meter_take(&meter, 4096, now);
	now += SECOND;
	shunt_meter_allow(&meter, 50, now);
	for (int i = 0; i < 40; i++) /* on their way since the former */
		shunt_meter_take(&meter, 4096, now);
	for (int i = 0; i < 50; i++)
		shunt_meter_take(&meter, 4096, now);
	assert_false(shunt_meter_is_beyond(&meter, 0, now));
	shunt_meter_take(&meter, 1, now);
	assert_true(shunt_meter_is_beyond(&meter, 0, now));
	assert_true(shunt_meter_due(&meter, now) == SHUNT_METER_NEVER);
	shunt_meter_add(&meter, 1);
	assert_false(shunt_meter_is_beyond(&meter, 0, now));
	shunt_meter_take(&meter, 65536, now);
	assert_int_equal(shunt_meter_excess(&meter, now), 16);
	now += SECOND;
	shunt_meter_allow(&meter, 20, now);
	assert_false(shunt_meter_is_beyond(&meter, 0, now));
	shunt_meter_take(&meter, 4 * 4096, now);
	assert_false(shunt_meter_is_beyond(&meter, 0, now));
	/* Unused tokens are gone. */
	now += SECOND;
	shunt_meter_allow(&meter, 1000, now);
	now += SECOND;
	shunt_meter_allow(&meter, 10, now);
	shunt_meter_take(&meter, 5 * 4096, now);
	now += SHUNT_METER_NEWS;
	shunt_meter_take(&meter, 10 * 4096, now);
	assert_false(shunt_meter_is_beyond(&meter, 0, now));
	shunt_meter_take(&meter, 1, now);
	assert_true(shunt_meter_is_beyond(&meter, 0, now));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_honest), cmocka_unit_test(test_cheat),
		cmocka_unit_test(test_depth),  cmocka_unit_test(test_rates),
		cmocka_unit_test(test_grants),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
