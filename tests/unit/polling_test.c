/* SPDX-License-Identifier: MIT */
/*
 * The modes of polling, in real waits on a scripted device under a virtual clock. Completions arrive at times that
 * a test sets; polls, looks at the clock and sleeps take time; nothing else moves. As on a real device, what is
 * in a CQ before it is armed raises no event (SD-07).
 */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/engine.h"
#include "core/fd/thread.h"
#include "core/poll/devices.h"
#include "core/poll/polling.h"
#include "core/poll/sleeper.h"
#include "core/stream/sleep.h"
#include "core/stream/wait.h"
#include "tests/inspect.h"

#define ARRIVALS 8192
#define CHANNEL_FD 900
#define WAKER_FD 901
#define POLL_NS 30
#define CLOCK_NS 20
#define HANDLING_NS 300		/* of one message, by the program */
#define WAKE_NS 15000

enum { EVENT, BATCH, HYBRID, BUSY, ADAPTIVE };

struct arrival {
	uint64_t at;
	uint8_t cq, stream;
};

struct cq {
	struct ibv_cq ibv;
	int waiting[2];		/* completions for each stream */
	bool armed, fired;
};

static struct shunt_engine engine;
static struct shunt_stream streams[2];
static struct shunt_seat seats[2];
static struct shunt_lane lane;
static struct ibv_context context;
static struct ibv_comp_channel channel = { .fd = CHANNEL_FD };
static struct cq cqs[SHUNT_CQS_MAX];
static struct arrival arrivals[ARRIVALS];
static int arrival_count, arrived;
static uint64_t clock_now;
static uint64_t moments;	/* calls to the device and the system so far */
static uint64_t race_moment;	/* the one before which a completion slips in; 0 never */
static int kicks, sleeps, hang_ups;

/* --- the device --- */

static void put(int cq, int stream)
{
	cqs[cq].waiting[stream]++;
	cqs[cq].fired |= cqs[cq].armed;
	cqs[cq].armed = false;
}

static void pass(uint64_t ns)
{
	clock_now += ns;
	if (++moments == race_moment)
		put(0, 0);
	while (arrived < arrival_count && arrivals[arrived].at <= clock_now) {
		put(arrivals[arrived].cq, arrivals[arrived].stream);
		arrived++;
	}
}

static int poll_cq(struct ibv_cq *ibv, int count, struct ibv_wc *wc)
{
	struct cq *cq = (struct cq *)ibv;
	int n = 0;

	pass(POLL_NS);
	for (int i = 1; i >= 0; i--)
		for (; cq->waiting[i] && n < count; cq->waiting[i]--) {
			wc[n++] = (struct ibv_wc) { .opcode = IBV_WC_RDMA_WRITE };
			stream_arrive(&streams[i]);
			shunt_sleep_notify(&streams[i], EPOLLIN);
		}
	return n;
}

static int req_notify_cq(struct ibv_cq *ibv, int solicited_only)
{
	(void)solicited_only;
	pass(POLL_NS);
	((struct cq *)ibv)->armed = true;
	return 0;
}

static int get_cq_event(struct ibv_comp_channel *on, struct ibv_cq **cq, void **cq_context)
{
	(void)on;
	pass(POLL_NS);
	*cq_context = NULL;
	for (int i = 0; i < SHUNT_CQS_MAX; i++) {
		if (!cqs[i].fired)
			continue;
		cqs[i].fired = false;
		*cq = &cqs[i].ibv;
		return 0;
	}
	errno = EAGAIN;
	return -1;
}

static void ack_cq_events(struct ibv_cq *cq, unsigned int count)
{
	(void)cq;
	(void)count;
}

static const struct shunt_verbs verbs = { .get_cq_event = get_cq_event, .ack_cq_events = ack_cq_events };

static bool event_waits(void)
{
	for (int i = 0; i < SHUNT_CQS_MAX; i++)
		if (cqs[i].fired)
			return true;
	return false;
}

static int left_in_cqs(void)
{
	int left = 0;

	for (int i = 0; i < SHUNT_CQS_MAX; i++)
		left += cqs[i].waiting[0] + cqs[i].waiting[1];
	return left;
}

