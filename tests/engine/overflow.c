/* SPDX-License-Identifier: MIT */
/*
 * A sender's stage takes bytes beyond its peer's ring (overflow.h): they must arrive, and the
 * sender must hear of room.
 */
#include "tests/engine/bed.h"
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include "core/device/soft/soft.h"
#include "core/lane/fault_device.h"
#include "core/lane/send_queue.h"
#include "core/service.h"
#include "core/stream/hand_back.h"
#include "core/stream/ready.h"
#include "core/stream/retire.h"

#define RING 16384
#define LARGE_RING (1 << 20)	/* bytes; more than a socket takes at once, however small its buffer is */
#define MS 1000000ull

static struct shunt_stream *sender;

/* A pair on the link, whose rings do not grow. */
static void make_full_pair(struct shunt_config *config)
{
	config->ring_min = config->ring_max = RING;
	make_bed(config, 1);
	sender = stream_of(&bed.pair[0].side[0]);
}

static void fill(void)
{
	while (put(0, 0, BUFFER, 0))
		;
}

/* The reader has given no credit for so long that the stage takes more. */
static void lose_patience(void)
{
	for (int i = 0; i < 2; i++) {
		shunt_service_step(engines[0], 0);
		pair_skew += 20 * MS;
	}
	shunt_service_step(engines[0], 0);
}

static void nobody_was_wrong(void)
{
	assert_int_equal(atomic_load(&engines[0]->links.distrusted), 0);
	assert_int_equal(atomic_load(&engines[1]->links.distrusted), 0);
}

/* The ring is full behind an UPGRADE of which the reader has not heard. */
static void fill_behind_upgrade(void)
{
	struct shunt_config config = small_config(HYBRID);

	make_full_pair(&config);
	stream_want_link(sender, false);
	put(0, 0, 1, 0);
	all_arrived();
	stream_want_link(sender, true);
	fill();
	assert_int_equal(stream_switches_unpassed(sender), 1);
}

/* shutdown() repeats over TCP what the reader may not get, also behind an UPGRADE of which that has not heard. */
void an_end_leaves_behind_what_is_not_heard(void **state)
{
	struct side *side = bed.pair[0].side;
	char byte;

	(void)state;
	fill_behind_upgrade();
	assert_int_equal(shunt_stream_shutdown(engines[0], side[0].fd, sender, SHUT_WR), 0);
	assert_false(stream_sends_on_link(sender));
	while (bed.received[0][0] < bed.sent[0][0]) {
		assert_true(get(0, 0, BUFFER) > 0);
		turn();
	}
	assert_int_equal(receive_some(&side[1], &byte, 1, MSG_DONTWAIT), 0);
	close_side(&side[0]);
	close_side(&side[1]);
	leave_closed_bed();
	nobody_was_wrong();
}

/* TCP has brought all that and the end before the reader's device tells of the UPGRADE: the end is an edge then. */
void an_end_behind_what_was_overtaken_is_an_edge(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	int set = epoll_create1(EPOLL_CLOEXEC);
	struct side *side = bed.pair[0].side;
	struct shunt_stream *ender;
	char byte;

	(void)state;
	make_full_pair(&config);
	ender = stream_of(&side[1]);
	stream_want_link(ender, false);
	put(0, 1, 1, 0);
	all_arrived();
	shunt_file_epoll(engines[0], set);
	assert_int_equal(shunt_epset_ctl(engines[0], set, EPOLL_CTL_ADD, side[0].fd, &event), 0);
	assert_int_equal(shunt_fault_device_set(&engines[0]->group, "stall", NULL, 0), 0);
	stream_want_link(ender, true);
	assert_int_equal(put(0, 1, 100, 0), 100);
	assert_true(stream_sends_on_link(ender));
	assert_int_equal(shunt_stream_shutdown(engines[1], side[1].fd, ender, SHUT_WR), 0);
	assert_false(stream_sends_on_link(ender));
	assert_int_equal(reported(set), EPOLLIN);
	assert_int_equal(get(0, 1, 100), 100);
	assert_int_equal(receive_some(&side[0], &byte, 1, MSG_DONTWAIT), -EAGAIN);
	assert_int_equal(reported(set), 0);
	assert_int_equal(shunt_fault_device_set(&engines[0]->group, "", NULL, 0), 0);
	for (int n = 0; n < 5; n++)
		turn();
	assert_int_equal(reported(set), EPOLLIN);
	assert_int_equal(receive_some(&side[0], &byte, 1, MSG_DONTWAIT), 0);
	shunt_file_closing(engines[0], set);
	close(set);
	close_side(&side[0]);
	close_side(&side[1]);
	leave_closed_bed();
	nobody_was_wrong();
}

