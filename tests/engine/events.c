/* SPDX-License-Identifier: MIT */
/* Events of an armed CQ: arrivals, and completions of sends only where work waits for them (CP-05). */
#include "tests/engine/bed.h"
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "core/base/signal_defer.h"
#include "core/device/soft/soft.h"
#include "core/stream/ready.h"

/* An event is there for who sleeps on the channel of engine 0; it is taken. */
static bool woken(void)
{
	struct pollfd fd = { .fd = engines[0]->group.bell, .events = POLLIN };
	bool is = poll(&fd, 1, 0) == 1;

	shunt_group_take_event(&engines[0]->group);
	return is;
}

static void arm(void)
{
	shunt_lock_take(&engines[0]->group.lock);
	shunt_group_arm(&engines[0]->group);
	shunt_lock_leave(&engines[0]->group.lock);
}

void sends_wake_nobody(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	config.signal_every = 1;
	make_bed(&config, 1);
	woken();
	arm();
	for (int i = 0; i < 20; i++)
		put(0, 0, 64, 0);
	assert_int_equal(COUNTED(signaled), 20);
	assert_false(woken());
	put(0, 1, 64, 0);
	assert_true(woken());
	end_bed();
}

void sends_wake_who_waits_for_them(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	config.window_wrs = 1;
	make_bed(&config, 2);
	stall(true);
	put(0, 0, 64, 0);
	put(1, 0, 64, 0);
	assert_int_equal(atomic_load(&bed.lane[0]->waiting), 1);
	woken();
	arm();
	soft_qp_fault(bed.lane[0]->qp, SOFT_FAULT_NONE);
	shunt_group_poll(&engines[0]->group);	/* which is when the device goes on */
	assert_true(woken());
	end_bed();
}

static struct shunt_sys yielding;
static int yields;

static int send_meanwhile(void)
{
	if (!yields++)
		put(0, 1, 64, 0);
	return 0;
}

/* A look without time takes what comes only then, if its thread sleeps next (core/poll/linger.h). */
void a_last_look_goes_on(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct epoll_event event = { .events = EPOLLIN };
	int set = epoll_create1(0);

	(void)state;
	config.spin_us = 1000;
	make_bed(&config, 1);
	warm(0);
	drain();
	shunt_file_epoll(engines[0], set);
	assert_int_equal(
		shunt_epset_ctl(engines[0], set, EPOLL_CTL_ADD, bed.pair[0].side[0].fd, &event), 0);
	engines[0]->group.single_core = false;
	yielding = *engines[0]->sys;
	yielding.yield = send_meanwhile;
	engines[0]->group.sys = &yielding;
	assert_int_equal(reported(set), 0);
	assert_int_equal(yields, 0);
	shunt_thread_sleeps_next(true);
	assert_int_equal(reported(set), EPOLLIN);
	shunt_thread_sleeps_next(false);
	assert_int_equal(yields, 1);
	engines[0]->group.sys = engines[0]->sys;
	shunt_file_closing(engines[0], set);
	close(set);
	all_arrived();
	end_bed();
}

/*
 * TCP has ended both ways, and the set has asked for the reader's end alone: that the kernel never leaves out. Before the
 * link's FIN, behind which bytes may be, there is no end.
 */
void a_hangup_is_an_end(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct shunt_stream *stream;

	(void)state;
	make_bed(&config, 1);
	warm(0);
	stream = stream_of(&bed.pair[0].side[0]);
	assert_int_equal(shunt_ready_reset(stream, EPOLLHUP | EPOLLIN | EPOLLOUT), EPOLLOUT);
	assert_int_equal(shunt_ready_kernel(stream, EPOLLIN | EPOLLOUT), 0); /* it would say so for ever */
	assert_int_equal(shunt_ready_reset(stream, EPOLLHUP | EPOLLERR) & (EPOLLHUP | EPOLLIN),
			 EPOLLHUP | EPOLLIN);
	assert_int_equal(shunt_stream_shutdown(engines[1], bed.pair[0].side[1].fd,
					       stream_of(&bed.pair[0].side[1]), SHUT_WR),
			 0);
	turn();
	assert_int_equal(shunt_ready_reset(stream, EPOLLHUP) & (EPOLLHUP | EPOLLRDHUP | EPOLLIN),
			 EPOLLHUP | EPOLLRDHUP | EPOLLIN);
	assert_int_equal(shunt_ready_reset(stream, EPOLLOUT), EPOLLOUT);
	end_bed();
}

static const struct shunt_verbs *verbs;
static uint32_t depth;

static int see_depth(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **context)
{
	depth = shunt_signal_defer.depth;
	return verbs->get_cq_event(channel, cq, context);
}

/* A signal handler that came then, and polls, would wait for the device's lock for ever. */
void no_handler_comes_while_an_event_is_taken(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct shunt_device *device;
	struct shunt_verbs seen;

	(void)state;
	make_bed(&config, 1);
	device = bed.lane[0]->link->device;
	verbs = device->verbs;
	seen = *verbs;
	seen.get_cq_event = see_depth;
	device->verbs = &seen;
	depth = 0;
	woken();
	device->verbs = verbs;
	assert_int_equal(depth, 1);
	assert_int_equal(shunt_signal_defer.depth, 0);
	end_bed();
}