/* --- the system --- */

static uint64_t now(void)
{
	pass(CLOCK_NS);
	return clock_now;
}

/* A sleep: until an event, or the timeout. A sleeper that nothing would ever wake is a fault. */
static int sys_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
	uint64_t until = timeout ? clock_now + timeout->tv_sec * 1000000000ull + timeout->tv_nsec : UINT64_MAX;

	(void)mask;
	pass(CLOCK_NS);
	sleeps++;
	while (!event_waits() && arrived < arrival_count && arrivals[arrived].at < until)
		pass(arrivals[arrived].at - clock_now);
	for (nfds_t i = 0; i < count; i++)
		fds[i].revents = fds[i].fd == CHANNEL_FD && event_waits() ? POLLIN : 0;
	if (event_waits()) {
		pass(WAKE_NS);
		return 1;
	}
	if (!timeout)
		hang_ups++;
	clock_now = timeout ? until : clock_now;
	return 0;
}

static ssize_t sys_write(int fd, const void *buffer, size_t bytes)
{
	(void)fd;
	(void)buffer;
	kicks++;
	return bytes;
}

static ssize_t sys_read(int fd, void *buffer, size_t bytes)
{
	(void)fd;
	memset(buffer, 0, bytes);
	return bytes;
}

static uint64_t others_ns;	/* for which others have the core that is yielded */

static int yield(void)
{
	pass(others_ns);
	return 0;
}

static const struct shunt_sys sys = { .now = now, .ppoll = sys_ppoll, .write = sys_write, .read = sys_read, .yield = yield };

/* --- a bed for one run --- */

static void make(int mode)
{
	memset(&engine, 0, sizeof(engine));
	shunt_lock_rank(&engine.group.lock, SHUNT_RANK_GROUP);
	shunt_lock_rank(&engine.streams_lock, SHUNT_RANK_STREAMS);
	shunt_lock_rank(&engine.fds.wakers.lock, SHUNT_RANK_WAKERS);
	memset(cqs, 0, sizeof(cqs));
	shunt_config_defaults(&engine.config);
	memset(&shunt_thread, 0, sizeof(shunt_thread));
	lane.group = &engine.group;
	stream_make(&streams[0], &seats[0], &lane, true);
	stream_make(&streams[1], &seats[1], &lane, true);
	shunt_engine_surround(&engine, &sys);
	engine.group.hooks = &shunt_engine_hooks;
	engine.config.poll = mode;
	engine.fds.wakers.fd[0] = WAKER_FD;
	engine.fds.wakers.count = 1;
	context.ops.poll_cq = poll_cq;
	context.ops.req_notify_cq = req_notify_cq;
	for (int i = 0; i < SHUNT_CQS_MAX; i++) {
		cqs[i].ibv.context = &context;
		engine.group.cqs.of[i] = &cqs[i].ibv;
	}
	engine.group.cqs.count = 1;
	engine.group.devices[SHUNT_SOFT].channel = &channel;
	engine.group.devices[SHUNT_SOFT].open = true;
	engine.group.devices[SHUNT_SOFT].kind = &shunt_device_verbs;	/* it has no waiters */
	engine.group.bell = channel.fd;
	engine.group.devices[SHUNT_SOFT].verbs = &verbs;
	engine.group.devices[SHUNT_SOFT].context = &context;
	engine.group.open = true;
	clock_now = 1000000;
	arrival_count = arrived = kicks = sleeps = hang_ups = 0;
	moments = race_moment = others_ns = 0;
}

static void arrive(uint64_t at, int cq, int stream)
{
	arrivals[arrival_count++] = (struct arrival) { 1000000 + at, cq, stream };
}

/* `trains` times `bursts` bursts of so many messages; all times in ns. */
static void load(int trains, uint64_t rest, int bursts, uint64_t gap, int messages, uint64_t spacing)
{
	uint64_t at = 50000;

	for (int t = 0; t < trains; t++, at += rest)
		for (int b = 0; b < bursts; b++, at += gap)
			for (int m = 0; m < messages; m++, at += spacing)
				arrive(at, 0, 0);
}

