/* SPDX-License-Identifier: MIT */
/* Bytes, ends and resets that TCP still owes when a link fails, or when its channel was faster. See batch.c. */
#include "tests/engine/bed.h"
#include <poll.h>
#include <errno.h>
#include <unistd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include "core/device/soft/soft.h"
#include "core/lane/fault_device.h"
#include "core/peer/attach.h"
#include "core/peer/link_end.h"
#include "core/service.h"
#include "core/stream/proof.h"
#include "core/stream/ready.h"
#include "core/stream/retire.h"

/* --- the channel is faster than the link --- */

/* One more pair, whose acceptor has granted the claim, which the other has not heard. */
static void grant(struct pair *pair)
{
	connect_pair(pair);
	send_some(&pair->side[0], "x", 1, MSG_DONTWAIT);
	for (int i = 0; i < 2; i++)	/* it is used, and claimed */
		shunt_service_step(engines[0], 0);
	receive_some(&pair->side[1], &(char) { 0 }, 1, MSG_DONTWAIT);
	for (int i = 0; i < 3; i++)
		shunt_service_step(engines[1], 0);
	assert_true(shunt_stream_is_linked(stream_of(&pair->side[1])));
	assert_false(shunt_stream_is_linked(stream_of(&pair->side[0])));
}

/*
 * The program reads TCP's end, and then both ends attach. FIN is still on its way: the next call
 * finds the same end, and so does the call behind FIN.
 */
void an_end_that_was_read_stays(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct side *reader;
	struct pair pair;
	char byte;

	(void)state;
	make_bed(&config, 1);
	grant(&pair);
	reader = &pair.side[0];
	soft_qp_fault(bed.lane[1]->qp, SOFT_FAULT_STALL);
	assert_int_equal(shunt_stream_shutdown(engines[1], pair.side[1].fd,
					       stream_of(&pair.side[1]), SHUT_WR),
			 0);
	assert_int_equal(receive_some(reader, &byte, 1, MSG_DONTWAIT), 0);
	assert_false(shunt_stream_is_linked(stream_of(reader)));
	shunt_service_step(engines[0], 0);
	assert_true(shunt_stream_is_linked(stream_of(reader)));
	assert_int_equal(receive_some(reader, &byte, 1, MSG_DONTWAIT), 0);
	soft_qp_fault(bed.lane[1]->qp, SOFT_FAULT_NONE);
	for (int i = 0; i < 5; i++)
		turn();
	assert_int_equal(receive_some(reader, &byte, 1, MSG_DONTWAIT), 0);
	assert_int_equal(atomic_load(&engines[0]->links.distrusted), 0);
	close_side(&pair.side[0]);
	close_side(&pair.side[1]);
	end_bed();
}

/* The acceptor has asked the other end to hand the stream back; that refuses it, and the link dies before it has answered. */
void a_question_goes_with_its_seat(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct shunt_stream *stream;
	struct pair pair;
	struct role role;
	char byte;

	(void)state;
	make_bed(&config, 1);
	grant(&pair);
	stream = stream_of(&pair.side[1]);
	shunt_retire_begin(engines[1], stream, SHUNT_CAUSE_SPLICE);
	role = role_serve(engines[1]);
	assert_true(shunt_attach_revert(engines[1], stream));
	shunt_link_kill(stream_link(stream), "the test");
	shunt_streams_vacate(stream);
	role_rest(&role);
	close_side(&pair.side[0]);
	assert_int_equal(receive_some(&pair.side[1], &byte, 1, MSG_DONTWAIT), 0);
	close_side(&pair.side[1]);
	leave_bed();
}

/* The peer has switched, sent and ended; CONFIRM is not here. */
static void end_early(struct pair *pair, bool modelled)
{
	struct shunt_config config = small_config(HYBRID);
	static const uint8_t bytes[1000] = { 1 };

	make_bed(&config, 1);
	grant(pair);
	engines[1]->config.soft_model[0] = modelled;
	if (modelled)
		stall(true);
	else
		assert_int_equal(shunt_fault_device_set(&engines[1]->group, "stall", NULL, 0), 0);
	for (int i = 0; i < 3; i++)
		shunt_service_step(engines[0], 0);
	assert_true(stream_sends_on_link(stream_of(&pair->side[0])));
	assert_int_equal(send_some(&pair->side[0], bytes, sizeof(bytes), MSG_DONTWAIT),
			 sizeof(bytes));
	close_side(&pair->side[0]);
	assert_false(stream_is_agreed(stream_of(&pair->side[1])));
}

