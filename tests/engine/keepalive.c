/* SPDX-License-Identifier: MIT */
/*
 * Is an idle lane's peer still there (XR-07), and is nothing left of a link whose peer is not (XR-08)? The test sets
 * the time. The soft device retains here as an RDMA device does, and its fault DROP is a host that has gone.
 */
#include "tests/engine/bed.h"
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "core/device/soft/soft.h"
#include "core/recovery/idle.h"
#include "core/service.h"

#define MS 1000000ull
#define KEEPALIVE 2000	/* ms */
#define TRIES 470	/* ms for which the soft device tries: device_soft.c */
#define LINKS 100
#define LANES 64	/* of keepalive.c: asked in one go */

static struct shunt_config config_with(uint64_t keepalive_ms)
{
	struct shunt_config config = small_config(HYBRID);

	config.retain = 1;
	config.keepalive_ms = keepalive_ms;
	return config;
}

/* The service threads alone: no program calls anything. */
static void serve(void)
{
	for (int i = 0; i < 2; i++)
		if (engines[i]->service)
			shunt_service_step(engines[i], 0);
}

static void pass(uint64_t ms)
{
	for (; ms; ms -= 10) {
		pair_skew += 10 * MS;
		serve();
	}
}

/* One pair, of which the connecting engine alone asks. */
static void make_one(uint64_t keepalive_ms)
{
	struct shunt_config config = config_with(keepalive_ms);

	make_bed(&config, 0);
	engines[1]->config.keepalive_ms = 0;
	first_pair();
	all_arrived();
}

static uint64_t probes(void)
{
	return counted(0, "keepalive_probes");
}

/* --- who is asked --- */

/* By its device: the peer's engine has nothing to take, and nothing wakes it. */
static void idle_lanes_are_asked(void **state)
{
	uint64_t completions, events;

	(void)state;
	make_one(KEEPALIVE);
	pass(KEEPALIVE);
	shunt_group_poll_fully(&engines[1]->group);
	completions = engines[1]->group.completions;
	events = engines[1]->group.events;
	bed.wrs_before = probes();
	pass(10 * KEEPALIVE);
	assert_in_range(probes() - bed.wrs_before, 19, 21);
	shunt_group_poll_fully(&engines[1]->group);
	assert_int_equal(engines[1]->group.completions, completions);
	assert_int_equal(engines[1]->group.events, events);
	assert_int_equal(counted(0, "failovers"), 0);
	end_bed();
}

static void busy_lanes_are_not_asked(void **state)
{
	(void)state;
	for (int side = 0; side < 2; side++) {	/* who only sends, who only receives */
		make_one(KEEPALIVE);
		for (int i = 0; i < 100; i++) {
			put(0, side, 1, 0);
			drain();
			pass(KEEPALIVE / 4);
		}
		assert_int_equal(probes(), 0);
		end_bed();
	}
}

static void nobody_is_asked_for_nothing(void **state)
{
	struct shunt_config config = config_with(KEEPALIVE);

	(void)state;
	make_one(0);
	pass(10 * KEEPALIVE);
	assert_int_equal(probes(), 0);
	end_bed();
	config.retain = 0;	/* the soft device as it is: its channel says that a peer has ended */
	make_bed(&config, 1);
	pass(10 * KEEPALIVE);
	assert_int_equal(probes(), 0);
	end_bed();
}

/* However many lanes there are, one go of the service thread is short. */
static void many_are_asked_in_turn(void **state)
{
	struct shunt_config config = config_with(KEEPALIVE);
	uint64_t asked = 0, most = 0;

	(void)state;
	config.arena_bytes = 16 << 20;
	config.rq_depth = config.sq_depth = 64;
	make_bed(&config, 0);
	for (int i = 0; i < LINKS; i++) {	/* a link for each listener */
		listen_here();
		add_pair();
	}
	for (int side = 0; side < 2; side++)
		bed.lane[side] = stream_lane(stream_of(&bed.pair[0].side[side]));
	all_arrived();
	freeze_clock(true);	/* however long the machine takes for a step */
	pass(KEEPALIVE);
	asked = probes();
	for (int ms = 0; ms < KEEPALIVE; ms += 5) {
		uint64_t before = probes();

		pair_skew += 5 * MS;
		serve();
		if (probes() - before > most)
			most = probes() - before;
	}
	assert_in_range(probes() - asked, LINKS, 3 * LINKS);
	assert_in_range(most, 1, LANES);
	freeze_clock(false);
	end_bed();
}

/* --- who does not answer --- */