/* A program that receives all of it. */
static void receive_all(void)
{
	uint64_t wanted = arrival_count, turns = 0, got;

	while (stream_offset(&streams[0], STREAM_READ) < wanted) {
		got = stream_take_all(&streams[0]);
		if (got) {
			pass(got * HANDLING_NS);
			continue;
		}
		shunt_thread_begin();
		assert_int_equal(shunt_wait_stream(&streams[0], EPOLLIN, SHUNT_NEVER), 0);
		assert_int_equal(hang_ups, 0);
		assert_true(++turns < 1000000);
	}
}

/* --- three loads (RB-E2) --- */

static const struct {
	const char *name;
	int clusters, messages;
	uint64_t spacing;
} loads[] = { { "small", 50, 1, 0 }, { "medium", 50, 40, 1000 }, { "large", 20, 200, 400 } };

static uint64_t events_of(int mode, int l)
{
	make(mode);
	load(loads[l].clusters, 200000, 1, 0, loads[l].messages, loads[l].spacing);
	receive_all();
	return engine.group.events;
}

static void three_loads(void **state)
{
	(void)state;
	for (int l = 0; l < 3; l++) {
		uint64_t event = events_of(EVENT, l), batch = events_of(BATCH, l);
		uint64_t hybrid = events_of(HYBRID, l), adaptive = events_of(ADAPTIVE, l);

		print_message("%s: event %lu batch %lu hybrid %lu adaptive %lu\n", loads[l].name, event, batch,
			      hybrid, adaptive);
		assert_true(adaptive <= hybrid);
		assert_true(hybrid <= batch);
		assert_true(hybrid <= event);
		assert_int_equal(events_of(BUSY, l), 0);
		assert_int_equal(sleeps, 0);
		if (loads[l].messages == 1) {
			assert_int_equal(event, loads[l].clusters);
			assert_int_equal(batch, loads[l].clusters);
		}
	}
}

/* It gives up a core that others want as well, and has it again when they want it no longer. */
static void busy_shares_the_core(void **state)
{
	int shared;

	(void)state;
	make(BUSY);
	load(50, 200000, 1, 0, 1, 0);
	others_ns = 20000;
	receive_all();
	shared = sleeps;
	assert_in_range(shared, 40, 50);	/* a wait spins seldom, and sleeps all the same */
	assert_in_range(engine.group.backoffs, 1, 10);
	others_ns = 0;
	arrival_count = arrived = 0;
	for (int i = 0; i < 200; i++)
		arrive(clock_now - 1000000 + 20000 * (uint64_t)(i + 1), 0, 0);
	for (int i = 0; i < 200; i++) {
		if (i == 100)
			sleeps = 0;
		shunt_thread_begin();
		assert_int_equal(shunt_wait_stream(&streams[0], EPOLLIN, SHUNT_NEVER), 0);
		stream_take_all(&streams[0]);
	}
	assert_int_equal(sleeps, 0);
}

/* One event a train where its gaps are shorter than the hook, perhaps two (the miss before it skips a spin). */
static void gaps(void **state)
{
	(void)state;
	make(ADAPTIVE);
	load(10, 1000000, 20, 5000, 2, 10);
	receive_all();
	assert_in_range(engine.group.events, 10, 20);
	make(ADAPTIVE);
	load(10, 1000000, 20, 100000, 2, 10);
	receive_all();
	assert_int_equal(engine.group.events, 200);
	assert_true(engine.group.backoffs > 0);
}

/* --- the hook --- */

static void no_retry_is_hybrid(void **state)
{
	uint64_t events, arms, polls;

	(void)state;
	for (int l = 0; l < 3; l++) {
		events_of(HYBRID, l);
		events = engine.group.events, arms = engine.group.arms, polls = engine.group.polls;
		make(ADAPTIVE);
		engine.config.poll_retry = 0;
		load(loads[l].clusters, 200000, 1, 0, loads[l].messages, loads[l].spacing);
		receive_all();
		assert_int_equal(engine.group.events, events);
		assert_int_equal(engine.group.arms, arms);
		assert_int_equal(engine.group.polls, polls);
		assert_int_equal(engine.group.spins + engine.group.spin_hits, 0);
	}
}

