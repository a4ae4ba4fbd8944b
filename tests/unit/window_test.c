/* SPDX-License-Identifier: MIT */
/* Admission: the static window, AIMD, a policy of one's own, and the window of the device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "core/base/config.h"
#include "core/lane/window.h"

enum { STATIC, AIMD, NONE };

static struct shunt_config config;
static _Atomic uint64_t device;
static struct shunt_window window;
static uint64_t number, now;

static void begin(int admit)
{
	shunt_config_defaults(&config);
	config.admit = admit;
	config.window_bytes = 65536;
	config.window_wrs = 8;
	config.frag_bytes = 4096;
	device = 0;
	number = now = 0;
	memset(&window, 0, sizeof(window));
}

static void start(void)
{
	assert_int_equal(shunt_window_init(&window, &config, config.sq_depth, &device), 0);
}

/* Posts one signaled WR if that is admitted. */
static enum shunt_limit post(uint32_t bytes, uint64_t inflight_wrs)
{
	enum shunt_limit limit = shunt_window_admit(&window, inflight_wrs, 0, bytes);

	if (limit)
		return limit;
	shunt_window_mark(&window, ++number, window.posted + bytes, now);
	window.posted += bytes;
	return SHUNT_LIMIT_NONE;
}

static void complete(uint64_t wr, uint64_t after)
{
	now += after;
	shunt_window_completed(&window, wr, now);
}

static int end(void **state)
{
	(void)state;
	shunt_window_fini(&window);
	return 0;
}

static void limits(void **state)
{
	(void)state;
	begin(STATIC);
	start();
	assert_int_equal(post(60000, 0), SHUNT_LIMIT_NONE);
	assert_int_equal(post(5536, 1), SHUNT_LIMIT_NONE);
	assert_int_equal(post(1, 2), SHUNT_LIMIT_BYTES);
	complete(1, 10);
	assert_int_equal(post(60000, 1), SHUNT_LIMIT_NONE);
	complete(3, 10);
	assert_int_equal(post(1, 7), SHUNT_LIMIT_NONE);
	assert_int_equal(post(1, 8), SHUNT_LIMIT_WRS);
	/* WRs collected by the chain count like posted ones. */
	assert_int_equal(shunt_window_admit(&window, 8, 0, 1), SHUNT_LIMIT_WRS);
	assert_int_equal(shunt_window_admit(&window, 6, 65536, 1), SHUNT_LIMIT_BYTES);
}

/* A lone WR may be larger than the window (PF-23). */
static void alone(void **state)
{
	(void)state;
	begin(STATIC);
	config.window_bytes = config.window_wrs = 1;
	start();
	assert_int_equal(post(100000, 0), SHUNT_LIMIT_NONE);
	assert_int_equal(post(1, 1), SHUNT_LIMIT_WRS);
	complete(1, 10);
	assert_int_equal(post(100000, 0), SHUNT_LIMIT_NONE);
}

static void no_limits(void **state)
{
	(void)state;
	begin(NONE);
	start();
	for (int i = 0; i < 1000; i++)
		assert_int_equal(post(100000, i), SHUNT_LIMIT_NONE);
	shunt_window_fini(&window);
	begin(STATIC);
	config.window_bytes = config.window_wrs = 0;
	start();
	for (int i = 0; i < 1000; i++)
		assert_int_equal(post(100000, i), SHUNT_LIMIT_NONE);
}

/* Whenever the next fragment is refused, a signaled WR is on its way. */
static void closes_behind_a_signal(void **state)
{
	(void)state;
	for (uint64_t limit = 1; limit < 100000; limit = limit * 3 + 1) {
		bool signaled = false;

		begin(STATIC);
		config.window_bytes = limit;
		config.window_wrs = 0;
		start();
		for (;;) {
			if (shunt_window_admit(&window, 1, 0, 4096))
				break;
			signaled = shunt_window_signals(&window, 0, 4096);
			window.posted += 4096;
		}
		assert_true(signaled);
		shunt_window_fini(&window);
	}
	start();
}

static void aimd_adapts(void **state)
{
	uint64_t low;

	(void)state;
	begin(AIMD);
	config.window_wrs = 0;
	start();
	assert_int_equal(window.bytes, 65536 / 4);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(post(4096, 0), SHUNT_LIMIT_NONE);
		complete(number, 1000);
	}
	assert_int_equal(window.bytes, 65536);	/* all in time: up to the limit, no further */
	assert_int_equal(window.cuts, 0);
	for (int i = 0; i < 8; i++)
		assert_int_equal(post(4096, 0), SHUNT_LIMIT_NONE);
	for (int i = 7; i >= 0; i--)
		complete(number - i, 3000);
	low = window.bytes;
	assert_int_equal(window.cuts, 1);	/* once for what was in flight */
	assert_int_equal(low, 65536 / 4 * 3);
	for (int i = 0; i < 100; i++) {
		post(4096, 0);
		complete(number, 5000);
	}
	assert_int_equal(window.bytes, 4096);	/* never below a fragment */
}

