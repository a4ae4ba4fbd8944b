/* SPDX-License-Identifier: MIT */
/* The nonce that an end shows in TCP depends on every fact, and no end can show the other's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "core/stream/nonce.h"

static struct shunt_nonce_facts some_facts(void)
{
	struct shunt_nonce_facts facts = { .tuple = { .local_port = 1, .peer_port = 2 } };

	memset(facts.hellos[0], 3, sizeof(facts.hellos[0]));
	memset(facts.hellos[1], 4, sizeof(facts.hellos[1]));
	memset(facts.tuple.local, 5, sizeof(facts.tuple.local));
	memset(facts.tuple.peer, 6, sizeof(facts.tuple.peer));
	memset(facts.chance[0], 7, sizeof(facts.chance[0]));
	memset(facts.chance[1], 8, sizeof(facts.chance[1]));
	return facts;
}

/* Every bit of the facts changes both nonces: none is good for another link, connection or claim. */
static void every_fact_decides(void **state)
{
	struct shunt_nonce_facts facts = some_facts();
	uint8_t before[2][SHUNT_NONCE_BYTES], after[SHUNT_NONCE_BYTES];

	(void)state;
	for (int claimants = 0; claimants < 2; claimants++)
		shunt_nonce_make(&facts, claimants, before[claimants]);
	for (size_t bit = 0; bit < 8 * sizeof(facts); bit++) {
		((uint8_t *)&facts)[bit / 8] ^= (uint8_t)(1 << bit % 8);
		for (int claimants = 0; claimants < 2; claimants++) {
			shunt_nonce_make(&facts, claimants, after);
			assert_memory_not_equal(before[claimants], after, sizeof(after));
		}
		((uint8_t *)&facts)[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

/* A peer that repeats what it was shown shows nothing, also where it repeats our chance and our HELLO. */
static void no_nonce_is_reflected(void **state)
{
	struct shunt_nonce_facts facts = some_facts();
	uint8_t claimants[SHUNT_NONCE_BYTES], acceptors[SHUNT_NONCE_BYTES];

	(void)state;
	memcpy(facts.hellos[1], facts.hellos[0], sizeof(facts.hellos[0]));
	memcpy(facts.chance[1], facts.chance[0], sizeof(facts.chance[0]));
	memcpy(facts.tuple.peer, facts.tuple.local, sizeof(facts.tuple.local));
	facts.tuple.peer_port = facts.tuple.local_port;
	shunt_nonce_make(&facts, true, claimants);
	shunt_nonce_make(&facts, false, acceptors);
	assert_memory_not_equal(claimants, acceptors, sizeof(claimants));
}

/* printf 'acceptor' and the facts in their order, into sha256sum, says the same. */
static void an_example(void **state)
{
	static const uint8_t expected[SHUNT_NONCE_BYTES] = { 0x79, 0xde, 0x59, 0x5e, 0x2a, 0xde,
							     0x9c, 0xa9, 0x28, 0x99, 0x81, 0x2c,
							     0xbf, 0x14, 0x2b, 0x93 };
	struct shunt_nonce_facts facts = some_facts();
	uint8_t nonce[SHUNT_NONCE_BYTES];

	(void)state;
	facts.tuple.local_port = facts.tuple.peer_port = 0x0909;
	shunt_nonce_make(&facts, false, nonce);
	assert_memory_equal(nonce, expected, sizeof(expected));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_fact_decides),
		cmocka_unit_test(no_nonce_is_reflected),
		cmocka_unit_test(an_example),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