static void endless_retry_is_busy(void **state)
{
	(void)state;
	make(ADAPTIVE);
	engine.config.spin_us = 1000000;
	engine.config.poll_retry = UINT64_MAX;
	load(50, 200000, 1, 0, 3, 10);
	receive_all();
	assert_int_equal(sleeps, 0);
	assert_int_equal(engine.group.arms, 0);
}

/* The polls of a wait whose own message comes after so many others that each comes within the hook. */
static void success_resets_the_hook(void **state)
{
	(void)state;
	make(ADAPTIVE);
	engine.config.poll_retry = 10;
	for (int i = 1; i <= 9; i++)
		arrive(i * 8 * POLL_NS, 0, i < 9);
	shunt_thread_begin();
	assert_int_equal(shunt_wait_stream(&streams[0], EPOLLIN, SHUNT_NEVER), 0);
	assert_int_equal(stream_offset(&streams[0], STREAM_ARRIVED), 1);
	assert_int_equal(sleeps, 0);
	assert_int_equal(engine.group.spin_hits, 1);
	/* And ends after ten fruitless ones. */
	make(ADAPTIVE);
	engine.config.poll_retry = 10;
	arrive(20 * POLL_NS, 0, 0);
	assert_int_equal(shunt_wait_stream(&streams[0], EPOLLIN, SHUNT_NEVER), 0);
	assert_int_equal(sleeps, 1);
	assert_int_equal(engine.group.spins, 1);
}

/* How long a fruitless wait polls before it sleeps. */
static uint64_t spin_time(void)
{
	arrive(10000000, 0, 0);
	shunt_spin_begin(&engine.group, &(struct shunt_spin) { 0 }, SHUNT_NEVER);
	memset(&shunt_thread, 0, sizeof(shunt_thread));
	clock_now = 1000000;
	for (struct shunt_spin spin = { 0 }; ; ) {
		int n = 0;

		if (!shunt_spin_begin(&engine.group, &spin, SHUNT_NEVER))
			return 0;
		while (shunt_spin_on(&engine.group, &spin, n))
			n = shunt_group_poll(&engine.group);
		return clock_now - 1000000;
	}
}

static void what_a_sleep_costs_bounds_it(void **state)
{
	(void)state;
	make(ADAPTIVE);
	assert_in_range(spin_time(), 25000, 26000);
	make(ADAPTIVE);
	engine.group.sleep_cost = 4000;
	assert_in_range(spin_time(), 8000, 9000);
	make(ADAPTIVE);
	engine.group.sleep_cost = 40000;
	assert_in_range(spin_time(), 25000, 26000);
	make(ADAPTIVE);
	engine.group.single_core = true;
	assert_int_equal(spin_time(), 0);
	make(BUSY);
	engine.group.single_core = true;
	assert_int_equal(spin_time(), 0);
}

/* The next wait that spins finds what it waits for after so long; how many waits do not spin then. */
static uint32_t skips_after(uint64_t ns)
{
	struct shunt_spin spin;

	shunt_thread.spins.skip = 0;
	assert_true(shunt_spin_begin(&engine.group, &spin, SHUNT_NEVER));
	assert_true(shunt_spin_look(&engine.group, &spin));
	pass(ns);
	assert_false(shunt_spin_end(&engine.group, &spin, true));
	return shunt_thread.spins.skip;
}

/*
 * Somebody else had the core while the thread span: what it found then is no reason to spin again. Once may have been an
 * interrupt, and costs few waits their spin; again and again is a machine with too few cores.
 */
static void displaced(void **state)
{
	const uint32_t skips[] = { 7, 63, 511, 1023, 1023 };
	struct shunt_spin spin;

	(void)state;
	make(ADAPTIVE);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(skips_after(4000000), skips[i]);
		assert_int_equal(engine.group.spin_hits, i + 1);
		assert_int_equal(engine.group.backoffs, i + 1);
		assert_false(shunt_spin_begin(&engine.group, &spin, SHUNT_NEVER));
	}
	assert_int_equal(skips_after(1000), 0);
	assert_int_equal(skips_after(4000000), 7);
}

