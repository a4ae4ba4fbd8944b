/* SPDX-License-Identifier: MIT */
/* A claim's state: which may follow which. */
#include "tests/unit/machine_rows.h"
#include <string.h>
#include "core/peer/claim_state.h"

static const struct machine_row rows[] = {
	{ "an acceptor's owner is told", SHUNT_UNCLAIMED, SHUNT_CLAIM_TOLD, SHUNT_CLAIM_TOLD },
	{ "another owner is to be told", SHUNT_CLAIM_TOLD, SHUNT_UNCLAIMED, SHUNT_UNCLAIMED },
	{ "an acceptor refuses", SHUNT_UNCLAIMED, SHUNT_CLAIM_LEAVING, SHUNT_CLAIM_LEAVING },
	{ "an acceptor whose owner was told refuses", SHUNT_CLAIM_TOLD, SHUNT_CLAIM_LEAVING, SHUNT_CLAIM_LEAVING },
	{ "a connector claims", SHUNT_UNCLAIMED, SHUNT_CLAIM_UNDER_WAY, SHUNT_CLAIM_UNDER_WAY },
	{ "it is answered", SHUNT_CLAIM_UNDER_WAY, SHUNT_UNCLAIMED, SHUNT_UNCLAIMED },
	{ "both ends have attached it", SHUNT_UNCLAIMED, SHUNT_CLAIM_AGREED, SHUNT_CLAIM_AGREED },
	{ "an acceptor whose owner was told attaches it", SHUNT_CLAIM_TOLD, SHUNT_CLAIM_AGREED, SHUNT_CLAIM_AGREED },
	{ "a peer that has confirmed refuses", SHUNT_CLAIM_AGREED, SHUNT_CLAIM_LEAVING, WRONG },
	{ "a peer that has refused confirms", SHUNT_CLAIM_LEAVING, SHUNT_CLAIM_AGREED, WRONG },
	{ "it leaves its link", SHUNT_CLAIM_AGREED, SHUNT_UNCLAIMED, SHUNT_UNCLAIMED },
	{ "an owner is told of what is on a link", SHUNT_CLAIM_AGREED, SHUNT_CLAIM_TOLD, WRONG },
	{ "it is refused", SHUNT_CLAIM_UNDER_WAY, SHUNT_CLAIM_LEAVING, SHUNT_CLAIM_LEAVING },
	{ "its seat is let go", SHUNT_CLAIM_LEAVING, SHUNT_CLAIM_UNDER_WAY, SHUNT_CLAIM_UNDER_WAY },
	{ "claimed twice", SHUNT_CLAIM_UNDER_WAY, SHUNT_CLAIM_UNDER_WAY, WRONG },
	{ "an owner is told of a connector", SHUNT_CLAIM_UNDER_WAY, SHUNT_CLAIM_TOLD, WRONG },
	{ "agreed on twice", SHUNT_CLAIM_AGREED, SHUNT_CLAIM_AGREED, WRONG },
	{ "refused twice", SHUNT_CLAIM_LEAVING, SHUNT_CLAIM_LEAVING, WRONG },
};

static void states_by_table(void **state)
{
	(void)state;
	rows_hold(shunt_claim_after, ROWS(rows));
	each_event_has_rows(SHUNT_CLAIM_STATES, ROWS(rows));
	names_hold(&shunt_claim_machine, SHUNT_CLAIM_STATES, 0);
}

/* Else it could be claimed a second time, with the seat that is still to be let go. */
static void a_refused_one_is_pending(void **state)
{
	static struct shunt_stream stream;

	(void)state;
	memset(&stream, 0, sizeof(stream));
	assert_false(shunt_claim_is_pending(&stream));
	shunt_claim_turn(&stream, SHUNT_CLAIM_UNDER_WAY);
	assert_true(shunt_claim_is_pending(&stream));
	shunt_claim_turn(&stream, SHUNT_CLAIM_LEAVING);
	assert_true(shunt_claim_is_pending(&stream));
	shunt_claim_turn(&stream, SHUNT_UNCLAIMED);
	assert_false(shunt_claim_is_pending(&stream));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(states_by_table),
		cmocka_unit_test(a_refused_one_is_pending),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
