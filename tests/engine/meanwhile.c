/* SPDX-License-Identifier: MIT */
/* Events between two steps of an engine: another thread is faster, the peer answers at once, a program closes. */
#include "tests/engine/bed.h"
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "core/device/soft/soft.h"
#include "core/lane/fault_device.h"
#include "core/service.h"
#include "core/stream/ready.h"

static void wants_link(int i, bool on)
{
	stream_want_link(stream_of(&bed.pair[i].side[0]), on);
}

/* After a link that was given up: nobody asks whom it has distrusted. */
static void close_all(void)
{
	for (int i = 0; i < bed.pairs; i++) {
		close_side(&bed.pair[i].side[0]);
		close_side(&bed.pair[i].side[1]);
	}
	for (int n = 0; n < 10; n++)
		turn();
	bed.pairs = 0;
}

/* --- posted, and not noted yet --- */

static int (*post_send)(struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **);
static bool armed;
static _Atomic bool through;
static pthread_t sender;

static void *send_by_link(void *arg)
{
	wants_link(0, true);
	put(0, 0, 50, 0);
	atomic_store(&through, true);
	return arg;
}

static void read_and_send(void)
{
	get(0, 0, BUFFER);
	shunt_group_poll_fully(&engines[0]->group);
	assert_int_equal(stream_switches_unpassed(stream_of(&bed.pair[0].side[0])), 0);
	assert_int_equal(put(0, 0, 100, 0), 100);
}

/* The reader passes the switch and says so, and the program goes on over TCP; then it wants the link again. */
static int post_and_be_overtaken(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	bool handback = carries(wr, SHUNT_IMM_HANDBACK);
	int result = post_send(qp, wr, bad);

	if (!handback || !armed)
		return result;
	armed = false;
	role_play_another(read_and_send);
	assert_int_equal(pthread_create(&sender, NULL, send_by_link, NULL), 0);
	while (!atomic_load(&through) && atomic_load(&bed.lane[0]->lock.word) != 2)	/* it is, or it sleeps for the lane */
		sched_yield();
	return result;
}

void an_answer_overtakes_the_note(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct ibv_context_ops *ops;

	(void)state;
	make_bed(&config, 1);
	ops = &bed.lane[0]->link->device->context->ops;
	post_send = ops->post_send;
	ops->post_send = post_and_be_overtaken;
	armed = true;
	busy();
	put(0, 0, 200, 0);
	wants_link(0, false);
	assert_int_equal(put(0, 0, 100, 0), 0);
	free_again();
	assert_false(armed);
	pthread_join(sender, NULL);
	ops->post_send = post_send;
	put(0, 0, 300, 0);
	drain();
	warm(0);
	end_bed();
}

/* --- a switch is passed once --- */

void a_former_switch_is_not_passed_again(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct shunt_stream *reader;

	(void)state;
	make_bed(&config, 1);
	wants_link(0, false);
	for (int n = 0; n < 3; n++) {
		put(0, 0, 100, 0);
		drain();
	}
	wants_link(0, true);
	put(0, 0, 100, 0);
	assert_int_equal(stream_switches_unpassed(stream_of(&bed.pair[0].side[0])), 1);
	reader = stream_of(&bed.pair[0].side[1]);
	stream_request(reader, SHUNT_WORK_SWITCHED);	/* with the value of the HANDBACK */
	shunt_group_poll_fully(&engines[0]->group);
	assert_int_equal(atomic_load(&engines[0]->links.distrusted), 1);
	close_all();
}

/* --- a link that is given up --- */

/* The queue pair has died, and what it brought last has a word that is not believed: what came behind it is missing. */
void distrust_is_no_failover(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	uint8_t byte[1000];

	(void)state;
	make_bed(&config, 1);
	assert_int_equal(shunt_fault_device_set(&engines[0]->group, "corrupt:what=word,count=1", NULL, 0),
			 0);
	while (!atomic_load(&engines[0]->fault.struck)) {	/* in a CREDIT */
		put(0, 1, 100, 0);
		get(0, 1, BUFFER);
	}
	put(0, 0, 100, 0);
	wants_link(0, false);
	assert_int_equal(put(0, 0, 200, 0), 200);
	assert_int_equal(atomic_load(&engines[1]->links.distrusted), 0);
	shunt_link_fail(bed.lane[1]->link, "the test");
	shunt_service_step(engines[1], 0);
	assert_int_equal(atomic_load(&engines[1]->links.distrusted), 1);
	turn();
	assert_int_equal(receive_some(&bed.pair[0].side[1], byte, sizeof(byte), MSG_DONTWAIT), -ECONNRESET);
	close_all();
}

