/* SPDX-License-Identifier: MIT */
/*
 * A stranger whose service thread answers no LEAVE (core/peer/silent.h): engine 1, which takes no step. The clock is the
 * test's.
 */
#include "tests/engine/liar.h"
#include <errno.h>
#include <poll.h>
#include <unistd.h>
#include "core/api.h"
#include "core/link/patience.h"
#include "core/stream/retire.h"

#define MS 1000000ull

static uint64_t waits;	/* that engine 0 has begun, a millisecond each */

/* The program's thread sleeps, and its service thread works. */
static int sleep_ms(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
		    const sigset_t *mask)
{
	const struct timespec now = { 0, 0 };
	int ready = ppoll(fds, count, &now, mask);

	if (ready || (timeout && !timeout->tv_sec && !timeout->tv_nsec))
		return ready;
	waits++;
	pair_skew += MS;
	shunt_service_step(engines[0], 0);
	return ppoll(fds, count, &now, mask);
}

static void make(int pairs)
{
	static struct shunt_sys sys;

	freeze_clock(true);
	make_strangers();
	sys = *engines[0]->sys;
	sys.ppoll = sleep_ms;
	shunt_engine_surround(engines[0], &sys);
	while (bed.pairs < pairs)
		add_pair();
	all_arrived();
	assert_int_equal(links_of(0), 1);
	waits = 0;
}

/* All bytes that had been sent have come, and the connections work. */
static void end(void)
{
	settle();	/* it wakes up */
	for (int i = 0; i < bed.pairs; i++) {
		put(i, 0, 500, 0);
		put(i, 1, 500, 0);
	}
	for (int n = 0; n < FOREVER && !all_is_out(); n++)
		drain();
	all_arrived();
	assert_int_equal(links_of(0) + links_of(1), 0);
	for (int i = 0; i < bed.pairs; i++)
		close_pair(&bed.pair[i]);
	freeze_clock(false);
}

static struct shunt_stream *ours(int i)
{
	return stream_of(&bed.pair[i].side[0]);
}

static void ask_back(int i)
{
	shunt_retire_begin(engines[0], ours(i), SHUNT_CAUSE_PASSED);
}

static void pass_ms(uint64_t ms)
{
	pair_skew += ms * MS;
	step(0);
}

static const struct unread {
	size_t ours, its;	/* bytes sent by this end, by the other */
	bool begun, full;	/* this end has read some; the stranger's ring has no room for all */
} cases[] = {
	{ 0, 0, false, false },	 { 3000, 0, false, false },   { 0, 3000, false, false },
	{ 0, 3000, true, false }, { 3000, 3000, true, false }, { 60000, 0, false, true },
};

/* Unread bytes of both directions are read once, whether the stranger has answered just then or wakes up later. */
void a_silent_stranger_loses_no_byte(void **state)
{
	(void)state;
	for (size_t n = 0; n < 2 * sizeof(cases) / sizeof(cases[0]); n++) {
		const struct unread *unread = &cases[n / 2];

		make(2);
		for (int i = 0; i < 2; i++) {
			freeze_clock(!unread->full);	/* a sender without room waits a moment for a larger ring */
			put(i, 0, unread->ours, 0);
			for (int k = 0; unread->full && k < 20; k++)
				put(i, 0, unread->ours, 0);
			freeze_clock(true);
			put(i, 1, unread->its, 0);
			if (unread->begun)
				get(i, 1, 1000);
		}
		ask_back(0);
		pass_ms(199);
		assert_int_equal(links_of(0), 1);
		pair_skew += 2 * MS;
		if (n & 1)
			step(1);
		step(0);
		for (int i = n & 1; i < 2; i++) {	/* its bytes are here */
			while (get(i, 1, BUFFER))
				;
			if (links_of(0) == 0)
				assert_int_equal(bed.received[i][1], bed.sent[i][1]);
		}
		if (!(n & 1))
			assert_int_equal(links_of(0), 0);
		ask_back(1);	/* where the answer came, both ends have their link: for the end of the test */
		pass_ms(500);
		end();
	}
}

/* It is killed before it wakes up, and takes bytes along that its program has sent: that is no end of file. */
void a_silent_stranger_that_dies_is_no_end(void **state)
{
	struct shunt_lane *lane;
	char byte;

	(void)state;
	make(1);
	lane = stream_lane(stream_of(&bed.pair[0].side[1]));
	role_take_as_another(&lane->lock);
	put(0, 1, 1000, 0);
	ask_back(0);
	pass_ms(201);
	assert_int_equal(links_of(0), 0);
	assert_int_equal(shutdown(bed.pair[0].side[1].fd, SHUT_WR), 0);
	assert_int_equal(receive_some(&bed.pair[0].side[0], &byte, 1, MSG_DONTWAIT), -ECONNRESET);
	role_leave_as_another(&lane->lock);
	for (int n = 0; n < FOREVER; n++)
		turn();
	close_pair(&bed.pair[0]);
	freeze_clock(false);
}

/* Each call waits, and all together no longer than one. */
void a_link_has_one_patience(void **state)
{
	(void)state;
	make(8);
	for (int i = 0; i < bed.pairs; i++) {
		assert_int_equal(shunt_stream_retire(engines[0], bed.pair[i].side[0].fd, ours(i),
						     SHUNT_CAUSE_PASSED),
				 0);
		assert_int_equal(stream_state(ours(i)), SHUNT_PLAIN);
	}
	assert_in_range(waits, 100, SHUNT_PATIENCE_STRANGE / MS + 2);
	end();
}

/* A stranger that answers at the last moment each time does not get that time each time. */
void answers_at_the_last_moment_are_counted(void **state)
{
	(void)state;
	make(3);
	ask_back(0);
	pass_ms(150);
	step(1);
	step(0);
	assert_int_equal(stream_state(ours(0)), SHUNT_PLAIN);
	ask_back(1);
	pass_ms(60);
	assert_int_equal(links_of(0), 0);
	step(1);
	end();
}

/* The time that was waited comes back, slowly. */
void patience_comes_back(void **state)
{
	(void)state;
	make(2);
	ask_back(0);
	pass_ms(150);
	step(1);
	step(0);
	pass_ms(16 * 150);
	ask_back(1);
	pass_ms(190);
	assert_int_equal(links_of(0), 1);
	pass_ms(20);
	assert_int_equal(links_of(0), 0);
	end();
}

/* It has handed its streams back, and does not say what its end of the link had brought: who confines itself waits no longer. */
void who_leaves_waits_no_longer(void **state)
{
	struct shunt_service *service;

	(void)state;
	make(2);
	service = engines[0]->service;
	atomic_store(&service->leaving, true);
	step(0);
	step(1);
	step(0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(stream_state(ours(i)), SHUNT_PLAIN);
	for (int n = 0; n < 4; n++)
		pass_ms(10);
	assert_false(atomic_load(&service->stopping));
	pass_ms(200);
	pass_ms(10);
	assert_true(atomic_load(&service->stopping));
	settle();
	for (int i = 0; i < 2; i++)
		close_pair(&bed.pair[i]);
	freeze_clock(false);
}
