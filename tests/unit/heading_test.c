/* SPDX-License-Identifier: MIT */
/*
 * The sender's state: events by a table, what cannot come, and what is true of all states that any order of possible
 * events reaches.
 */
#include "tests/unit/machine_rows.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/link/heading.h"

#define LINK SHUNT_HEADING_LINK
#define UNPASSED(n) ((n) * SHUNT_HEADING_UNPASSED)
#define UNPOSTED SHUNT_HEADING_UNPOSTED
#define AWAITED SHUNT_HEADING_AWAITED
#define HALTED SHUNT_HEADING_HALTED
#define KERNELS SHUNT_HEADING_KERNELS

static const struct machine_row rows[] = {
	{ "to the link", 0, SHUNT_HEADING_UPGRADES, LINK | UNPASSED(1) },
	{ "to the link, before the last HANDBACK is passed", UNPASSED(1), SHUNT_HEADING_UPGRADES, WRONG },
	{ "to the link twice", LINK, SHUNT_HEADING_UPGRADES, WRONG },
	{ "to a dead link", HALTED, SHUNT_HEADING_UPGRADES, WRONG },
	{ "to the link behind the kernel's bytes", KERNELS, SHUNT_HEADING_UPGRADES, WRONG },
	{ "back", LINK, SHUNT_HEADING_HANDS_BACK, UNPASSED(1) | UNPOSTED },
	{ "back before the UPGRADE is passed", LINK | UNPASSED(1), SHUNT_HEADING_HANDS_BACK, UNPASSED(2) | UNPOSTED },
	{ "back from TCP", 0, SHUNT_HEADING_HANDS_BACK, WRONG },
	{ "back from a dead link", LINK | HALTED, SHUNT_HEADING_HANDS_BACK, WRONG },
	{ "the lane posts HANDBACK", UNPASSED(1) | UNPOSTED, SHUNT_HEADING_IS_POSTED, UNPASSED(1) },
	{ "the lane posts it for one that waits", UNPASSED(1) | UNPOSTED | AWAITED, SHUNT_HEADING_IS_POSTED, UNPASSED(1) },
	{ "a sender waits for it", UNPASSED(2) | UNPOSTED, SHUNT_HEADING_IS_AWAITED, UNPASSED(2) | UNPOSTED | AWAITED },
	{ "nothing is to be waited for", UNPASSED(1), SHUNT_HEADING_IS_AWAITED, UNPASSED(1) },
	{ "HANDBACK is announced first", LINK, SHUNT_HEADING_ANNOUNCES, LINK | UNPASSED(1) },
	{ "a third switch", LINK | UNPASSED(2), SHUNT_HEADING_ANNOUNCES, WRONG },
	{ "it could not be posted", LINK | UNPASSED(1), SHUNT_HEADING_WITHDRAWS, LINK },
	{ "what was not announced is withdrawn", LINK, SHUNT_HEADING_WITHDRAWS, WRONG },
	{ "it has been posted", LINK | UNPASSED(1), SHUNT_HEADING_LEAVES, UNPASSED(1) },
	{ "the bytes of an unposted HANDBACK are taken back", UNPASSED(1) | UNPOSTED | AWAITED, SHUNT_HEADING_LEAVES, UNPASSED(1) },
	{ "the reader passes the first of two", UNPASSED(2), SHUNT_HEADING_IS_PASSED, UNPASSED(1) },
	{ "the reader passes what nobody announced", LINK, SHUNT_HEADING_IS_PASSED, WRONG },
	{ "the queue pair dies", LINK | UNPASSED(1), SHUNT_HEADING_FAILS, LINK | UNPASSED(1) | HALTED },
	{ "the user's timeout", LINK | HALTED, SHUNT_HEADING_EXPIRES, LINK },
	{ "the peer tells where its reader is", LINK | UNPASSED(1) | HALTED, SHUNT_HEADING_SETTLES, 0 },
	{ "the link ends behind a retirement", UNPASSED(1) | KERNELS, SHUNT_HEADING_SETTLES, KERNELS },
	{ "handed back for good", UNPASSED(1), SHUNT_HEADING_RETIRES, UNPASSED(1) | KERNELS },
	{ "handed back for good on the link", LINK, SHUNT_HEADING_RETIRES, WRONG },
};