/* One wait of the program: so long, and its message comes after so long; 0: none does. True: it slept. */
static bool sleeps_in(uint64_t patience, uint64_t comes)
{
	int before = sleeps;

	if (comes)
		arrive(clock_now - 1000000 + comes, 0, 0);
	shunt_thread_begin();
	shunt_wait_stream(&streams[0], EPOLLIN, clock_now + patience);
	stream_take_all(&streams[0]);
	return sleeps > before;
}

/*
 * A program pauses for less than a spin between a request and the next. Its pauses are no reason to
 * sleep in the waits for the answers. One that only pauses, and finds nothing, is.
 */
static void short_pauses(void **state)
{
	int spinning = 0;

	(void)state;
	make(ADAPTIVE);
	for (int i = 0; i < 100; i++) {
		sleeps_in(10000, 0);
		assert_false(sleeps_in(SHUNT_NEVER - clock_now, 5000));
	}
	assert_int_equal(engine.group.backoffs, 0);
	for (int i = 0; i < 1000; i++) {
		uint64_t before = engine.group.spins;

		sleeps_in(10000, 0);
		spinning += engine.group.spins > before;
	}
	assert_in_range(spinning, 16, 40);
	/* One that waits for longer than it may spin is told nothing new. */
	make(ADAPTIVE);
	sleeps_in(100000, 0);
	assert_int_equal(engine.group.backoffs, 1);
}

static void timeouts_hold(void **state)
{
	(void)state;
	for (int mode = EVENT; mode <= ADAPTIVE; mode++) {
		uint64_t deadline;

		make(mode);
		deadline = clock_now + 300000;
		while (shunt_wait_stream(&streams[0], EPOLLIN, deadline) != -EAGAIN)
			;
		assert_in_range(clock_now, deadline, deadline + 2000);
	}
}

/* A signal ends a wait that polls. */
static void signals_end_it(void **state)
{
	(void)state;
	make(BUSY);
	shunt_thread.signalled = SHUNT_SIGNAL_BREAKS;
	assert_int_equal(shunt_wait_stream(&streams[0], EPOLLIN, SHUNT_NEVER), -EINTR);
}

/* Where polling would not see it, busy sleeps too. */
static void busy_sleeps_for_the_kernel(void **state)
{
	(void)state;
	make(BUSY);
	stream_make(&streams[0], &seats[0], &lane, false);
	arrive(1000000, 0, 0);
	assert_int_equal(shunt_wait_stream(&streams[0], EPOLLIN, clock_now + 100000), 0);
	assert_int_equal(sleeps, 1);
}

/* --- the race between the empty poll and the arming --- */

static void race_at(int mode, uint64_t moment)
{
	make(mode);
	engine.config.spin_us = 2;
	race_moment = moment;
	while (!stream_offset(&streams[0], STREAM_ARRIVED)) {
		shunt_thread_begin();
		assert_int_equal(shunt_wait_stream(&streams[0], EPOLLIN, SHUNT_NEVER), 0);
		assert_int_equal(hang_ups && moments >= race_moment, 0);
		if (hang_ups)
			pass(0);	/* it slept before the moment came */
		hang_ups = 0;
	}
}

static void never_slept_over(void **state)
{
	(void)state;
	for (int mode = EVENT; mode <= ADAPTIVE; mode++)
		for (uint64_t moment = 1; moment < 120; moment++)
			race_at(mode, moment);
}

/* Our own is there when the CQ is armed, behind more than one poll takes. */
static void never_slept_over_behind_others(void **state)
{
	(void)state;
	for (int mode = EVENT; mode <= ADAPTIVE; mode++)
		for (int before = 0; before < 600; before += 7) {
			make(mode);
			engine.config.poll_retry = 0;
			cqs[0].waiting[1] = before;
			cqs[0].waiting[0] = 1;
			while (!stream_offset(&streams[0], STREAM_ARRIVED)) {
				shunt_thread_begin();
				assert_int_equal(shunt_wait_stream(&streams[0], EPOLLIN,
								   SHUNT_NEVER), 0);
				assert_int_equal(hang_ups, 0);
			}
		}
}

