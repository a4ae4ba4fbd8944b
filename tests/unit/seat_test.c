/* SPDX-License-Identifier: MIT */
/* Seats: each life begins anew, in memory that is never anything else; a stream without one has the read-only one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "core/base/lsan.h"
#include "core/link/seat.h"

static struct shunt_seat_pool pool;

static int set_up(void **state)
{
	(void)state;
	pool = (struct shunt_seat_pool) { 0 };
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < pool.slab_count; i++)
		shunt_lsan_unmap(pool.slabs[i], SHUNT_SLAB_SEATS * sizeof(struct shunt_seat));
	free(pool.slabs);
	return 0;
}

/* The next life finds nothing of the last one, but for memory that a late thread may still look at. */
static void a_life_begins_anew(void **state)
{
	struct shunt_seat *seat = shunt_seat_make(&pool), *next;
	size_t kept = offsetof(struct shunt_seat, link);
	int window;

	(void)state;
	assert_non_null(seat);
	memset((char *)seat + kept, 0xaa, sizeof(*seat) - kept);
	seat->window = (struct shunt_send_window *)&window;
	shunt_seat_free(&pool, seat);
	next = shunt_seat_make(&pool);
	assert_ptr_equal(next, seat);
	assert_ptr_equal(atomic_load(&next->window), &window);
	assert_memory_equal((char *)next + kept, (const char *)&shunt_seat_none + kept,
			    sizeof(*next) - kept);
}

/* As many lives as one likes need no more memory than those at one time. */
static void memory_is_used_again(void **state)
{
	struct shunt_seat *seats[SHUNT_SLAB_SEATS + 1];
	size_t count = sizeof(seats) / sizeof(seats[0]);

	(void)state;
	for (int round = 0; round < 100; round++) {
		for (size_t i = 0; i < count; i++) {
			seats[i] = shunt_seat_make(&pool);
			assert_non_null(seats[i]);
			for (size_t j = 0; j < i; j++)
				assert_ptr_not_equal(seats[i], seats[j]);
		}
		for (size_t i = 0; i < count; i++)
			shunt_seat_free(&pool, seats[i]);
	}
	assert_int_equal(pool.slab_count, 2);
}

/* Threads without a lock read it as any other: it brings nothing, has no room to be told of, and asks for nothing. */
static void none_says_nothing(void **state)
{
	const struct shunt_seat *none = &shunt_seat_none;

	(void)state;
	assert_true(shunt_seat_is_none(none));
	assert_false(shunt_seat_is_released(none));
	assert_false(shunt_seat_fin_is_due(&none->out));
	assert_int_equal(shunt_seat_rest(&none->out), 0);
	assert_int_equal(shunt_seat_room(&none->out, 0), 0);
	shunt_seat_unquicken((struct shunt_seat_out *)&none->out);	/* writes nothing: the memory is read only */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_life_begins_anew, set_up, tear_down),
		cmocka_unit_test_setup_teardown(memory_is_used_again, set_up, tear_down),
		cmocka_unit_test(none_says_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