/*
 * shutdown() when the direction cannot leave the link ends the kernel's socket: close() must not
 * send bytes on that.
 */
void an_end_that_cannot_leave_keeps_its_bytes(void **state)
{
	struct side *side = bed.pair[0].side;
	char byte;

	(void)state;
	fill_behind_upgrade();
	lose_patience();
	fill();
	assert_true(stream_waits_for_room(sender));
	assert_int_equal(stream_switches_unpassed(sender), 1);
	engines[0]->config.soft_model[0] = true;	/* as with a device whose HANDBACK may come late */
	assert_int_equal(shunt_stream_shutdown(engines[0], side[0].fd, sender, SHUT_WR), 0);
	engines[0]->config.soft_model[0] = false;
	assert_true(stream_sends_on_link(sender));
	while (stream_switches_unpassed(sender)) {
		get(0, 0, 100);
		turn();
	}
	assert_true(stream_waits_for_room(sender));
	close_side(&side[0]);
	while (bed.received[0][0] < bed.sent[0][0]) {
		assert_true(get(0, 0, BUFFER) > 0);
		turn();
	}
	assert_int_equal(receive_some(&side[1], &byte, 1, MSG_DONTWAIT), 0);
	close_side(&side[1]);
	leave_closed_bed();
	nobody_was_wrong();
}

static int (*post_send)(struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **);

static int post_no_handback(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	if (!carries(wr, SHUNT_IMM_HANDBACK) && !carries(wr, SHUNT_IMM_REPEAT))
		return post_send(qp, wr, bad);
	*bad = wr;
	return ENOMEM;
}

/* A queue pair that does not take the HANDBACK leaves all as it was, and the answer to the UPGRADE before it is right. */
void an_end_that_is_not_posted_was_not_announced(void **state)
{
	struct ibv_context_ops *ops;

	(void)state;
	fill_behind_upgrade();
	ops = &bed.lane[0]->link->device->context->ops;
	post_send = ops->post_send;
	ops->post_send = post_no_handback;
	shunt_hand_back_all(engines[0], SHUNT_NEVER);
	ops->post_send = post_send;
	assert_true(stream_sends_on_link(sender));
	assert_int_equal(stream_switches_unpassed(sender), 1);
	while (bed.received[0][0] < bed.sent[0][0]) {
		assert_true(get(0, 0, BUFFER) > 0);
		turn();
	}
	assert_int_equal(stream_switches_unpassed(sender), 0);
	leave_bed();
	nobody_was_wrong();
}

static enum soft_fault fault_of_repeat;

static int fail_at_repeat(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	if (carries(wr, SHUNT_IMM_REPEAT))
		soft_qp_fault(qp, fault_of_repeat);
	return post_send(qp, wr, bad);
}

static void end_with(enum soft_fault fault)
{
	struct shunt_config config = small_config(HYBRID);
	struct side *side = bed.pair[0].side;
	struct ibv_context_ops *ops;
	char byte;

	fault_of_repeat = fault;
	make_full_pair(&config);
	assert_int_equal(put(0, 0, 1000, 0), 1000);
	turn();
	ops = &bed.lane[0]->link->device->context->ops;
	post_send = ops->post_send;
	ops->post_send = fail_at_repeat;
	assert_int_equal(shunt_stream_shutdown(engines[0], side[0].fd, sender, SHUT_WR), 0);
	ops->post_send = post_send;
	if (fault == SOFT_FAULT_STALL)
		soft_qp_fault(bed.lane[0]->qp, SOFT_FAULT_NONE);
	for (int n = 0; n < 10; n++)
		turn();
	assert_int_equal(get(0, 0, BUFFER), 1000);
	assert_int_equal(receive_some(&side[1], &byte, 1, MSG_DONTWAIT), 0);
	close_side(&side[0]);
	close_side(&side[1]);
	leave_closed_bed();
	nobody_was_wrong();
}

/* Nor does one that dies of it: the reader never hears of a repeat, and must not take its bytes for what follows. */
void an_end_that_kills_its_queue_pair_repeats_nothing(void **state)
{
	(void)state;
	end_with(SOFT_FAULT_KILL);
}

/* Nor one whose device stalls there, and goes on later: the direction stays on the link, and a late repeat would end it. */
void an_end_that_stalls_repeats_nothing(void **state)
{
	(void)state;
	end_with(SOFT_FAULT_STALL);
}