/* --- two sleepers (PF-35) --- */

static void fall_asleep(struct shunt_sleeper *sleeper, int fd)
{
	struct shunt_group *group = &engine.group;

	*sleeper = (struct shunt_sleeper) { .kick_fd = fd };
	shunt_lock_take(&group->lock);
	shunt_sleeper_enter(&engine.group, sleeper);
	if (sleeper->leader)
		shunt_group_arm(&engine.group);
	shunt_group_poll_locked(&engine.group);
	shunt_sleeper_begin(&engine.group, sleeper, false);
	shunt_lock_leave(&group->lock);
}

/* The leader is woken, or will be by the next completion, or by one that is there. */
static void leader_is_safe(const struct shunt_sleeper *leader)
{
	bool armed = cqs[0].armed || event_waits();

	assert_true(!leader->asleep || (armed && (!left_in_cqs() || event_waits())));
}

static void event_taken_by_another(void **state)
{
	(void)state;
	for (int mode = EVENT; mode <= ADAPTIVE; mode++) {
		for (int there = 1; there < 700; there += 13) {
			for (uint64_t moment = 0; moment < 30; moment++) {
				struct shunt_sleeper leader, other;

				make(mode);
				fall_asleep(&leader, 1);
				fall_asleep(&other, 2);
				assert_true(leader.leader && leader.asleep && other.asleep);
				for (int i = 0; i < there; i++)
					put(0, 1);
				race_moment = moment ? moments + moment : 0;
				shunt_group_hear(&engine.group);	/* by a third thread */
				leader_is_safe(&leader);
				race_moment = 0;
				put(0, 0);
				assert_true(!leader.asleep || event_waits());
			}
		}
	}
}

/* --- several CQs (RB-18, PF-34) --- */

static void all_are_armed(void **state)
{
	struct shunt_sleeper leader;

	(void)state;
	make(HYBRID);
	engine.group.cqs.count = 5;
	fall_asleep(&leader, 1);
	for (int i = 0; i < 5; i++)
		assert_true(cqs[i].armed);
	assert_int_equal(engine.group.arms, 1);
	put(3, 0);
	put(4, 1);
	shunt_group_hear(&engine.group);
	assert_int_equal(engine.group.events, 2);
	assert_int_equal(stream_offset(&streams[0], STREAM_ARRIVED), 1);
	assert_int_equal(stream_offset(&streams[1], STREAM_ARRIVED), 1);
}

/* A CQ that is never empty does not keep the others waiting. */
static void none_starves(void **state)
{
	(void)state;
	for (int mode = EVENT; mode <= ADAPTIVE; mode++) {
		for (int quiet = 1; quiet < 4; quiet++) {
			make(mode);
			engine.group.cqs.count = 4;
			cqs[0].waiting[1] = 100000;
			cqs[quiet].waiting[0] = 1;
			for (int i = 0; i < 4; i++)
				shunt_group_poll(&engine.group);
			assert_int_equal(stream_offset(&streams[0], STREAM_ARRIVED), 1);
		}
	}
}

static void lanes_take_turns(void **state)
{
	(void)state;
	make(ADAPTIVE);
	engine.group.cqs.count = 3;
	for (int i = 0; i < SHUNT_CQS_MAX; i++)
		engine.group.cqs.room[i] = 3;
	for (int i = 0; i < 9; i++) {
		assert_ptr_equal(shunt_devices_cq(&engine.group, &engine.group.devices[SHUNT_SOFT]),
				 &cqs[i % 3].ibv);
		engine.group.cqs.lanes[i % 3]++;
	}
	/* No more than they have room for, and no CQ is to be had beside them. */
	engine.group.cqs.count = SHUNT_CQS_MAX;
	for (int i = 3; i < SHUNT_CQS_MAX; i++)
		engine.group.cqs.lanes[i] = 3;
	assert_null(shunt_devices_cq(&engine.group, &engine.group.devices[SHUNT_SOFT]));
}

/* --- the devices close, and open again --- */

static int destroyed, closed;

static int destroy_cq(struct ibv_cq *cq)
{
	(void)cq;
	destroyed++;
	return 0;
}

