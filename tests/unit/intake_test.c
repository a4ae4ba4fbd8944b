/* SPDX-License-Identifier: MIT */
/*
 * The reader's state: events by a table, what cannot come, and what is true of all states that any order of possible
 * events reaches.
 */
#include "tests/unit/machine_rows.h"
#include "core/link/intake.h"

#define LINK SHUNT_INTAKE_LINK
#define OPEN SHUNT_INTAKE_OPEN
#define FINAL SHUNT_INTAKE_FINAL
#define COPIED SHUNT_INTAKE_COPIED
#define REPEAT SHUNT_INTAKE_REPEAT

static const struct machine_row rows[] = {
	{ "UPGRADE", 0, SHUNT_INTAKE_OPENS, OPEN },
	{ "UPGRADE, before the last HANDBACK is passed", LINK, SHUNT_INTAKE_OPENS, LINK | OPEN },
	{ "UPGRADE twice", OPEN, SHUNT_INTAKE_OPENS, WRONG },
	{ "HANDBACK", LINK | OPEN, SHUNT_INTAKE_CLOSES, LINK },
	{ "HANDBACK before the UPGRADE is passed", OPEN, SHUNT_INTAKE_CLOSES, 0 },
	{ "HANDBACK twice", LINK, SHUNT_INTAKE_CLOSES, WRONG },
	{ "the reader passes UPGRADE", OPEN, SHUNT_INTAKE_PASSES, LINK | OPEN },
	{ "the reader passes HANDBACK", LINK, SHUNT_INTAKE_PASSES, 0 },
	{ "the reader passes what a dead link has brought", LINK | OPEN | FINAL, SHUNT_INTAKE_PASSES, OPEN | FINAL },
	{ "the reader passes what it reads before an end", LINK | COPIED, SHUNT_INTAKE_PASSES, COPIED },
	{ "nothing is to be passed where TCP has all", COPIED, SHUNT_INTAKE_PASSES, WRONG },
	{ "the queue pair dies", LINK | OPEN, SHUNT_INTAKE_DIES, LINK | OPEN | FINAL },
	{ "the peer repeats over TCP what is not read", LINK | OPEN, SHUNT_INTAKE_RETIRES, OPEN | COPIED },
	{ "REPEAT", LINK | OPEN, SHUNT_INTAKE_REPEATS, LINK | OPEN | REPEAT },
	{ "REPEAT before the UPGRADE is passed", OPEN, SHUNT_INTAKE_REPEATS, OPEN | REPEAT },
	{ "REPEAT twice", LINK | OPEN | REPEAT, SHUNT_INTAKE_REPEATS, WRONG },
	{ "REPEAT behind HANDBACK", LINK, SHUNT_INTAKE_REPEATS, WRONG },
	{ "REPEAT of what TCP has", OPEN | COPIED, SHUNT_INTAKE_REPEATS, WRONG },
	{ "HANDBACK behind REPEAT", LINK | OPEN | REPEAT, SHUNT_INTAKE_CLOSES, LINK | REPEAT },
	{ "the reader passes that HANDBACK", LINK | REPEAT, SHUNT_INTAKE_PASSES, REPEAT },
	{ "and drops what it has read", REPEAT, SHUNT_INTAKE_CATCHES_UP, 0 },
	{ "the ring is read before that", LINK | REPEAT, SHUNT_INTAKE_CATCHES_UP, WRONG },
	{ "the repeat is read in place of the ring", LINK | REPEAT | FINAL, SHUNT_INTAKE_RETIRES, FINAL | COPIED },
	{ "nothing more is told", LINK | OPEN, SHUNT_INTAKE_IS_OVER, LINK | OPEN | COPIED },
};

static void events_by_table(void **state)
{
	(void)state;
	rows_hold(shunt_intake_after, ROWS(rows));
	each_event_has_rows(SHUNT_INTAKE_EVENTS, ROWS(rows));
	names_hold(&shunt_intake_machine, SHUNT_INTAKE_EVENTS, 5);
}

static void death_is_never_undone(uint32_t word)
{
	for (uint32_t event = SHUNT_INTAKE_OPENS; event < SHUNT_INTAKE_EVENTS; event++) {
		uint32_t after = shunt_intake_after(word, event);

		if (after != WRONG)
			assert_int_equal(word & (FINAL | COPIED) & ~after, 0);
	}
}

static void facts_that_stay(void **state)
{
	(void)state;
	assert_int_equal(
		states_hold(shunt_intake_after, SHUNT_INTAKE_EVENTS, death_is_never_undone), 32);
}

static void a_peer_cannot_close_what_is_not_open(void **state)
{
	struct shunt_intake intake = { 0 };

	(void)state;
	assert_false(shunt_intake_try(&intake, SHUNT_INTAKE_CLOSES));
	assert_true(shunt_intake_try(&intake, SHUNT_INTAKE_OPENS));
	assert_false(shunt_intake_try(&intake, SHUNT_INTAKE_OPENS));
	shunt_intake_turn(&intake, SHUNT_INTAKE_PASSES);
	assert_true(shunt_intake_on_link(&intake));
	assert_true(shunt_intake_try(&intake, SHUNT_INTAKE_CLOSES));
	assert_int_equal(atomic_load(&intake.word), LINK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_by_table),
		cmocka_unit_test(facts_that_stay),
		cmocka_unit_test(a_peer_cannot_close_what_is_not_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