/* The reader gets all that was sent, and neither end has distrusted the other. */
static void read_all_and_leave(void)
{
	while (bed.received[0][0] < bed.sent[0][0]) {
		turn();
		get(0, 0, BUFFER);
	}
	leave_bed();
	nobody_was_wrong();
}

/* Another thread holds the lane all the time, as where its window is full: a wide stage takes bytes all the same. */
void a_held_lane_does_not_close_a_wide_stage(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	make_full_pair(&config);
	fill();
	lose_patience();
	assert_int_equal(put(0, 0, 100, 0), 100);
	role_take_as_another(&bed.lane[0]->lock);
	assert_true(shunt_ready_user(sender) & EPOLLOUT);
	assert_int_equal(put(0, 0, 100, 0), 100);
	role_leave_as_another(&bed.lane[0]->lock);
	read_all_and_leave();
}

/* The reader has not read what fills the ring, and TCP has no room for all of that. */
static void make_unread_pair(struct shunt_config *config)
{
	const int small = 2048;
	struct side *side = bed.pair[0].side;

	config->ring_min = config->ring_max = LARGE_RING;
	make_bed(config, 1);
	sender = stream_of(&side[0]);
	setsockopt(side[0].fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	setsockopt(side[1].fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	fill();
	turn();
}

/* A repeat whose rest has no room does not count, because the end that made it can still be asked. Its answer stands when
 * the link is over. */
void a_repeat_without_room_does_not_count(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct shunt_stream *reader;

	(void)state;
	make_unread_pair(&config);
	reader = stream_of(&bed.pair[0].side[1]);
	assert_int_equal(
		shunt_stream_shutdown(engines[0], bed.pair[0].side[0].fd, sender, SHUT_WR), 0);
	assert_false(stream_owes_tcp(sender));
	shunt_retire_begin(engines[1], reader, SHUNT_CAUSE_PASSED);
	for (int i = 0; i < 10; i++)
		turn();
	assert_true(shunt_ready_answered(reader));
	assert_false(shunt_retire_alone(engines[1], reader));
	role_kill_link(bed.lane[1]->link, "the test");
	assert_false(shunt_retire_alone(engines[1], reader));
	read_all_and_leave();
}

/* Nobody can be asked when the process is gone: then the rest waits for room. */
void a_repeat_at_exit_lets_its_rest_wait(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	make_unread_pair(&config);
	shunt_hand_back_all(engines[0], SHUNT_NEVER);
	assert_false(stream_sends_on_link(sender));
	assert_true(stream_owes_tcp(sender));
	read_all_and_leave();
}

static int looks;

static void let_go_at_the_third_look(void)
{
	if (++looks == 3)
		role_leave_as_another(stream_sender_lock(sender));
}

/* exit() repeats what is unread also where another thread is just in a call, but does not wait for that for ever. */
void an_exit_awaits_the_call_of_another(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	make_full_pair(&config);
	put(0, 0, 1000, 0);
	turn();
	role_take_as_another(stream_sender_lock(sender));
	shunt_hand_back_all(engines[0], shunt_now(engines[0]));
	assert_true(stream_sends_on_link(sender));
	looks = 0;
	pair_looked = let_go_at_the_third_look;
	shunt_hand_back_all(engines[0], SHUNT_NEVER);
	pair_looked = NULL;
	assert_false(stream_sends_on_link(sender));
	read_all_and_leave();
}

/* A sender has been told of room beyond the ring. It sends when the reader has taken a little: not enough for the ring. */
void room_that_was_told_of_is_there(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	make_full_pair(&config);
	fill();
	lose_patience();
	assert_int_equal(put(0, 0, BUFFER, 0), BUFFER);
	assert_true(shunt_ready_user(sender) & EPOLLOUT);
	get(0, 0, RING * 3 / 4);
	shunt_group_poll(&engines[0]->group);
	assert_false(stream_stage_is_open(sender));
	assert_int_equal(stream_room(sender), 0);
	assert_int_equal(put(0, 0, 1, 0), 1);
	read_all_and_leave();
}

/* The peer asks for the direction while its rest is TCP's already: nothing comes twice. */
void a_hand_over_is_not_given_back(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	make_full_pair(&config);
	fill();
	lose_patience();
	fill();
	stream_want_link(sender, false);
	put(0, 0, 1, 0);
	assert_false(stream_sends_on_link(sender));
	assert_true(stream_offset(sender, STREAM_SENT) > stream_offset(sender, STREAM_HANDED_BACK));
	assert_int_equal(stream_switches_unpassed(sender), 1);
	shunt_retire_begin(engines[1], stream_of(&bed.pair[0].side[1]), SHUNT_CAUSE_PASSED);
	while (stream_asked(sender) == SHUNT_NOT_ASKED)
		turn();
	assert_int_equal(stream_asked(sender), SHUNT_DECLINED);
	read_all_and_leave();
}

/*
 * A stream retires though its peer reads nothing, and has not even passed the UPGRADE: the
 * HANDBACK does not wait behind bytes without room.
 */
void a_retirement_does_not_wait_for_the_reader(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	int bytes = 65536;	/* TCP takes all of that */

	(void)state;
	make_full_pair(&config);
	assert_int_equal(setsockopt(bed.pair[0].side[0].fd, SOL_SOCKET, SO_SNDBUF, &bytes,
				    sizeof(bytes)), 0);
	stream_want_link(sender, false);
	put(0, 0, 1, 0);
	all_arrived();
	put(0, 0, 1000, 0);	/* on TCP */
	stream_want_link(sender, true);
	fill();
	lose_patience();
	fill();
	assert_true(stream_waits_for_room(sender));
	assert_int_equal(stream_switches_unpassed(sender), 1);
	shunt_retire_begin(engines[0], sender, SHUNT_CAUSE_PASSED);
	for (int n = 0; n < 100 && !shunt_retire_complete(engines[0], sender); n++)
		turn();
	assert_int_equal(stream_state(sender), SHUNT_PLAIN);
	read_all_and_leave();
}

static struct shunt_sys sleepy;
static int sleeps; /* of a thread of engine 0 */
static bool reads;

/* The peer, which has not heard of the HANDBACK. */
static void answer_too_early(void)
{
	struct shunt_stream *peers = stream_of(&bed.pair[0].side[1]);
	struct shunt_message message = { .type = SHUNT_MSG_LEFT, .stream = sender->seat->id };

	assert_int_equal(shunt_link_send(stream_link(peers), &message, NULL, 0), 0);
}

/* The peer answers during the first sleep. During the next it reads, or gives no room for as long as anybody waits. */
static int sleep_beside_liar(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
			     const sigset_t *mask)
{
	const struct timespec none = { 0 };
	int ready = 0;

	assert_non_null(timeout);
	if (!timeout->tv_sec && !timeout->tv_nsec)	/* the service thread's step, here */
		return ppoll(fds, count, timeout, mask);
	if (!sleeps++)
		answer_too_early();
	else if (!reads)
		pair_skew += timeout->tv_sec * 1000 * MS + timeout->tv_nsec;
	for (int n = 0; n < 10 && !ready; n++) {
		if (sleeps > 1 && reads)
			get(0, 0, BUFFER);
		shunt_service_step(engines[0], 0);
		ready = ppoll(fds, count, &none, mask);
	}
	return ready;
}

/*
 * The HANDBACK waits behind bytes without room where the device keeps what it has sent. The thread that hands the stream
 * back sleeps, though the peer has answered, and is told when all has been posted.
 */
void a_retirement_sleeps_while_there_is_no_room(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	int result;

	(void)state;
	config.retain = 1;
	for (int i = 0; i < 2; i++) {
		make_full_pair(&config);
		fill();
		assert_int_equal(stream_room(sender), 0);
		put(0, 0, 1, 0);
		lose_patience();
		assert_int_equal(put(0, 0, RING / 2, 0), RING / 2);
		assert_true(stream_waits_for_room(sender));
		sleepy = *engines[0]->sys;
		sleepy.ppoll = sleep_beside_liar;
		shunt_engine_surround(engines[0], &sleepy);
		sleeps = 0;
		reads = i;
		result = shunt_stream_retire(engines[0], bed.pair[0].side[0].fd, sender,
					     SHUNT_CAUSE_PASSED);
		assert_in_range(sleeps, 2, 6);
		assert_int_equal(result, reads ? 0 : -ETIMEDOUT);
		assert_int_equal(stream_state(sender), reads ? SHUNT_PLAIN : SHUNT_LINKED);
		leave_bed();
	}
}

/* A reader that resets the connection gets no end behind bytes that it has not got. */
void a_reset_drops_the_rest(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct side *side = bed.pair[0].side;

	(void)state;
	for (int hands_back = 0; hands_back < 2; hands_back++) {
		make_full_pair(&config);
		fill();
		lose_patience();
		fill();
		turn();
		shunt_stream_shutdown(engines[1], side[1].fd, stream_of(&side[1]), SHUT_RDWR);
		while (!stream_is_broken(sender))
			turn();
		assert_true(stream_waits_for_room(sender));
		if (hands_back)
			shunt_retire_begin(engines[0], sender, SHUNT_CAUSE_PASSED);
		assert_int_equal(shunt_stream_shutdown(engines[0], side[0].fd, sender, SHUT_WR), 0);
		for (int n = 0; n < 5; n++)
			turn();
		nobody_was_wrong();
		leave_bed();
	}
}

/*
 * A sender that answers data with a reset drops the rest, too, and its end: behind what has come the reader finds the
 * reset. Its queue pair dies, and the peer asks for what is behind the ring: that is no lie.
 */
void a_sender_that_resets_drops_the_rest(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct side *side = bed.pair[0].side;
	char bytes[256];
	ssize_t got;

	(void)state;
	config.retain = 1;
	make_full_pair(&config);
	fill();
	lose_patience();
	fill();
	assert_true(stream_waits_for_room(sender));
	shunt_stream_shutdown(engines[0], side[0].fd, sender, SHUT_RDWR);
	assert_int_equal(put(0, 1, 100, 0), 100);
	while (!stream_has_refused(sender))
		turn();
	turn();
	assert_true(stream_is_posted(sender));
	while ((got = receive_some(&side[1], bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		;
	assert_int_equal(got, -ECONNRESET);
	shunt_link_fail(bed.lane[0]->link, "the test");
	for (int n = 0; n < 10; n++)
		turn();
	nobody_was_wrong();
	leave_bed();
}

/*
 * A device that is yet to fetch from the stage before keeps this one from growing; the sender is told when it has.
 */
void the_wait_for_a_fetch_ends(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct epoll_event event = { .events = EPOLLOUT | EPOLLET };
	int set = epoll_create1(EPOLL_CLOEXEC), fd;

	(void)state;
	config.inline_bytes = 256;
	make_full_pair(&config);
	shunt_file_epoll(engines[0], set);
	fd = bed.pair[0].side[0].fd;
	assert_int_equal(shunt_epset_ctl(engines[0], set, EPOLL_CTL_ADD, fd, &event), 0);
	assert_int_equal(reported(set), EPOLLOUT);
	soft_qp_fault(bed.lane[0]->qp, SOFT_FAULT_STALL);
	fill();
	assert_int_equal(stream_room(sender), 0);
	assert_true(shunt_send_queue_may_widen(sender->seat));
	shunt_lock_take(stream_sender_lock(sender));
	assert_int_equal(shunt_send_queue_widen(sender->seat, 2 * SHUNT_SEND_QUEUE_BYTES), 0);
	assert_int_equal(shunt_send_queue_widen(sender->seat, 4 * SHUNT_SEND_QUEUE_BYTES),
			 -EBUSY);
	shunt_lock_leave(stream_sender_lock(sender));
	assert_false(shunt_send_queue_may_widen(sender->seat));
	lose_patience();
	assert_true(stream_stage_is_open(sender));
	for (int n = 0; n < 10; n++) {	/* and is not told before */
		turn();
		assert_int_equal(reported(set), 0);
	}
	soft_qp_fault(bed.lane[0]->qp, SOFT_FAULT_NONE);
	turn();
	turn();
	assert_int_equal(reported(set), EPOLLOUT);
	assert_int_equal(put(0, 0, BUFFER, 0), BUFFER);
	assert_int_equal(shunt_epset_ctl(engines[0], set, EPOLL_CTL_DEL, fd, NULL), 0);
	end_bed();
}

/*
 * Where there is no memory for a wider stage the sender waits; it is not told of room that there
 * is not.
 */
void without_memory_a_sender_waits(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct shunt_arena *arena;
	const struct ibv_mr *mr;

	(void)state;
	config.inline_bytes = 256;
	make_full_pair(&config);
	put(0, 0, 1000, 0);	/* it has its usual one */
	all_arrived();
	arena = &stream_link(sender)->arena;
	for (uint64_t size = shunt_arena_most(arena); size > SHUNT_SEND_QUEUE_BYTES; size /= 2)
		while (shunt_arena_take(arena, (uint32_t)size, &mr) != UINT64_MAX)
			;
	fill();
	for (int n = 0; n < 20; n++) {
		lose_patience();
		while (shunt_ready_user(sender) & EPOLLOUT)
			assert_true(put(0, 0, 4000, 0) > 0);
	}
	assert_true(stream_waits_for_room(sender));
	assert_int_equal(stream_memory(sender, STREAM_STAGE), SHUNT_SEND_QUEUE_BYTES);
	end_bed();
}