static void free_channel(struct shunt_device *device)
{
	(void)device;
}

static void close_device(struct shunt_device *device)
{
	(void)device;
	closed++;
}

static bool is_zero(const void *memory, size_t bytes)
{
	const uint8_t *byte = memory;

	while (bytes && !*byte)
		byte++, bytes--;
	return !bytes;
}

/* The next device may have fewer CQs than the turn, and none of its lanes has a place in a list of before. */
static void a_closed_device_leaves_nothing(void **state)
{
	const struct shunt_device_kind kind = { .free_channel = free_channel, .close = close_device };
	struct shunt_device *device = &engine.group.devices[SHUNT_SOFT];
	struct shunt_verbs closing = verbs;

	(void)state;
	make(HYBRID);
	closing.destroy_cq = destroy_cq;
	device->verbs = &closing;
	device->kind = &kind;
	device->closed_until = 7;
	engine.group.cqs.count = 5;
	for (int i = 0; i < 5; i++)
		engine.group.cqs.lanes[i] = 3;
	cqs[0].waiting[1] = 1000;
	engine.config.poll_batch = 1;
	shunt_group_poll(&engine.group);
	assert_true(engine.group.polled.turn && engine.group.polled.more);
	destroyed = closed = 0;
	shunt_devices_close(&engine.group);
	assert_int_equal(destroyed, 5);
	assert_int_equal(closed, 1);
	assert_false(engine.group.open || device->open);
	assert_true(is_zero(&engine.group.cqs, sizeof(engine.group.cqs)));
	assert_true(is_zero(&engine.group.polled, sizeof(engine.group.polled)));
	assert_int_equal(device->closed_until, 7);
	device->closed_until = 0;
	assert_true(is_zero(device, sizeof(*device)));
	/* Counters go on. */
	assert_true(engine.group.polls && engine.group.completions);
}

/* --- what is counted --- */

static void counters_are_exact(void **state)
{
	(void)state;
	make(EVENT);
	load(20, 200000, 1, 0, 1, 0);
	receive_all();
	assert_int_equal(engine.group.completions, 20);
	assert_int_equal(engine.group.events, 20);
	assert_int_equal(engine.group.arms, 20);
	assert_int_equal(engine.group.sleeps, sleeps);
	assert_int_equal(engine.group.polls, 40);	/* after each arming, after each event */
	assert_int_equal(engine.group.empty_polls, 20);
	assert_int_equal(engine.group.spins + engine.group.spin_hits, 0);
}

static void one_wake_up_is_bounded(void **state)
{
	(void)state;
	make(BATCH);
	engine.config.poll_batch = 8;
	cqs[0].waiting[1] = 20;
	cqs[0].fired = true;
	shunt_group_hear(&engine.group);
	assert_int_equal(engine.group.completions, 8);
	make(EVENT);
	cqs[0].waiting[1] = 200;	/* of the 256 that it holds */
	cqs[0].fired = true;
	shunt_group_hear(&engine.group);
	assert_int_equal(engine.group.completions, 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(three_loads),
		cmocka_unit_test(busy_shares_the_core),
		cmocka_unit_test(gaps),
		cmocka_unit_test(no_retry_is_hybrid),
		cmocka_unit_test(endless_retry_is_busy),
		cmocka_unit_test(success_resets_the_hook),
		cmocka_unit_test(what_a_sleep_costs_bounds_it),
		cmocka_unit_test(displaced),
		cmocka_unit_test(short_pauses),
		cmocka_unit_test(timeouts_hold),
		cmocka_unit_test(signals_end_it),
		cmocka_unit_test(busy_sleeps_for_the_kernel),
		cmocka_unit_test(never_slept_over),
		cmocka_unit_test(never_slept_over_behind_others),
		cmocka_unit_test(event_taken_by_another),
		cmocka_unit_test(all_are_armed),
		cmocka_unit_test(none_starves),
		cmocka_unit_test(lanes_take_turns),
		cmocka_unit_test(a_closed_device_leaves_nothing),
		cmocka_unit_test(counters_are_exact),
		cmocka_unit_test(one_wake_up_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