static void find_all(struct pair *pair)
{
	uint8_t bytes[1001];

	assert_int_equal(receive_some(&pair->side[1], bytes, sizeof(bytes), MSG_DONTWAIT), 1000);
	assert_int_equal(receive_some(&pair->side[1], bytes, sizeof(bytes), MSG_DONTWAIT), 0);
	close_side(&pair->side[1]);
	leave_bed();
}

/*
 * Completions that a fault holds back are seen before the kernel's end is believed: the kernel's
 * end overtakes no device.
 */
void no_end_overtakes_what_is_held_back(void **state)
{
	struct pair pair;

	(void)state;
	end_early(&pair, false);
	find_all(&pair);
}

/* But the modelled one. */
void an_end_waits_for_the_confirmation(void **state)
{
	struct pair pair;
	uint8_t byte;

	(void)state;
	end_early(&pair, true);
	assert_int_equal(receive_some(&pair.side[1], &byte, 1, MSG_DONTWAIT), -EAGAIN);
	stall(false);
	for (int i = 0; i < 10; i++)
		turn();
	find_all(&pair);
}

/* Nor does what a dead queue pair had to bring: who has sent it says that it did. */
void an_end_waits_for_what_a_dead_queue_pair_owes(void **state)
{
	struct pair pair;
	uint8_t byte;

	(void)state;
	end_early(&pair, true);
	engines[1]->config.soft_model[0] = 0;
	role_break_link(bed.lane[1]->link, "the test");
	assert_int_equal(receive_some(&pair.side[1], &byte, 1, MSG_DONTWAIT), -EAGAIN);
	stall(false);
	for (int i = 0; i < 10; i++)
		turn();
	assert_int_equal(receive_some(&pair.side[1], &byte, 1, MSG_DONTWAIT), -ECONNRESET);
	close_side(&pair.side[1]);
	leave_bed();
}

static void leave_the_link(int side)
{
	stream_turn(stream_of(&bed.pair[0].side[side]), false);
}

/*
 * The sender was asked to hand its stream back. It has done so at a byte that the reader has
 * passed, and has not heard of that.
 */
void what_was_passed_is_not_sent_again(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct shunt_stream *reader, *sender;
	uint64_t allowed;

	(void)state;
	make_bed(&config, 1);
	reader = stream_of(&bed.pair[0].side[0]);
	sender = stream_of(&bed.pair[0].side[1]);
	assert_int_equal(setsockopt(bed.pair[0].side[1].fd, IPPROTO_TCP, TCP_NODELAY, &(int) { 1 },
				    sizeof(int)),
			 0);
	leave_the_link(0);
	while (stream_switches_unpassed(reader))
		turn();
	assert_int_equal(put(0, 1, 1000, 0), 1000);
	leave_the_link(1);
	allowed = atomic_exchange(&bed.lane[0]->allowed, 0);
	assert_int_equal(get(0, 1, BUFFER), 1000);
	assert_int_equal(get(0, 1, BUFFER), 0);
	assert_false(stream_receives_on_link(reader));
	shunt_retire_begin(engines[0], reader, SHUNT_CAUSE_SPLICE);
	while (stream_retiring(reader) == SHUNT_RETIRING)
		turn();
	assert_int_equal(stream_asked(sender), SHUNT_GIVEN);
	assert_int_not_equal(stream_switches_unpassed(sender), 0);
	assert_int_equal(get(0, 1, BUFFER), 0);
	atomic_store(&bed.lane[0]->allowed, allowed);
	shunt_lane_kick(bed.lane[0]);
	assert_int_equal(put(0, 1, 100, 0), 100);
	all_arrived();
	end_bed();
}

static void assert_owing(uint64_t owing)
{
	for (int i = 0; i < 10; i++)
		turn();
	for (int i = 0; i < 2; i++)
		assert_int_equal(atomic_load(&engines[i]->work.resends), owing);
}