static bool admit_every_second(struct shunt_window *w, uint32_t bytes)
{
	static int calls;

	(void)w;
	(void)bytes;
	return calls++ & 1;
}

static const struct shunt_admission mock = { .name = "mock", .admit = admit_every_second };

static void own_policy(void **state)
{
	int refused = 0;

	(void)state;
	begin(STATIC);
	start();
	shunt_window_use(&window, &mock);
	assert_int_equal(post(10, 0), SHUNT_LIMIT_NONE);	/* alone: not asked */
	for (int i = 0; i < 10; i++)
		refused += post(10, 1) == SHUNT_LIMIT_POLICY;
	assert_int_equal(refused, 5);
	/* It may close the window at any time, so every WR must be able to open it. */
	assert_true(shunt_window_signals(&window, 0, 10));
}

/* A gate of so many bytes, in units of 1000. */
struct mock_gate {
	struct shunt_gate gate;
	uint64_t left;
};

static uint64_t units(uint32_t bytes)
{
	return ((uint64_t)bytes + 999) / 1000;
}

static bool gate_admit(struct shunt_gate *gate, struct shunt_gate_hand *hand, uint32_t bytes)
{
	struct mock_gate *ours = (struct mock_gate *)gate;

	if (ours->left < units(bytes))
		return false;
	ours->left -= units(bytes);
	hand->units += (uint32_t)units(bytes);
	return true;
}

static void gate_shorten(struct shunt_gate *gate, struct shunt_gate_hand *hand, uint32_t admitted,
			 uint32_t posted)
{
	hand->units -= (uint32_t)(units(admitted) - units(posted));
	((struct mock_gate *)gate)->left += units(admitted) - units(posted);
}

/* It is asked for each WR, also for one that is alone; it changes nothing about signals, and is not asked in vain. */
static void gate_is_asked_last(void **state)
{
	struct mock_gate gate = { .gate = { gate_admit, gate_shorten }, .left = 10 };

	(void)state;
	begin(STATIC);
	config.window_device = 20000;
	start();
	shunt_window_set_gate(&window, &gate.gate);
	assert_int_equal(post(5000, 0), SHUNT_LIMIT_NONE);
	assert_int_equal(post(5001, 0), SHUNT_LIMIT_GATE);
	assert_int_equal(device, 5000);
	assert_int_equal(gate.left, 5);
	assert_int_equal(post(16000, 1), SHUNT_LIMIT_DEVICE);
	assert_int_equal(gate.left, 5);
	/* Bytes that were not posted are given back to both: all of them, or the rest. */
	assert_int_equal(shunt_window_admit(&window, 1, 0, 4000), SHUNT_LIMIT_NONE);
	shunt_window_shorten(&window, 4000, 1001);
	assert_int_equal(gate.left, 3);
	assert_int_equal(device, 6001);
	shunt_window_return(&window, 1001);
	assert_int_equal(gate.left, 5);
	assert_int_equal(device, 5000);
	assert_int_equal(window.hand.units, 5);
	shunt_window_set_gate(&window, NULL);
	assert_int_equal(window.hand.units, 0);
	assert_int_equal(post(6000, 1), SHUNT_LIMIT_NONE);
	complete(number, 1);
	shunt_window_fini(&window);
	begin(STATIC);
	start();
	assert_false(window.asked);
	shunt_window_set_gate(&window, &gate.gate);
	assert_true(window.asked);
	assert_false(shunt_window_signals(&window, 0, 10));
	shunt_window_set_gate(&window, NULL);
	assert_false(window.asked);
}

static void device_is_shared(void **state)
{
	struct shunt_window other;

	(void)state;
	begin(STATIC);
	config.window_device = 10000;
	start();
	memset(&other, 0, sizeof(other));
	assert_int_equal(shunt_window_init(&other, &config, config.sq_depth, &device), 0);
	assert_int_equal(post(8000, 0), SHUNT_LIMIT_NONE);
	assert_int_equal(shunt_window_admit(&other, 0, 0, 3000), SHUNT_LIMIT_DEVICE);
	assert_int_equal(shunt_window_admit(&other, 0, 0, 2000), SHUNT_LIMIT_NONE);
	assert_int_equal(device, 10000);
	shunt_window_return(&other, 2000);
	assert_int_equal(device, 8000);
	assert_true(shunt_window_completed(&window, 1, 0));
	assert_int_equal(device, 0);
	assert_int_equal(post(8000, 0), SHUNT_LIMIT_NONE);
	shunt_window_fini(&window);	/* a lane that dies gives back what it had in flight */
	assert_int_equal(device, 0);
	shunt_window_fini(&other);
	start();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(limits, end),
		cmocka_unit_test_teardown(alone, end),
		cmocka_unit_test_teardown(no_limits, end),
		cmocka_unit_test_teardown(closes_behind_a_signal, end),
		cmocka_unit_test_teardown(aimd_adapts, end),
		cmocka_unit_test_teardown(own_policy, end),
		cmocka_unit_test_teardown(gate_is_asked_last, end),
		cmocka_unit_test_teardown(device_is_shared, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
