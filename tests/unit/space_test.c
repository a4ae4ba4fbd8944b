/* SPDX-License-Identifier: MIT */
/* The arithmetic of limited address space, and what the kernel says of this process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include "core/base/space.h"

#define M (1ull << 20)
#define G (1ull << 30)

static uint64_t spare(uint64_t limit, uint64_t present, uint64_t taken)
{
	const struct shunt_space space = { .limit = limit, .present = present };

	return shunt_space_spare(&space, taken);
}

static void a_quarter_of_what_is_left(void **state)
{
	(void)state;
	assert_int_equal(spare(SHUNT_SPACE_UNLIMITED, 0, 0), SHUNT_SPACE_UNLIMITED);
	assert_int_equal(spare(SHUNT_SPACE_UNLIMITED, 5 * G, 3 * G), SHUNT_SPACE_UNLIMITED);
	assert_int_equal(spare(150 * M, 30 * M, 0), 30 * M);
	assert_int_equal(spare(30 * M, 30 * M, 0), 0);
	assert_int_equal(spare(10 * M, 30 * M, 0), 0);	/* lowered since */
	assert_int_equal(spare(0, 0, 0), 0);
	assert_int_equal(spare(UINT64_MAX - 1, 0, 0), UINT64_MAX / 4);
}

/* Whatever has been taken, all of it together is a quarter of what the program has left. */
static void what_is_taken_counts_once(void **state)
{
	(void)state;
	for (uint64_t taken = 0; taken <= 30 * M; taken += 3 * M)
		assert_int_equal(spare(150 * M, 30 * M + taken, taken) + taken, 30 * M);
	assert_int_equal(spare(150 * M, 30 * M + 40 * M, 40 * M), 0);	/* the program has grown since */
	assert_int_equal(spare(150 * M, 10 * M, 20 * M), 150 * M / 4 - 20 * M);	/* not mapped yet */
}

static void a_thread_and_its_heap(void **state)
{
	const uint64_t least = SHUNT_SPACE_THREAD + SHUNT_SPACE_LINK;
	const uint64_t wide = least + SHUNT_SPACE_HEAP;

	(void)state;
	assert_int_equal(shunt_space_thread(0), 0);
	assert_int_equal(shunt_space_thread(least - 1), 0);
	assert_int_equal(shunt_space_thread(least), SHUNT_SPACE_THREAD);
	assert_int_equal(shunt_space_thread(wide - 1), SHUNT_SPACE_THREAD);
	assert_int_equal(shunt_space_thread(wide), SHUNT_SPACE_THREAD + 64 * M);
}

static void a_share_fits(void **state)
{
	struct shunt_space_share share;

	(void)state;
	assert_true(shunt_space_link(SHUNT_SPACE_UNLIMITED, G, &share));
	assert_int_equal(share.arena, G);
	assert_int_equal(share.maps, 0);
	assert_false(shunt_space_link(0, G, &share));
	assert_false(shunt_space_link(SHUNT_SPACE_LINK - 1, G, &share));
	for (uint64_t left = SHUNT_SPACE_LINK; left < 64 * G; left += 1 + left / 7) {
		assert_true(shunt_space_link(left, G, &share));
		assert_in_range(share.arena, SHUNT_SPACE_ARENA, G);
		assert_int_equal(share.arena % 65536 + share.maps % 65536, 0);
		assert_in_range(share.maps, SHUNT_SPACE_MAPS, left);
		assert_in_range(SHUNT_SPACE_FRONT + share.arena + share.maps,
				SHUNT_SPACE_LINK - 65536, left);
	}
}

/* Each next link gets half of what is spare, so a second peer finds room. */
static void one_link_leaves_room_for_others(void **state)
{
	uint64_t left = 250 * M, links = 0;
	struct shunt_space_share share;

	(void)state;
	while (shunt_space_link(left, G, &share)) {
		left -= SHUNT_SPACE_FRONT + share.arena + share.maps;
		links++;
	}
	assert_in_range(links, 4, 6);
	assert_true(shunt_space_link(2 * SHUNT_SPACE_LINK, G, &share));
	assert_int_equal(SHUNT_SPACE_FRONT + share.arena + share.maps, SHUNT_SPACE_LINK);
}

/* A sanitizer has mapped more than any limit. */
static void this_process(void **state)
{
	struct shunt_space before = shunt_space_read(), after;
	struct rlimit limit, unlimited;
	void *memory;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_AS, &unlimited), 0);
#if defined(__SANITIZE_THREAD__)
	skip();	/* ThreadSanitizer's shadow takes more than any limit that could be set here */
#endif
	if (unlimited.rlim_cur != RLIM_INFINITY)
		skip();
	assert_int_equal(before.limit, SHUNT_SPACE_UNLIMITED);
	limit = (struct rlimit) { .rlim_cur = 1ull << 46, .rlim_max = unlimited.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
	before = shunt_space_read();
	memory = mmap(NULL, 64 * M, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	after = shunt_space_read();
	assert_int_equal(munmap(memory, 64 * M), 0);
	assert_int_equal(setrlimit(RLIMIT_AS, &unlimited), 0);
	assert_int_equal(before.limit, 1ull << 46);
	assert_int_equal(after.present - before.present, 64 * M);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_quarter_of_what_is_left),
		cmocka_unit_test(what_is_taken_counts_once),
		cmocka_unit_test(a_thread_and_its_heap),
		cmocka_unit_test(a_share_fits),
		cmocka_unit_test(one_link_leaves_room_for_others),
		cmocka_unit_test(this_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
