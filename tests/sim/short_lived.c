/* SPDX-License-Identifier: MIT */
/* Which connections are claimed at once, and which only once they have lasted. */
#include "tests/sim/bed.h"
#include "core/engine.h"

static uint64_t claims(void)
{
	return atomic_load(&engines[0]->claims);
}

static void some_turns(void)
{
	for (int i = 0; i < 5; i++)
		turn();
}

/* The bed's second pair comes, and sends so much. */
static void arrive(int sends)
{
	bed.sent[1][0] = bed.sent[1][1] = bed.received[1][0] = bed.received[1][1] = 0;
	connect_pair(&bed.pair[1]);
	for (int i = 0; i < sends; i++) {
		put(1, 0, 1, 0);
		some_turns();
		get(1, 0, BUFFER);
		some_turns();
	}
}

static void leave(void)
{
	close_side(&bed.pair[1].side[0]);
	close_side(&bed.pair[1].side[1]);
	some_turns();
}

static void brief_ones(int count)
{
	for (int i = 0; i < count; i++) {
		arrive(1);
		leave();
	}
}

/* The limit is reached; from then on a connection has to last before it is claimed, until most do. */
void brief_connections_are_not_claimed(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	uint64_t before;

	(void)state;
	make_bed(&config, 1);
	assert_int_equal(config.brief, 8);
	brief_ones(7);
	before = claims();
	arrive(1);
	assert_int_equal(claims(), before + 1);	/* not yet */
	leave();
	brief_ones(1);

	before = claims();
	brief_ones(5);
	arrive(8);
	assert_int_equal(claims(), before);
	for (int i = 0; i < 10; i++)
		put(1, 0, 1, 0);
	some_turns();
	assert_int_equal(claims(), before + 1);
	warm(1);
	leave();
	for (int i = 0; i < 8; i++) {
		arrive(20);
		warm(1);
		leave();
	}
	before = claims();
	arrive(1);
	assert_int_equal(claims(), before + 1);
	leave();
	end_bed();
}

void all_are_claimed_if_wanted(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	uint64_t before;

	(void)state;
	config.brief = 0;
	make_bed(&config, 1);
	brief_ones(20);
	before = claims();
	arrive(1);
	assert_int_equal(claims(), before + 1);
	leave();
	end_bed();
}