/* Milliseconds until the connecting engine has given up a link whose peer's host has gone; 0: not within a minute. */
static uint64_t time_to_notice(uint64_t keepalive_ms, uint64_t idle_ms)
{
	uint64_t ms = 0;

	make_one(keepalive_ms);
	pass(idle_ms);
	soft_qp_fault(bed.lane[0]->qp, SOFT_FAULT_DROP);
	while (!counted(0, "failovers") && ms < 60000) {
		pass(10);
		ms += 10;
	}
	if (ms == 60000) {
		soft_qp_fault(bed.lane[0]->qp, SOFT_FAULT_NONE);
		end_bed();
		return 0;
	}
	turn();
	put(0, 0, 1000, 0);	/* over TCP */
	put(0, 1, 1000, 0);
	all_arrived();
	close_side(&bed.pair[0].side[0]);
	close_side(&bed.pair[0].side[1]);
	turn();
	return ms;
}

static void silence_is_noticed(void **state)
{
	(void)state;
	for (uint64_t idle = 0; idle < 2 * KEEPALIVE; idle += KEEPALIVE / 5)
		assert_in_range(time_to_notice(KEEPALIVE, idle), TRIES - 10, KEEPALIVE + TRIES + 30);
	assert_in_range(time_to_notice(200, 1000), TRIES - 10, 200 + TRIES + 30);
	assert_int_equal(time_to_notice(0, 1000), 0);
}

/* --- who may not wait (TCP_USER_TIMEOUT) --- */

static void set_patience(uint32_t ms)
{
	struct side *side = &bed.pair[0].side[0];

	assert_int_equal(setsockopt(side->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms)), 0);
	shunt_stream_option_changed(stream_of(side), IPPROTO_TCP, TCP_USER_TIMEOUT, &ms);
}

/* The other engine does nothing, as that of a host which has gone: milliseconds until the program is told. */
static uint64_t time_to_expire(uint64_t most)
{
	struct side *side = &bed.pair[0].side[0];
	uint64_t ms = 0;
	ssize_t got = -EAGAIN;
	uint8_t byte;

	while (ms < most) {
		pair_skew += 10 * MS;
		ms += 10;
		shunt_service_step(engines[0], 0);
		got = receive_some(side, &byte, 1, MSG_DONTWAIT);
		if (got != -EAGAIN)
			break;
	}
	assert_int_equal(got, ms < most ? -ETIMEDOUT : -EAGAIN);
	if (ms < most)
		assert_int_equal(receive_some(side, &byte, 1, MSG_DONTWAIT), 0);
	return ms;
}

static void leave_all(void)
{
	close_side(&bed.pair[0].side[0]);
	close_side(&bed.pair[0].side[1]);
	for (int i = 0; i < 10; i++)
		turn();
}

/* One pair whose QP dies, with so many bytes under way; the peer never says how far it has come. */
static void make_silent(uint32_t patience, size_t bytes)
{
	make_one(KEEPALIVE);
	set_patience(patience);
	soft_qp_fault(bed.lane[0]->qp, SOFT_FAULT_DROP);
	if (bytes)
		put(0, 0, bytes, 0);
}

/* Nothing may be sent again. */
static uint64_t unanswered(uint32_t patience, size_t bytes, size_t later, uint64_t most)
{
	uint64_t ms;

	make_silent(patience, bytes);
	if (later) {
		for (int i = 0; i < 500; i++) {
			pair_skew += 10 * MS;
			shunt_service_step(engines[0], 0);
		}
		assert_int_equal(put(0, 0, later, 0), 0);
	}
	ms = time_to_expire(most);
	leave_all();
	return ms;
}

static void bytes_expire(void **state)
{
	(void)state;
	assert_in_range(unanswered(3000, 1000, 0, 20000), 2900, 3100);
	assert_in_range(unanswered(100, 1000, 0, 20000), 100, TRIES + 50);	/* not before the device has tried */
	assert_in_range(unanswered(3000, 0, 1000, 20000), 2900, 3100);	/* sent when the link was dead already */
	assert_int_equal(unanswered(3000, 0, 0, 20000), 20000);	/* nothing is owed: the kernel's keepalive is asked */
	assert_int_equal(unanswered(0, 1000, 0, 600000), 600000);
}

