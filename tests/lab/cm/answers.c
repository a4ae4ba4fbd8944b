/* SPDX-License-Identifier: MIT */
/* Questions that are answered. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include "tests/lab/cm/cm.h"

void question_and_answer(void **state)
{
	struct cm_listener *one = listening(&listener, there, PORT, false);
	double since = now();

	(void)state;
	answered(here, there, PORT);
	print_message("# the first answer of all took %.0f ms\n", now() - since);
	good_route(&seen.route, "rxe0", here, there);
	good_route(&seen.asked_route, "rxe1", there, here);
	assert_int_equal(seen.route.peer.v4.sin_port, htons(PORT));
	print_message("# route: mtu %d sl %d tclass %d hops %d life %d flow %x; asked: mtu %d sl %d tclass %d hops %d\n",
		      128 << seen.route.mtu, seen.route.sl, seen.route.traffic_class, seen.route.hop_limit,
		      seen.route.packet_life_time, seen.route.flow_label, 128 << seen.asked_route.mtu,
		      seen.asked_route.sl, seen.asked_route.traffic_class, seen.asked_route.hop_limit);
	seen.refuse = 1;
	assert_int_equal(ask(here, there, PORT, PATIENCE), -EPROTO);
	assert_int_equal(ask(here, there, PORT + 1, PATIENCE), -ECONNREFUSED);
	cm_unlisten(&listener, one);
	assert_int_equal(ask(here, there, PORT, PATIENCE), -ECONNREFUSED);
	assert_true(seen.routed);
	each_was_heard(2);
}

void by_ipv6(void **state)
{
	(void)state;
	listening(&listener, there6, PORT, true);
	answered(here6, there6, PORT);
	good_route(&seen.route, "rxe0", here6, there6);
	good_route(&seen.asked_route, "rxe1", there6, here6);
}

void lengths(void **state)
{
	union cm_address remote = at(there, PORT);
	uint8_t question[CM_QUESTION_MAX + 1];

	(void)state;
	memset(question, 5, sizeof(question));
	listening(&listener, there, PORT, false);
	for (int bytes = 0; bytes <= CM_QUESTION_MAX; bytes += 13) {
		assert_int_equal(cm_ask(&asker, NULL, &remote.any, question, bytes, now() + PATIENCE, NULL, NULL), 0);
		run(seen.answers + 1, PATIENCE);
		assert_int_equal(seen.status, 0);
		assert_int_equal(seen.asked_bytes, bytes);
		assert_int_equal(seen.bytes, bytes);
	}
	assert_int_equal(cm_ask(&asker, NULL, &remote.any, question, sizeof(question), now() + PATIENCE, NULL, NULL),
			 -EMSGSIZE);
}

void wildcards(void **state)
{
	struct cm_listener *one = listening(&listener, "0.0.0.0", PORT, false);

	(void)state;
	answered(here, there, PORT);
	good_route(&seen.asked_route, "rxe1", there, here);
	answered(there, here, PORT);
	good_route(&seen.asked_route, "rxe0", here, there);
	answered(NULL, there, PORT);
	assert_int_equal(ask(here6, there6, PORT, PATIENCE), -EPROTO);
	cm_unlisten(&listener, one);

	one = listening(&listener, "::", PORT, false);
	answered(here, there, PORT);
	good_route(&seen.asked_route, "rxe1", there, here);
	answered(here6, there6, PORT);
	good_route(&seen.asked_route, "rxe1", there6, here6);
	assert_int_equal(listen_error("0.0.0.0", PORT, false), -EADDRINUSE);
	assert_int_equal(listen_error(there, PORT, false), -EADDRINUSE);
	cm_unlisten(&listener, one);

	one = listening(&listener, "::", PORT, true);
	assert_int_equal(ask(here, there, PORT, PATIENCE), -EPROTO);
	answered(here6, there6, PORT);
	assert_int_equal(listen_error("0.0.0.0", PORT, false), 0);
	cm_unlisten(&listener, one);
}

void mapped_addresses(void **state)
{
	(void)state;
	listening(&listener, "::ffff:10.77.0.2", PORT, false);
	answered("::ffff:10.77.0.1", "::ffff:10.77.0.2", PORT);
	good_route(&seen.route, "rxe0", here, there);
	answered(here, there, PORT);
}

void callbacks_call(void **state)
{
	(void)state;
	seen.leave = listening(&listener, there, PORT, false);
	seen.again = 1;
	ask_from(&asker, here, there, PORT, PATIENCE);
	run(2, 2 * PATIENCE);
	assert_int_equal(seen.answers, 2);
	each_was_heard(1);
	assert_int_equal(seen.status, -ECONNREFUSED); /* the second time */
	listening(&listener, there, PORT, false);
	seen.again = 3;
	ask_from(&asker, here, there, PORT, PATIENCE);
	run(6, 4 * PATIENCE);
	each_was_heard(5);
	assert_int_equal(seen.status, 0);
	assert_memory_equal(seen.answer, "bhbjo", 5);
}

/* Whatever it is at, a cancelled ask does not come back. */
void cancelled(void **state)
{
	union cm_address remote = at(there, PORT);
	struct cm_ask *one;

	(void)state;
	listening(&listener, there, PORT, false);
	for (int steps = 0; steps < 4; steps++) {
		assert_int_equal(cm_ask(&asker, NULL, &remote.any, "x", 1, now() + PATIENCE, NULL, &one), 0);
		for (int i = 0; i < steps; i++) {
			poll(&(struct pollfd) { .fd = cm_fd(&asker), .events = POLLIN }, 1, 100);
			if (i < 2)
				step(&asker);
		}
		cm_cancel(&asker, one);
		run(1, 100);
		assert_int_equal(seen.answers, 0);
		assert_int_equal(cm_next_deadline(&asker), CM_NEVER);
	}
	answered(here, there, PORT);
}
