/* SPDX-License-Identifier: MIT */
/* Many questions, and what is left when all is over. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tests/lab/cm/cm.h"

static const char third[] = "10.78.0.1";	/* rxe2 */

void a_thousand_in_a_row(void **state)
{
	int before, low = descriptors(true);
	double since, each, worst = 0;

	(void)state;
	listening(&listener, there, PORT, false);
	answered(here, there, PORT);
	before = descriptors(false);
	since = now();
	for (int i = 0; i < 1000; i++) {
		each = now();
		answered(here, there, PORT);
		if (now() - each > worst)
			worst = now() - each;
	}
	print_message("# a question and its answer: %.2f ms, at worst %.1f ms\n", (now() - since) / 1000, worst);
	each_was_heard(1001);
	assert_int_equal(descriptors(false), before);
	assert_int_equal(descriptors(true), low);
}

void many_at_once(void **state)
{
	int good = 0, busy = 0, other = 0, begun = 0, ended;

	(void)state;
	listening(&listener, there, PORT, false);
	for (int i = 0; i < 300; i++)
		begun += !ask_from(&asker, here, there, PORT, PATIENCE);
	for (ended = 0; ended < begun;) {
		int before = seen.answers;

		run(before + 1, 2 * PATIENCE);
		if (seen.answers == before)
			break;
		/* several may have come: the last one's status stands for them */
		if (!seen.status)
			good += seen.answers - before;
		else if (seen.status == -EPROTO)
			busy += seen.answers - before;
		else
			other += seen.answers - before;
		ended += seen.answers - before;
	}
	print_message("# 300 at once: about %d answered, %d rejected, %d otherwise (%s)\n", good, busy, other,
		      strerror(-seen.status));
	assert_int_equal(seen.answers, begun);
	answered(here, there, PORT);
}

void nothing_is_left(void **state)
{
	int low, all;

	(void)state;
	set_up(state);
	listening(&listener, there, PORT, false);
	answered(here, there, PORT);
	close_both();
	low = descriptors(true);
	all = descriptors(false);
	for (int i = 0; i < 3; i++) {
		open_both();
		listening(&listener, "::", PORT, false);
		answered(here, there, PORT);
		ask_from(&asker, here, hole, PORT, PATIENCE);
		close_both();
		assert_int_equal(descriptors(true), low);
		assert_int_equal(descriptors(false), all);
	}
}

/* A third device, with an address of its own. The command waits for us to end: rxe keeps what a process uses. */
void a_device_goes(void **state)
{
	struct cm_listener *one = listening(&listener, third, PORT, false);

	(void)state;
	ask_from(&asker, third, "10.78.0.50", PORT, 10 * PATIENCE);
	while (!seen.connects && !seen.answers)
		run(1, 100);
	assert_int_equal(seen.answers, 0);
	assert_int_equal(system("rdma link delete rxe2 &"), 0);
	run(1, PATIENCE);
	assert_int_equal(seen.answers, 1);
	assert_int_equal(seen.status, -ENODEV);
	assert_int_equal(seen.losts, 1);
	cm_unlisten(&listener, one);
	listening(&listener, there, PORT, false);
	answered(here, there, PORT);
}
