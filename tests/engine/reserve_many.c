/* SPDX-License-Identifier: MIT */
/* A thousand clients of one node that hands out tokens: messages, and the work of its service thread. */
#include "tests/engine/reserve.h"
#include "tests/engine/phantom.h"
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { MANY = 1000, TYPES = SHUNT_MSG_QOS_PERIOD + 1 };

static struct shunt_sys counting;
static int told[TYPES]; /* messages that clients who are not there were told */

static ssize_t count_message(int fd, const struct msghdr *message, int flags)
{
	(void)flags;
	assert_int_equal(fd, PHANTOM_FD);
	told[((const struct shunt_message *)message->msg_iov->iov_base)->type]++;
	return (ssize_t)message->msg_iov->iov_len;
}

static uint64_t granted_to_all(void)
{
	uint64_t sum = 0;

	for (struct shunt_link *link = engines[1]->service->links; link; link = link->next)
		sum += link->throttle && link->throttle->member ? link->throttle->granted : 0;
	return sum;
}

/* A period of the node's service thread, in looks of a millisecond; somebody has drawn in each of them if `drawn`. */
static void run_period(bool drawn)
{
	struct timespec begin, end;
	uint16_t number = monitor()->ledger.number;
	long us;

	memset(told, 0, sizeof(told));
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	while (monitor()->ledger.number == number) {
		if (drawn)
			atomic_fetch_sub(&monitor()->pools[0].page.words[0], 1);
		pair_skew += MS;
		shunt_qos_run(&engines[1]->service->tasks.qos);
		check_ledger();
	}
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
	us = (end.tv_sec - begin.tv_sec) * 1000000 + (end.tv_nsec - begin.tv_nsec) / 1000;
	print_message("%d clients, a period of 1000 looks: %ld us of a processor\n", MANY, us);
}

/* A message to each in a period, and one more where reports are asked for. */
void many_clients_come(void **state)
{
	struct shunt_config config = reserve_config(
		"period 1s; capacity 10Gbit; class all reserve=50%");
	struct shunt_link *links[MANY];
	const struct shunt_sys *sys;

	(void)state;
	make(&config, 1);
	next_period(0, 0);
	sys = engines[1]->sys;
	counting = *sys;
	counting.sendmsg = count_message;
	atomic_store(&bed.lane[1]->link->state, SHUNT_LINK_DEAD); /* it is told nothing for now */
	shunt_engine_surround(engines[1], &counting);
	memset(told, 0, sizeof(told));
	for (int i = 0; i < MANY; i++) {
		links[i] = phantom_come();
		check_ledger();
	}
	print_message("%d clients come: %d, %d and %d messages\n", MANY, told[SHUNT_MSG_QOS],
		      told[SHUNT_MSG_QOS_PERIOD], told[SHUNT_MSG_QOS_POOL]);
	assert_int_equal(told[SHUNT_MSG_QOS_PERIOD], MANY);
	assert_int_equal(told[SHUNT_MSG_QOS_POOL], MANY);
	assert_int_equal(monitor()->pools[0].links, MANY + 1);
	/* Nothing happens: nobody is asked. */
	run_period(false);
	assert_int_equal(told[SHUNT_MSG_QOS_PERIOD], MANY);
	assert_int_equal(told[SHUNT_MSG_QOS_REPORT], 0);
	assert_int_equal(told[SHUNT_MSG_QOS_POOL], 0);
	assert_in_range(granted_to_all(), monitor()->ledger.capacity / 2 - MANY - 1,
			monitor()->ledger.capacity / 2);
	run_period(true);
	assert_int_equal(told[SHUNT_MSG_QOS_PERIOD], MANY);
	assert_int_equal(told[SHUNT_MSG_QOS_REPORT], MANY);
	for (int i = MANY - 1; i >= 0; i--)
		phantom_go(links[i]);
	assert_int_equal(monitor()->pools[0].links, 1);
	assert_int_equal(monitor()->members, 1);
	shunt_engine_surround(engines[1], sys);
	atomic_store(&bed.lane[1]->link->state, SHUNT_LINK_UP);
	end();
}