/* The kernel has room at one of them, which is filled. */
static bool takes_more(const int fd[2])
{
	uint8_t bytes[1000] = { 0 };
	bool taken = false;

	for (int i = 0; i < 2; i++) {
		while (send(fd[i], bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
			taken = true;
		assert_int_equal(errno, EAGAIN);
	}
	return taken;
}

/*
 * Neither program is there to read what the other's engine still has to send: what comes to a closed socket is refused.
 * While a nonce may be among it, that waits.
 */
void nobody_waits_for_who_has_closed(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct side *side = bed.pair[0].side;
	struct shunt_stream *stream[2];
	int copy[2];

	(void)state;
	config.retain = true;
	make_bed(&config, 1);
	for (int i = 0; i < 2; i++) {
		stream[i] = stream_of(&side[i]);
		copy[i] = dup(side[i].fd);
		assert_true(copy[i] >= 0);
		soft_qp_fault(bed.lane[i]->qp, SOFT_FAULT_STALL);
		assert_int_equal(put(0, i, 1000, 0), 1000);
	}
	for (int i = 0; i < 2; i++)
		close_side(&side[i]);
	while (takes_more(copy)) /* a full machine may deliver later, and then there is room again */
		poll(NULL, 0, 20);
	for (int i = 0; i < 2; i++) {
		close(copy[i]);
		stream_set_proof(stream[i], SHUNT_EXPECTED);	/* behind bytes that are still to come */
	}
	role_break_link(bed.lane[0]->link, "the test");
	assert_owing(1);
	for (int i = 0; i < 2; i++) {
		stream_set_proof(stream[i], SHUNT_PROVEN);
		shunt_proof_heard(engines[i], stream[i]);
	}
	assert_owing(0);
	leave_closed_bed();
}

/* The sender's end is the kernel's since it asked for that, and closed: behind what the ring holds TCP has gone on. */
void who_has_gone_back_gives_nothing_back(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct shunt_stream *reader, *sender;
	struct side *side = bed.pair[0].side;

	(void)state;
	make_bed(&config, 1);
	reader = stream_of(&side[0]);
	sender = stream_of(&side[1]);
	assert_int_equal(put(0, 1, 1000, 0), 1000);
	shunt_retire_begin(engines[1], sender, SHUNT_CAUSE_SPLICE);
	while (stream_retiring(sender) == SHUNT_RETIRING)
		turn();
	assert_int_equal(shunt_stream_retire(engines[1], side[1].fd, sender, SHUNT_CAUSE_SPLICE),
			 0);
	assert_int_equal(put(0, 1, 500, 0), 500);
	close_side(&side[1]);
	shunt_retire_begin(engines[0], reader, SHUNT_CAUSE_SPLICE);
	while (stream_retiring(reader) == SHUNT_RETIRING)
		turn();
	assert_int_equal(stream_retiring(reader), SHUNT_CANNOT_RETIRE);
	while (bed.received[0][1] < bed.sent[0][1])
		get(0, 1, BUFFER);
	close_side(&side[0]);
	leave_closed_bed();
}

/* The peer has reset it, the program has not heard of that, and wants the kernel's socket: then the kernel is to tell. */
void a_reset_is_told_by_the_kernel_then(void **state)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct shunt_config config = small_config(HYBRID);
	int set = epoll_create1(EPOLL_CLOEXEC);
	struct side *side = bed.pair[0].side;
	struct shunt_stream *stream;

	(void)state;
	make_bed(&config, 1);
	stream = stream_of(&side[1]);
	shunt_file_epoll(engines[1], set);
	assert_int_equal(shunt_epset_ctl(engines[1], set, EPOLL_CTL_ADD, side[1].fd, &event), 0);
	assert_int_equal(put(0, 1, 1000, 0), 1000);
	close_side(&side[0]);	/* with what it has not read */
	while (!stream_error(stream))
		turn();
	shunt_retire_begin(engines[1], stream, SHUNT_CAUSE_SPLICE);
	while (stream_retiring(stream) == SHUNT_RETIRING)
		turn();
	assert_int_equal(stream_retiring(stream), SHUNT_CANNOT_RETIRE);
	assert_int_equal(
		shunt_epset_wait(engines[1], set, &event, 1, &(struct timespec) { 0, 0 }, NULL), 1);
	assert_true(event.events & EPOLLIN && event.events & EPOLLHUP);
	close_side(&side[1]);
	shunt_file_closing(engines[1], set);
	close(set);
	leave_closed_bed();
}

/* The link was faster, and has told the program of what the kernel hears then, or when nobody asks it. */
void a_reset_told_by_the_link_is_not_the_kernels(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct side *side = bed.pair[0].side;
	uint8_t byte;

	(void)state;
	for (int heard = 0; heard < 2; heard++) {
		struct shunt_stream *stream;
		int error = 0;

		make_bed(&config, 1);
		stream = stream_of(&side[1]);
		stream_request(stream_of(&side[0]), SHUNT_WORK_RESET);
		while (!stream_error(stream))
			turn();
		assert_int_equal(receive_some(&side[1], &byte, 1, MSG_DONTWAIT), -ECONNRESET);
		if (heard)
			shunt_streams_reset_tcp(engines[0]->sys, side[0].fd);
		shunt_retire_begin(engines[1], stream, SHUNT_CAUSE_SPLICE);
		while (stream_retiring(stream) == SHUNT_RETIRING)
			turn();
		assert_int_equal(stream_retiring(stream),
				 heard ? SHUNT_RETIRED : SHUNT_CANNOT_RETIRE);
		if (!heard)
			shunt_streams_reset_tcp(engines[0]->sys, side[0].fd);
		while (heard && !shunt_stream_is_plain(stream))
			turn();
		if (heard)
			getsockopt(side[1].fd, SOL_SOCKET, SO_ERROR, &error,
				   &(socklen_t) { sizeof(error) });
		else
			error = shunt_stream_take_error(stream);
		assert_int_equal(error, 0);
		close_side(&side[0]);
		close_side(&side[1]);
		leave_closed_bed();
	}
}

/* A look past the end of the link is not told how the connection has ended: the next receive is. */
void a_look_takes_no_error(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct side *side = bed.pair[0].side;
	uint8_t bytes[BUFFER];

	(void)state;
	make_bed(&config, 1);
	assert_int_equal(put(0, 0, 1000, 0), 1000);
	role_kill_link(bed.lane[1]->link, "the test");
	assert_int_equal(setsockopt(side[0].fd, SOL_SOCKET, SO_LINGER, &(struct linger) { 1, 0 },
				    sizeof(struct linger)),
			 0);
	close_side(&side[0]);
	assert_int_equal(receive_some(&side[1], bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT),
			 1000);
	assert_int_equal(get(0, 0, BUFFER), 1000);
	assert_true(receive_some(&side[1], bytes, sizeof(bytes), MSG_DONTWAIT) < 0);
	close_side(&side[1]);
	leave_closed_bed();
}

/* The waiter for a handback sleeps until the lane has posted all. After a QP failure it sleeps until the link goes. */
void nothing_is_awaited_of_the_dead(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct shunt_stream *reader;

	(void)state;
	config.ring_min = config.ring_max = 16 << 10;
	make_bed(&config, 1);
	reader = stream_of(&bed.pair[0].side[1]);
	leave_the_link(1);	/* it has nothing to announce when it asks */
	while (stream_switches_unpassed(reader))
		turn();
	assert_int_equal(put(0, 0, 9000, 0), 9000);
	atomic_store(&bed.lane[1]->allowed, 0);
	assert_int_equal(get(0, 0, BUFFER), 9000);
	assert_true(atomic_load(&reader->seat->work) & SHUNT_WORK_CREDIT);
	shunt_retire_begin(engines[1], reader, SHUNT_CAUSE_SPLICE);
	assert_false(shunt_ready_answered(reader));
	while (stream_retiring(reader) != SHUNT_RETIRED)
		turn();
	assert_false(shunt_ready_answered(reader));
	atomic_store(&bed.lane[1]->failed, true);
	assert_false(shunt_ready_answered(reader));
	role_kill_link(stream_link(reader), "the test");
	assert_true(shunt_ready_answered(reader));
	close_side(&bed.pair[0].side[0]);
	close_side(&bed.pair[0].side[1]);
	leave_bed();
}

/* Closed here before it was accepted there, and there at once: that and REFUSE come by different ways. */
void a_refusal_overtakes_what_was_sent(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct pair pair;

	(void)state;
	make_bed(&config, 1);
	grant(&pair);
	close_side(&pair.side[0]);
	close_side(&pair.side[1]);
	assert_int_equal(shunt_fault_device_set(&engines[0]->group, "stall:count=1", NULL, 0), 0);
	for (int i = 0; i < 10; i++)
		turn();
	assert_int_equal(bed.lane[0]->link->seated, 2);
	assert_int_equal(shunt_fault_device_set(&engines[0]->group, "", NULL, 0), 0);
	for (int i = 0; i < 10; i++)
		turn();
	assert_int_equal(bed.lane[0]->link->seated, 1);
	end_bed();	/* nobody is distrusted */
}

/* Both directions have been on the link, and are on TCP again: there is nothing left to refuse. */
void a_refusal_comes_before_a_switch(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct shunt_message message = { .type = SHUNT_MSG_REFUSE };
	struct shunt_stream *accepted;

	(void)state;
	make_bed(&config, 1);
	accepted = stream_of(&bed.pair[0].side[1]);
	leave_the_link(0);
	leave_the_link(1);
	for (int i = 0; i < 10; i++) {
		get(0, 0, BUFFER);
		get(0, 1, BUFFER);
		turn();
	}
	assert_false(stream_receives_on_link(accepted) || stream_sends_on_link(accepted));
	message.stream = accepted->seat->id;
	shunt_link_send(bed.lane[0]->link, &message, NULL, 0);
	turn();
	assert_int_equal(stream_state(accepted), SHUNT_LINKED);
	assert_int_equal(counted(1, "links_distrusted"), 1);
	close_side(&bed.pair[0].side[0]);
	close_side(&bed.pair[0].side[1]);
	leave_bed();
}