/* Bytes accepted then would be lost, and an end that is sent behind them would look orderly. */
void nothing_is_accepted_for_a_link_that_is_over(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	make_bed(&config, 1);
	shunt_link_fail(bed.lane[0]->link, "the test");
	assert_int_equal(put(0, 0, 100, 0), 0);
	assert_int_equal(shunt_ready_user(stream_of(&bed.pair[0].side[0])) & EPOLLOUT, 0);
	for (int n = 0; n < 10; n++)
		turn();
	assert_int_equal(put(0, 0, 100, 0), 100);
	all_arrived();
	close_all();
}

/* --- a program that closes while a failover begins --- */

static struct shunt_sys slow;

static void close_second(void)
{
	close_side(&bed.pair[1].side[0]);
}

/* Of the first stream has just been told, of the second not yet. */
static ssize_t tell_and_close(int fd, const struct msghdr *message, int flags)
{
	const struct shunt_message *said = message->msg_iov->iov_base;

	if (armed && message->msg_iov->iov_len == sizeof(*said) && said->type == SHUNT_MSG_LEAVE) {
		armed = false;
		role_play_another(close_second);
	}
	return sendmsg(fd, message, flags);
}

void closed_while_others_are_told(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct side *side = &bed.pair[1].side[0];
	uint8_t byte;

	(void)state;
	config.retain = 1;
	make_bed(&config, 2);
	slow = *engines[0]->sys;
	slow.sendmsg = tell_and_close;
	shunt_engine_surround(engines[0], &slow);
	armed = true;
	soft_qp_fault(bed.lane[0]->qp, SOFT_FAULT_KILL);
	assert_int_equal(put(1, 0, 100, 0), 100);
	assert_int_equal(shunt_stream_shutdown(engines[0], side->fd, stream_of(side), SHUT_WR), 0);
	for (int n = 0; n < 10; n++)
		turn();
	assert_false(armed);
	get(1, 0, BUFFER);
	assert_int_equal(bed.received[1][0], bed.sent[1][0]);
	assert_int_equal(receive_some(&bed.pair[1].side[1], &byte, 1, MSG_DONTWAIT), 0);
	close_side(&bed.pair[1].side[1]);
	bed.pairs = 1;
	close_all();
}

/* --- a program that hands its connection over as soon as that is on a link --- */

static ssize_t see_acceptance(int fd, const struct msghdr *message, int flags)
{
	const struct shunt_message *said = message->msg_iov->iov_base;

	if (said->type == SHUNT_MSG_ACCEPT) {
		armed = false;
		assert_int_not_equal(
			atomic_load(&stream_sender_lock(stream_of(&bed.pair[0].side[1]))->word), 0);
	}
	return sendmsg(fd, message, flags);
}

/* The claimant could answer nothing that comes before. */
void an_acceptance_comes_first(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	make_bed(&config, 0);
	slow = *engines[1]->sys;
	slow.sendmsg = see_acceptance;
	shunt_engine_surround(engines[1], &slow);
	armed = true;
	first_pair();
	assert_false(armed);
	end_bed();
}

/* --- a program that exits while another of its threads reads --- */

/* The peer has closed, so both ends have released the stream, and its link ends. Its memory is there until the process is gone. */
void an_exit_leaves_the_memory_to_readers(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct side *reader = &bed.pair[0].side[0];
	uint8_t byte;

	(void)state;
	make_bed(&config, 1);
	put(0, 1, 1000, 0);
	all_arrived();
	close_side(&bed.pair[0].side[1]);
	turn();
	engines[0]->forks.pid = getpid();	/* the engines of these tests are of processes that there are not */
	shunt_engine_finish(engines[0]);
	for (int n = 0; n < 10; n++)
		turn();
	assert_non_null(stream_link(stream_of(reader)));
	shunt_link_fail(stream_link(stream_of(reader)), "the test");
	for (int n = 0; n < 10; n++)
		turn();
	assert_non_null(stream_link(stream_of(reader)));
	assert_int_equal(receive_some(reader, &byte, 1, MSG_DONTWAIT), 0);
	close_side(reader);
	bed.pairs = 0;
}