/* A peer with a full ring; it reads `bytes` of it every `every` ms. `retain`: as behind a device that shows no memory. */
static uint64_t unread(uint32_t patience, size_t bytes, uint64_t every, uint64_t most, int retain)
{
	struct shunt_config config = config_with(0);
	uint64_t ms = 0;

	config.retain = retain;
	config.ring_max = config.ring_min = 64 << 10;
	make_bed(&config, 1);
	set_patience(patience);
	while (put(0, 0, 4096, 0))
		;
	while (ms < most && !stream_is_broken(stream_of(&bed.pair[0].side[0]))) {
		pass(10);
		ms += 10;
		if (bytes && ms % every == 0)
			get(0, 0, bytes);
		if (!stream_is_broken(stream_of(&bed.pair[0].side[0])))
			put(0, 0, 4096, 0);
	}
	leave_all();
	return ms;
}

static void a_full_ring_expires(void **state)
{
	(void)state;
	for (int retain = 0; retain < 2; retain++) {
		/* Twice: what was read before the ring was full, and not yet told, is room once. */
		assert_in_range(unread(1000, 0, 1, 10000, retain), 1000, 2 * (1000 + 20));
		assert_int_equal(unread(0, 0, 1, 10000, retain), 10000);
		assert_int_equal(unread(1000, 512, 500, 10000, retain), 10000);	/* slow, and too little for a credit */
	}
	assert_int_equal(unread(1000, 64, 900, 10000, 0), 10000);
}

/* --- what is left --- */

static int entries(const char *path)
{
	DIR *dir = opendir(path);
	int count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static int mappings(void)
{
	FILE *file = fopen("/proc/self/maps", "r");
	int count = 0, byte;

	assert_non_null(file);
	while ((byte = fgetc(file)) != EOF)
		count += byte == '\n';
	fclose(file);
	return count;
}

struct left {
	int fds, tasks, maps;
	uint64_t links, regions, registered, lanes;
};

static struct left look_around(void)
{
	struct left left = { .fds = entries("/proc/self/fd"), .tasks = entries("/proc/self/task") };

	for (int i = 0; i < 2; i++) {
		for (struct shunt_link *link = engines[i]->service->links; link; link = link->next)
			left.links++;
		for (struct shunt_lane *lane = engines[i]->group.lanes; lane; lane = lane->next_in_group)
			left.lanes++;
		left.regions += counted(i, "memory_regions");
		left.registered += counted(i, "memory_registered");
	}
	left.maps = mappings();
	return left;
}

/* A pair comes onto a new link, and the link ends by `how`. */
static void come_and_go(int how)
{
	first_pair();
	put(0, 0, 20000, 0);	/* a stage, and a ring that is not empty */
	if (how == 0)
		soft_qp_fault(bed.lane[0]->qp, SOFT_FAULT_KILL);
	else if (how == 1)
		soft_qp_fault(bed.lane[1]->qp, SOFT_FAULT_DROP);
	else
		shutdown(bed.lane[0]->link->channel.fd, SHUT_RDWR);
	pass(how == 1 ? KEEPALIVE + TRIES + 50 : 100);
	close_side(&bed.pair[0].side[0]);
	close_side(&bed.pair[0].side[1]);
	for (int i = 0; i < 2 && how == 2; i++) {	/* at once: nothing may wake the thread again */
		shunt_service_step(engines[i], 0);
		assert_null(engines[i]->service->links);
	}
	pass(3000);
}

static void nothing_is_left(void **state)
{
	struct shunt_config config = config_with(KEEPALIVE);

	(void)state;
	config.return_ms = 0;	/* and nothing comes back */
	for (int how = 0; how < 3; how++) {
		struct left before, after;

		make_bed(&config, 0);
		come_and_go(how);
		before = look_around();
		assert_int_equal(before.links, 0);
		assert_int_equal(before.lanes, 0);
		assert_int_equal(before.regions, 0);
		assert_int_equal(before.registered, 0);
		for (int i = 0; i < 50; i++)
			come_and_go(how);
		after = look_around();
		assert_int_equal(after.links + after.lanes + after.regions + after.registered, 0);
		assert_int_equal(after.fds, before.fds);
		assert_int_equal(after.tasks, before.tasks);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)	/* those map for themselves */
		assert_int_equal(after.maps, before.maps);
#endif
		assert_int_equal(counted(0, "failovers"), how == 2 ? 0 : 51);
	}
}

static void serve_first(uint64_t ms)
{
	for (; ms; ms -= 10) {
		pair_skew += 10 * MS;
		shunt_service_step(engines[0], 0);
	}
}