static void events_by_table(void **state)
{
	(void)state;
	rows_hold(shunt_heading_after, ROWS(rows));
	each_event_has_rows(SHUNT_HEADING_EVENTS, ROWS(rows));
	names_hold(&shunt_heading_machine, SHUNT_HEADING_EVENTS, 7);
}

static void facts_go_together(uint32_t word)
{
	assert_int_not_equal(word & SHUNT_HEADING_UNPASSED_MASK, SHUNT_HEADING_UNPASSED_MASK);
	if (word & LINK)	/* nobody waits for TCP, and the kernel has nothing of its own */
		assert_false(word & (UNPOSTED | AWAITED | KERNELS));
	if (word & AWAITED)
		assert_true(word & UNPOSTED);
}

static void invariants_hold_in_all_states(void **state)
{
	(void)state;
	print_message("%zu states\n",
		      states_hold(shunt_heading_after, SHUNT_HEADING_EVENTS, facts_go_together));
}

static void turning_says_so_at_debug(void **state)
{
	struct shunt_heading heading = { 0 };
	char path[] = "/tmp/shunt-heading-XXXXXX", line[SHUNT_LOG_LINE_MAX] = "";
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	shunt_log_setup(SHUNT_LOG_INFO, path, NULL);
	shunt_heading_turn(&heading, SHUNT_HEADING_UPGRADES);
	assert_int_equal(read(fd, line, sizeof(line) - 1), 0);
	shunt_log_set_level(SHUNT_LOG_DEBUG);
	shunt_heading_turn(&heading, SHUNT_HEADING_HANDS_BACK);
	shunt_log_setup(SHUNT_LOG_NONE, NULL, NULL);
	assert_true(read(fd, line, sizeof(line) - 1) > 0);
	assert_non_null(strstr(line, ": HANDS_BACK: link, one unpassed -> two unpassed, unposted"));
	close(fd);
	unlink(path);
}

static void turning_tells_the_state_before(void **state)
{
	struct shunt_heading heading = { 0 };

	(void)state;
	assert_int_equal(shunt_heading_turn(&heading, SHUNT_HEADING_UPGRADES), 0);
	assert_true(shunt_heading_on_link(&heading));
	assert_int_equal(shunt_heading_turn(&heading, SHUNT_HEADING_HANDS_BACK),
			 LINK | UNPASSED(1));
	assert_int_equal(shunt_heading_unpassed(&heading), 2);
	shunt_heading_turn(&heading, SHUNT_HEADING_IS_AWAITED);
	assert_true(shunt_heading_turn(&heading, SHUNT_HEADING_IS_POSTED) & AWAITED);
	shunt_heading_turn(&heading, SHUNT_HEADING_FAILS);
	assert_true(shunt_heading_halted(&heading));
}

static void a_peer_cannot_pass_what_was_not_announced(void **state)
{
	struct shunt_heading heading = { .word = LINK };

	(void)state;
	assert_false(shunt_heading_try(&heading, SHUNT_HEADING_IS_PASSED));
	assert_int_equal(atomic_load(&heading.word), LINK);
	shunt_heading_turn(&heading, SHUNT_HEADING_ANNOUNCES);
	assert_true(shunt_heading_try(&heading, SHUNT_HEADING_IS_PASSED));
	assert_false(shunt_heading_try(&heading, SHUNT_HEADING_WITHDRAWS));
	assert_int_equal(atomic_load(&heading.word), LINK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_by_table),
		cmocka_unit_test(invariants_hold_in_all_states),
		cmocka_unit_test(turning_says_so_at_debug),
		cmocka_unit_test(turning_tells_the_state_before),
		cmocka_unit_test(a_peer_cannot_pass_what_was_not_announced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
