/* SPDX-License-Identifier: MIT */
/* The owner of an address invites claimants of other hosts to a worker, which here is the test. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "core/link/link.h"
#include "core/peer/invite.h"
#include "core/peer/listener_message.h"
#include "core/service.h"
#include "core/stream/tuple.h"
#include "tests/unit/sockets.h"

#define SECOND (1000 * MS)
#define MANY 100000 /* more than a socket holds */

static struct shunt_link *link_;
static struct shunt_invited invited[SHUNT_INVITED];
static struct shunt_worker worker;
static int worker_end;
static const struct shunt_tuple claimed = {
	.local = { 1 }, .peer = { 2 }, .local_port = 3, .peer_port = 4
};

static int make(void **state)
{
	int fds[2];

	if (set_up(state) || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		return -1;
	link_ = calloc(1, sizeof(*link_));
	link_->engine = engine;
	link_->channel.kind = SHUNT_CHANNEL_TCP;
	link_->channel.number = 7;
	strcpy(link_->channel.course.way.device, "rxe7");
	link_->channel.course.path.traffic_class = 104;
	memset(invited, 0, sizeof(invited));
	worker = (struct shunt_worker) {
		.process = { { 9 } }, .gate = 80, .fd = fds[0], .invited = invited
	};
	worker_end = fds[1];
	return 0;
}

static int end(void **state)
{
	(void)state;
	close(worker.fd);
	close(worker_end);
	free(link_);
	return 0;
}

static bool hears(struct shunt_have *have)
{
	return shunt_listener_message_receive(engine, worker_end, have) == 1;
}

static void both_are_told_the_same(void **state)
{
	struct shunt_tuple accepted = shunt_tuple_reverse(&claimed);
	struct shunt_onward onward;
	struct shunt_have have;

	(void)state;
	assert_true(shunt_invite(link_, &worker, &claimed, &onward));
	assert_memory_equal(&onward.process, &worker.process, sizeof(onward.process));
	assert_int_equal(onward.gate, worker.gate);
	assert_true(hears(&have));
	assert_int_equal(have.type, SHUNT_HAVE_INVITE);
	assert_memory_equal(have.invitation.ticket, onward.ticket, sizeof(onward.ticket));
	assert_memory_equal(&have.tuple, &accepted, sizeof(accepted));
	assert_string_equal(have.invitation.device, "rxe7");
	assert_int_equal(have.invitation.traffic_class, 104);
}

/* A burst of claims is one link, so one ticket. */
static void a_channel_has_one_ticket_for_a_second(void **state)
{
	struct shunt_onward first, next;
	struct shunt_have have;

	(void)state;
	assert_true(shunt_invite(link_, &worker, &claimed, &first));
	assert_true(hears(&have));
	for (int i = 0; i < 100; i++) {
		assert_true(shunt_invite(link_, &worker, &claimed, &next));
		assert_memory_equal(&first, &next, sizeof(first));
		assert_false(hears(&have));
	}
	clock_ns += 2 * SECOND;
	assert_true(shunt_invite(link_, &worker, &claimed, &next));
	assert_memory_not_equal(first.ticket, next.ticket, sizeof(first.ticket));
	assert_true(hears(&have));
}

static void each_channel_has_its_own(void **state)
{
	struct shunt_onward onward[SHUNT_INVITED], again;
	struct shunt_have have;

	(void)state;
	for (uint32_t i = 0; i < SHUNT_INVITED; i++) {
		link_->channel.number = i + 1;
		assert_true(shunt_invite(link_, &worker, &claimed, &onward[i]));
		assert_true(hears(&have));
		for (uint32_t j = 0; j < i; j++)
			assert_memory_not_equal(onward[i].ticket, onward[j].ticket,
						sizeof(again.ticket));
	}
	for (uint32_t i = 0; i < SHUNT_INVITED; i++) {
		link_->channel.number = i + 1;
		assert_true(shunt_invite(link_, &worker, &claimed, &again));
		assert_memory_equal(&onward[i], &again, sizeof(again));
		assert_false(hears(&have));
	}
	link_->channel.number = SHUNT_INVITED + 1;
	assert_true(shunt_invite(link_, &worker, &claimed, &again));
	assert_true(hears(&have));
}

/* A claimant is sent to nobody that does not expect it. */
static void without_a_gate_or_an_ear_there_is_no_way(void **state)
{
	struct shunt_onward onward;
	bool goes = true;

	(void)state;
	worker.gate = 0;
	assert_false(shunt_invite(link_, &worker, &claimed, &onward));
	worker.gate = 80;
	for (uint32_t i = 0; i < MANY && goes; i++) {
		link_->channel.number = i + 1;
		goes = shunt_invite(link_, &worker, &claimed, &onward);
	}
	assert_false(goes);
	assert_int_equal(onward.gate, 0);
}

static void within_a_host_the_identity_is_enough(void **state)
{
	struct shunt_onward onward;
	struct shunt_have have;

	(void)state;
	link_->channel.kind = SHUNT_CHANNEL_UNIX;
	assert_true(shunt_invite(link_, &worker, &claimed, &onward));
	assert_memory_equal(&onward.process, &worker.process, sizeof(onward.process));
	assert_int_equal(onward.gate, 0);
	assert_false(hears(&have));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(both_are_told_the_same, make, end),
		cmocka_unit_test_setup_teardown(a_channel_has_one_ticket_for_a_second, make, end),
		cmocka_unit_test_setup_teardown(each_channel_has_its_own, make, end),
		cmocka_unit_test_setup_teardown(without_a_gate_or_an_ear_there_is_no_way, make,
						end),
		cmocka_unit_test_setup_teardown(within_a_host_the_identity_is_enough, make, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