/* Memory regions of ours when the program has closed the connection. */
static uint64_t kept_for(uint32_t patience, size_t bytes, bool closed_before)
{
	uint64_t regions;

	make_silent(patience, bytes);
	if (closed_before)
		close_side(&bed.pair[0].side[0]);
	serve_first(2 * KEEPALIVE + TRIES);
	assert_int_equal(counted(0, "failovers"), 1);
	if (!closed_before)
		close_side(&bed.pair[0].side[0]);
	serve_first(3000);
	regions = counted(0, "memory_regions");
	assert_int_equal(regions == 0, engines[0]->group.lanes == NULL);
	close_side(&bed.pair[0].side[1]);
	for (int i = 0; i < 10; i++)
		turn();
	assert_null(engines[0]->service->links);
	return regions;
}

/* A link on whose channel nothing comes: who has closed what is on it need not wait for that. */
static void a_silent_host_keeps_nothing(void **state)
{
	(void)state;
	assert_int_equal(kept_for(0, 0, false), 0);
	assert_int_equal(kept_for(0, 0, true), 0);
	assert_int_equal(kept_for(1000, 1000, false), 0);
	assert_in_range(kept_for(0, 1000, false), 1, 4);	/* they may have to be sent again */
	assert_in_range(kept_for(0, 1000, true), 1, 4);
}

static uint64_t idle_stream(void)
{
	struct shunt_stream *stream = stream_of(&bed.pair[0].side[0]);

	return shunt_idle_stream(stream, shunt_now(engines[0])) / MS;
}

/* A look each second while bytes move, then seldom ones; a time is never too long. */
static void idle_times_are_known(void **state)
{
	struct shunt_service *service;

	(void)state;
	make_one(0);
	freeze_clock(true);
	service = engines[0]->service;
	service->idle_every = 1000 * MS;
	shunt_loop_post(&engines[0]->loop, &service->tasks.idle);
	pass(10);
	for (int i = 0; i < 30; i++) {
		for (int side = 0; side < 2; side++) {
			assert_int_equal(put(0, side, 10, 0), 10);
			assert_int_equal(get(0, side, 10), 10);
		}
		pass(100);
	}
	pass(4000);
	assert_in_range(idle_stream(), 3000, 4100);
	assert_in_range(counted(0, "idle_ms"), 3000, 5100);	/* of the link, which comes first */
	assert_in_range(service->idle_every / MS, 2000, 8000);
	pass(200000);
	assert_in_range(idle_stream(), 203000, 204100);
	assert_int_equal(service->idle_every / MS, 32000);
	assert_int_equal(put(0, 0, 10, 0), 10);
	assert_int_equal(idle_stream(), 0);
	pass(10000);
	assert_in_range(idle_stream(), 9000, 10000);
	assert_int_equal(get(0, 0, 10), 10);
	freeze_clock(false);
	leave_bed();
}

static int links(int engine)
{
	int count = 0;

	for (struct shunt_link *link = engines[engine]->service->links; link; link = link->next)
		count++;
	return count;
}

/* A link without streams ends at both ends, and the next connection has another; one with a stream stays. */
static void an_unused_link_ends(void **state)
{
	struct shunt_config config = config_with(0);

	(void)state;
	config.link_idle_s = 4;
	make_bed(&config, 0);
	freeze_clock(true);
	for (int i = 0; i < 2; i++) {
		first_pair();
		all_arrived();
		pass(10000);
		assert_int_equal(links(0), 1);
		assert_int_equal(counted(0, "links_evicted"), i);
		leave_bed();
		pass(3000);
		assert_int_equal(links(0), 1);
		pass(3000);
		assert_int_equal(links(0) + links(1), 0);
		assert_int_equal(counted(0, "links_evicted"), i + 1);
	}
	engines[0]->config.link_idle_s = 0;
	first_pair();
	leave_bed();
	pass(10000);
	assert_int_equal(links(0), 1);
	freeze_clock(false);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(idle_times_are_known),
		cmocka_unit_test(an_unused_link_ends),
		cmocka_unit_test(idle_lanes_are_asked),
		cmocka_unit_test(busy_lanes_are_not_asked),
		cmocka_unit_test(nobody_is_asked_for_nothing),
		cmocka_unit_test(many_are_asked_in_turn),
		cmocka_unit_test(silence_is_noticed),
		cmocka_unit_test(bytes_expire),
		cmocka_unit_test(a_full_ring_expires),
		cmocka_unit_test(nothing_is_left),
		cmocka_unit_test(a_silent_host_keeps_nothing),
	};

	shunt_log_set_level(SHUNT_LOG_NONE);	/* failovers are what is wanted here */
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
