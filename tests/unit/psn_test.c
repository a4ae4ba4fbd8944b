/* SPDX-License-Identifier: MIT */
/* Sequence numbers of queue pairs: the same whenever they are asked for, and one tells nothing of another. */
#include <string.h>
#include "core/device/psn.h"
#include "tests/unit/sockets.h"

#define PAIRS 64

static void each_is_its_own(void **state)
{
	uint8_t keys[2][SHUNT_PSN_KEY_BYTES];
	uint32_t same = 0;

	(void)state;
	shunt_psn_key(engine->sys, keys[0]);
	shunt_psn_key(engine->sys, keys[1]);
	assert_memory_not_equal(keys[0], keys[1], SHUNT_PSN_KEY_BYTES);
	for (uint32_t qp = 1; qp <= PAIRS; qp++) {
		uint32_t steps[2];

		for (int i = 0; i < 2; i++) {
			uint32_t psn = shunt_psn_of(keys[i], qp);

			assert_int_equal(psn, shunt_psn_of(keys[i], qp));
			assert_int_equal(psn >> 24, 0);
			steps[i] = (shunt_psn_of(keys[i], qp + 1) - psn) & 0xffffff;
		}
		same += steps[0] == steps[1];
	}
	/* With a salt that is added all are: who is told one number knows the others. */
	assert_int_equal(same, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(each_is_its_own, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
