/* SPDX-License-Identifier: MIT */
/* Several lanes of one link: how many there are, which stream has which, what is each one's own and what is not. */
#include "tests/engine/bed.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include "core/admin/stats.h"
#include "core/base/space.h"
#include "core/device/soft/shm_segment.h"
#include "core/device/soft/soft.h"
#include "core/fd/own_fds.h"
#include "core/lane/lanes.h"
#include "core/peer/link_end.h"
#include "core/peer/link_make.h"
#include "core/poll/devices.h"

#define LANES 4

static struct shunt_config lanes_config(uint64_t lanes)
{
	struct shunt_config config = small_config(HYBRID);

	config.lanes = lanes;
	return config;
}

static struct shunt_lane *lane_of(int i, int side)
{
	return stream_lane(stream_of(&bed.pair[i].side[side]));
}

/* Each lane of the connecting engine has so many streams, and those of the other as many. */
static void each_has(uint32_t streams)
{
	for (int side = 0; side < 2; side++) {
		struct shunt_link *link = bed.lane[side]->link;

		for (uint32_t i = 0; i < link->lane_count; i++)
			assert_int_equal(link->lanes[i].seats, streams);
	}
}

/* The statistics have one line for each lane, and what binds it. */
static void listed(int engine, uint32_t lanes, const char *streams)
{
	size_t bytes;
	char *json = shunt_stats_json(engines[engine], &bytes), *at = strstr(json, "\"lanes\":[");

	assert_non_null(at);
	for (uint32_t i = 0; i < lanes; i++) {
		at = strstr(at + 1, "\"bound_by\":\"none\"");
		assert_non_null(at);
		assert_ptr_equal(strstr(at, "\"streams\":"), strstr(at, streams));
	}
	assert_null(strstr(at + 1, "\"bound_by\""));
	free(json);
}

/* Both ends have the same lane for a stream, and no lane has more streams than another has. */
void streams_are_spread(void **state)
{
	struct shunt_config config = lanes_config(LANES);

	(void)state;
	make_bed(&config, 4 * LANES);
	each_has(4);
	for (int i = 0; i < bed.pairs; i++)
		assert_int_equal(lane_of(i, 0)->number, lane_of(i, 1)->number);
	assert_int_equal(counted(0, "lanes"), LANES);
	assert_int_equal(counted(0, "links"), 1);
	assert_int_equal(counted(0, "queue_pairs_created"), LANES);
	listed(0, LANES, "\"streams\":4,");
	listed(1, LANES, "\"streams\":4,");
	/* Seats that have become free are where the next streams go, whatever their numbers are. */
	for (int i = 0; i < bed.pairs; i++) {
		if (lane_of(i, 0)->number == 2)
			continue;
		close_side(&bed.pair[i].side[0]);
		close_side(&bed.pair[i].side[1]);
		turn();
		turn();
		connect_pair(&bed.pair[i]);
		bed.sent[i][0] = bed.sent[i][1] = bed.received[i][0] = bed.received[i][1] = 0;
		warm(i);
		assert_int_not_equal(lane_of(i, 0)->number, 2);
	}
	each_has(4);
	end_bed();
}

/* Streams of one lane share a doorbell; those of several have one a lane. */
void a_doorbell_for_each_lane(void **state)
{
	(void)state;
	for (uint32_t lanes = 1; lanes <= LANES; lanes *= 2) {
		struct shunt_config config = lanes_config(lanes);
		uint64_t wrs = 0, doorbells = 0, before[2] = { 0, 0 };
		struct shunt_link *link;

		make_bed(&config, 8);
		link = bed.lane[0]->link;
		for (uint32_t i = 0; i < lanes; i++) {
			role_take_as_another(&link->lanes[i].lock);
			before[0] += link->lanes[i].sent;
			before[1] += link->lanes[i].counters.doorbells;
		}
		for (int i = 0; i < 8; i++)
			put(i, 0, 100, 0);
		for (uint32_t i = 0; i < lanes; i++) {
			role_leave_as_another(&link->lanes[i].lock);
			shunt_lane_kick(&link->lanes[i]);
		}
		for (uint32_t i = 0; i < lanes; i++) {
			wrs += link->lanes[i].sent;
			doorbells += link->lanes[i].counters.doorbells;
		}
		assert_int_equal(wrs - before[0], 8);
		assert_int_equal(doorbells - before[1], lanes);
		end_bed();
	}
}

/* A lane that cannot post must not stop the others: not their holders, devices or receives. */
void lanes_do_not_wait_for_each_other(void **state)
{
	struct shunt_config config = lanes_config(2);

	(void)state;
	config.rq_depth = 64;
	make_bed(&config, 2);
	assert_int_not_equal(lane_of(0, 0)->number, lane_of(1, 0)->number);
	busy();
	put(0, 0, 100, 0);
	put(1, 0, 100, 0);
	assert_int_equal(WRS(), 0);
	assert_int_equal(get(1, 0, 100), 100);
	free_again();
	drain();
	for (int i = 0; i < 100; i++)	/* the other engine does not poll: its receives are used up */
		put(0, 0, 1, 0);
	assert_true(atomic_load(&bed.lane[0]->waiting));
	put(1, 0, 100, 0);
	assert_false(atomic_load(&lane_of(1, 0)->waiting));
	drain();
	for (int i = 0; i < 2 * 300; i++) {	/* each is given receives of its own again */
		put(i & 1, 0, 1, 0);
		drain();
	}
	end_bed();
}

/* A window is a lane's; the device's is all lanes'. */
void the_device_window_is_of_all_lanes(void **state)
{
	uint64_t windows[] = { 0, 3000 };

	(void)state;
	for (int w = 0; w < 2; w++) {
		struct shunt_config config = lanes_config(LANES);
		struct shunt_link *link;
		uint64_t inflight = 0;

		config.window_bytes = 2000;
		config.window_device = windows[w];
		config.ring_min = 64 << 10;
		make_bed(&config, 3 * LANES);
		link = bed.lane[0]->link;
		for (uint32_t i = 0; i < LANES; i++)
			soft_qp_fault(link->lanes[i].qp, SOFT_FAULT_STALL);
		for (int i = 0; i < 3 * LANES; i++)
			put(i, 0, 1000, 0);
		for (uint32_t i = 0; i < LANES; i++)
			inflight += shunt_window_inflight(&link->lanes[i].window);
		assert_int_equal(inflight, windows[w] ? 3000 : LANES * 2000);
		for (uint32_t i = 0; i < LANES; i++)
			soft_qp_fault(link->lanes[i].qp, SOFT_FAULT_NONE);
		drain();
		end_bed();
	}
}

/* --- how many --- */

/* Epoll sets of each engine's program. */
static uint32_t sets_of[2];

/* The lanes of a link between engines that want `connecting` and `accepting`. */
static uint32_t agreed(uint64_t connecting, uint64_t accepting)
{
	struct shunt_config config = lanes_config(connecting);
	uint32_t lanes;

	make_bed(&config, 0);
	engines[1]->config.lanes = accepting;
	for (int side = 0; side < 2; side++)
		atomic_store(&engines[side]->lanes.sets, sets_of[side]);
	add_pair();
	for (int side = 0; side < 2; side++)
		bed.lane[side] = lane_of(0, side);
	lanes = bed.lane[0]->link->lane_count;
	assert_int_equal(bed.lane[1]->link->lane_count, lanes);
	assert_int_equal(counted(0, "lanes"), lanes);
	assert_int_equal(counted(1, "lanes"), lanes);
	end_bed();
	return lanes;
}

void the_smaller_number_counts(void **state)
{
	(void)state;
	assert_int_equal(agreed(SHUNT_LANES_AUTO, SHUNT_LANES_AUTO), 1);	/* of the soft device: nobody waits in a set */
	assert_int_equal(agreed(4, 4), 4);
	assert_int_equal(agreed(8, 3), 3);
	assert_int_equal(agreed(2, 8), 2);
	assert_int_equal(agreed(4, SHUNT_LANES_AUTO), 1);
	sets_of[0] = 3;
	sets_of[1] = 9;
	assert_int_equal(agreed(SHUNT_LANES_AUTO, SHUNT_LANES_AUTO), 3);
	assert_int_equal(agreed(8, SHUNT_LANES_AUTO), 4);
	assert_int_equal(agreed(1, SHUNT_LANES_AUTO), 1);
	sets_of[0] = sets_of[1] = 0;
}

/* Peers make as many links as they like: those beyond have one lane each. */
void more_lanes_than_links_have_a_limit(void **state)
{
	struct shunt_config config = lanes_config(SHUNT_LANES_AUTO);
	struct shunt_link links[2] = { 0 };

	(void)state;
	make_bed(&config, 1);
	atomic_store(&engines[0]->lanes.sets, 9);
	for (int i = 0; i < 2; i++)
		assert_true(shunt_lanes_reserve(&links[i], &engines[0]->group,
						bed.lane[0]->link->device, 61 + i));
	assert_int_equal(links[0].lane_room, 4);
	assert_int_equal(links[1].lane_room, 1);
	for (int i = 0; i < 2; i++)
		shunt_lanes_free(&links[i]);
	end_bed();
}

/* A link at whose other end nobody is, and which has heard a HELLO. */
/* `segment`: a file that is told of instead of that of the other engine, and its size. */
static struct shunt_link *hear_of(bool initiator, uint32_t lanes, uint32_t maps, int segment,
				  uint64_t bytes, int *other)
{
	struct shunt_message message = { .type = SHUNT_MSG_HELLO };
	struct shunt_hello *hello = &message.hello;
	struct shunt_channel channel;
	struct soft_address address;
	struct shunt_link *link;
	struct role role;
	int pair[2], fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair), 0);
	shunt_channel_init(&channel, &engines[0]->links, SHUNT_CHANNEL_UNIX,
			   shunt_own_fds_adopt(&engines[0]->fds, pair[0]));
	link = shunt_link_create(engines[0], &channel, initiator, NULL);
	assert_non_null(link);
	assert_int_equal(soft_qp_export(bed.lane[1]->qp, &address, fds), 0);
	if (segment >= 0) {
		fds[0] = segment;
		address.segment_bytes = bytes;
	}
	*hello = (struct shunt_hello) { .magic = SHUNT_WIRE_MAGIC, .version = SHUNT_WIRE_VERSION, .arena_address = 4096,
					.arena_bytes = 1 << 20, .receives = 64, .streams = 8, .kind = 1, .lanes = lanes,
					.maps = maps };
	for (int i = 0; i < SHUNT_LANES_MAX; i++)
		memcpy(hello->address[i], &address, sizeof(address));
	role = role_serve(engines[0]);
	shunt_link_hello(link, &message, fds, 2);
	role_rest(&role);
	*other = pair[1];
	return link;
}

static struct shunt_link *hear(bool initiator, uint32_t lanes, uint32_t maps, int *other)
{
	return hear_of(initiator, lanes, maps, -1, 0, other);
}

static int maps(bool initiator, uint32_t maps)
{
	int other, state;
	struct shunt_link *link = hear(initiator, 1, maps, &other);

	assert_false(atomic_load(&link->distrusted));
	state = atomic_load(&link->state);
	role_kill_link(link, "the test");
	shunt_link_destroy(link);
	close(other);
	return state;
}

/* A HELLO with so many lanes. */
static void hears(bool initiator, uint32_t lanes, bool believed)
{
	int other;
	struct shunt_link *link = hear(initiator, lanes, 0, &other);

	assert_int_equal(atomic_load(&link->distrusted), !believed);
	assert_int_equal(atomic_load(&link->state) == SHUNT_LINK_UP, believed);
	if (believed)
		assert_int_equal(link->lane_count, lanes < LANES ? lanes : LANES);
	role_kill_link(link, "the test");
	shunt_link_destroy(link);
	close(other);
}

void senseless_numbers_are_refused(void **state)
{
	struct shunt_config config = lanes_config(LANES);

	(void)state;
	make_bed(&config, 1);
	for (int initiator = 0; initiator < 2; initiator++) {
		hears(initiator, 0, false);
		hears(initiator, 1000000000, false);
		hears(initiator, UINT32_MAX, false);
		hears(initiator, SHUNT_LANES_MAX + 1, false);
		hears(initiator, 1, true);
		hears(initiator, LANES, true);
	}
	hears(false, SHUNT_LANES_MAX, true);	/* who accepts makes fewer */
	hears(true, LANES + 1, false);	/* more than were offered */
	atomic_store(&engines[0]->links.distrusted, 0);
	assert_int_equal(counted(0, "lanes"), LANES);
	end_bed();
}

/* A peer that maps next to nothing of our segment is no liar, but there is no link; one that maps a little is up. */
void a_peer_with_little_address_space(void **state)
{
	struct shunt_config config = lanes_config(LANES);

	(void)state;
	make_bed(&config, 1);
	for (int initiator = 0; initiator < 2; initiator++) {
		assert_int_equal(maps(initiator, 1), SHUNT_LINK_DEAD);
		assert_int_equal(maps(initiator, SHUNT_SPACE_MAPS / SHUNT_MAPS_BYTES),
				 SHUNT_LINK_UP);
		assert_int_equal(maps(initiator, UINT32_MAX), SHUNT_LINK_UP);
	}
	end_bed();
}

/* A sealed file as a segment is, of which no page is in memory but the first. */
static int large_segment(uint64_t bytes)
{
	struct segment_header header = { .magic = SEGMENT_MAGIC, .version = SEGMENT_VERSION, .segment_bytes = bytes };
	int fd = memfd_create("large", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
	assert_int_equal(pwrite(fd, &header, sizeof(header), 0), sizeof(header));
	return fd;
}

/* A peer says that its segment has 64 GiB. No more of it is mapped than we have ourselves, and the peer is told so. */
void a_link_maps_no_more_than_it_has(void **state)
{
	struct shunt_config config = lanes_config(1);
	int other, fd = large_segment(SEGMENT_BYTES_MAX);

	(void)state;
	make_bed(&config, 1);
	for (int initiator = 0; initiator < 2; initiator++) {
		struct shunt_link *link = hear_of(initiator, 1, 0, fd, SEGMENT_BYTES_MAX, &other);
		uint64_t own = soft_segment_bytes(link->pd);
		struct shunt_message said = { 0 };

		while (!initiator && said.type != SHUNT_MSG_HELLO)	/* an initiator has not met the peer, and says nothing */
			assert_int_equal(recv(other, &said, sizeof(said), MSG_DONTWAIT),
					 sizeof(said));
		assert_int_equal(atomic_load(&link->state), SHUNT_LINK_UP);
		assert_in_range(soft_qp_mapped(link->lanes[0].qp), own, own + SHUNT_MAPS_BYTES - 1);
		if (!initiator)
			assert_int_equal(said.hello.maps * (uint64_t)SHUNT_MAPS_BYTES,
					 soft_qp_mapped(link->lanes[0].qp));
		role_kill_link(link, "the test");
		shunt_link_destroy(link);
		close(other);
	}
	close(fd);
	end_bed();
}

static struct shunt_device_kind slow;
static const struct shunt_device_kind *quick;
static int parted;

static int join_later(struct shunt_device *device, struct ibv_qp *qp, const struct shunt_path *path,
		      const void *address, const int *fds, int count)
{
	int result = quick->join(device, qp, path, address, fds, count);

	return result ? result : SHUNT_JOINS_LATER;
}

static void note_parted(struct shunt_device *device, const struct ibv_qp *qp)
{
	(void)device;
	(void)qp;
	parted++;
}

static void make_slow(struct shunt_device *device)
{
	quick = device->kind;
	slow = *quick;
	slow.join = join_later;
	slow.part = note_parted;
	device->kind = &slow;
	parted = 0;
}

/* Ends it; each of its queue pairs is parted from the peer's. */
static void bury(struct shunt_link *link, int other)
{
	int lanes = (int)link->lane_count;

	role_kill_link(link, "the test");
	shunt_link_destroy(link);
	assert_int_equal(parted, lanes);
	parted = 0;
	close(other);
}

/*
 * A device may connect queue pairs later. The end that connects sends and reads no message before all of them are
 * connected. The other end need not wait, because its first message is from a peer that has waited.
 */
void queue_pairs_may_be_connected_later(void **state)
{
	struct shunt_config config = lanes_config(LANES);
	const struct shunt_engine *before;
	struct shunt_device *device;
	struct shunt_link *link;
	int other;

	(void)state;
	make_bed(&config, 1);
	before = shunt_service_role_begin(engines[0]);
	device = shunt_devices_open(&engines[0]->group, SHUNT_SOFT);
	make_slow(device);
	link = hear(false, LANES, 0, &other);
	assert_int_equal(atomic_load(&link->state), SHUNT_LINK_UP);
	bury(link, other);

	link = hear(true, LANES, 0, &other);
	for (int i = 0; i < LANES; i++) {
		assert_int_equal(atomic_load(&link->state), SHUNT_LINK_HELLO);
		assert_false(shunt_link_events(link) & EPOLLIN);
		shunt_link_joined(link);
	}
	assert_int_equal(atomic_load(&link->state), SHUNT_LINK_UP);
	assert_true(shunt_link_events(link) & EPOLLIN);
	shunt_link_joined(link); /* one too many */
	assert_int_equal(atomic_load(&link->state), SHUNT_LINK_UP);
	bury(link, other);

	link = hear(true, LANES, 0, &other);
	link->source.ready(&link->source, EPOLLIN);
	assert_false(atomic_load(&link->failed));
	link->source.ready(&link->source, EPOLLIN | EPOLLHUP);
	assert_true(atomic_load(&link->failed));
	for (int i = 0; i < LANES; i++)
		shunt_link_joined(link);
	assert_int_equal(atomic_load(&link->state), SHUNT_LINK_HELLO);
	bury(link, other);
	device->kind = quick;
	shunt_service_role_end(before);
	end_bed();
}

static struct shunt_verbs scarce;
static struct ibv_qp *(*real_create_qp)(struct ibv_pd *, struct ibv_qp_init_attr *);
static int queue_pairs;	/* that the device still has */

static struct ibv_qp *create_scarce_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct ibv_qp *qp = queue_pairs ? real_create_qp(pd, init) : NULL;

	queue_pairs -= qp != NULL;
	return qp;
}

static void make_scarce(int engine, int most)
{
	struct shunt_device *device = shunt_devices_open(&engines[engine]->group, SHUNT_SOFT);

	assert_non_null(device);
	scarce = *device->verbs;
	real_create_qp = scarce.create_qp;
	scarce.create_qp = create_scarce_qp;
	device->verbs = &scarce;
	queue_pairs = most;
}

/* A device that has no queue pairs for all of them: a link has those that there are, at either end. */
void fewer_where_there_are_no_more(void **state)
{
	struct shunt_config config = lanes_config(LANES);

	(void)state;
	for (int engine = 0; engine < 2; engine++) {
		make_bed(&config, 0);
		make_scarce(engine, LANES - 1);
		add_pair();
		for (int side = 0; side < 2; side++) {
			bed.lane[side] = lane_of(0, side);
			assert_int_equal(bed.lane[side]->link->lane_count, LANES - 1);
		}
		end_bed();
	}
}

/* Queues that are deeper than the device's are made as deep as those. */
void queues_are_what_the_device_has(void **state)
{
	struct shunt_config config = lanes_config(2);

	(void)state;
	config.sq_depth = config.rq_depth = 16384;	/* the soft device takes 4096 */
	make_bed(&config, 2);
	assert_int_equal(bed.lane[0]->sq_depth, 4096);
	assert_int_equal(bed.lane[0]->rq_depth, 4096);
	for (int i = 0; i < 20000; i++) {
		put(i & 1, 0, 1, 0);
		if (i % 1000 == 0)
			drain();
	}
	end_bed();
	assert_int_equal(shunt_devices_depth(1024, 8192), 1024);
	assert_int_equal(shunt_devices_depth(1024, 1024), 1024);
	assert_int_equal(shunt_devices_depth(1024, 1023), 512);
	assert_int_equal(shunt_devices_depth(16384, INT32_MAX), 16384);
}

static struct shunt_verbs generous;
static const struct shunt_verbs *exact;

static struct ibv_qp *grant_more(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct ibv_qp *qp = exact->create_qp(pd, init);

	if (qp)
		init->cap.max_send_sge = 30;
	return qp;
}

/* mlx4 grants more parts of a WR than it was asked for: a lane uses as many as its callers have room for. */
void no_more_parts_than_a_lane_can_use(void **state)
{
	struct shunt_config config = lanes_config(1);
	struct shunt_device *device;

	(void)state;
	make_bed(&config, 0);
	device = shunt_devices_open(&engines[0]->group, SHUNT_SOFT);
	exact = device->verbs;
	generous = *exact;
	generous.create_qp = grant_more;
	device->verbs = &generous;
	first_pair();
	assert_int_equal(bed.lane[0]->max_sges, SHUNT_LANE_SGES);
	end_bed();
}

/* --- the end --- */

/* One QP dies: the streams of the other lanes go to TCP with its own, and nothing is lost. */
void one_lane_takes_all_to_tcp(void **state)
{
	struct shunt_config config = lanes_config(LANES);

	(void)state;
	config.retain = 1;
	make_bed(&config, 2 * LANES);
	for (int i = 0; i < bed.pairs; i++)
		put(i, i & 1, 5000, 0);
	soft_qp_fault(lane_of(2, 0)->qp, SOFT_FAULT_KILL);
	shunt_group_poll_fully(&engines[0]->group);
	for (uint32_t i = 0; i < LANES; i++)	/* nobody posts to any of them any more */
		assert_true(atomic_load(&bed.lane[0]->link->lanes[i].failed));
	for (int n = 0; n < 20; n++)
		turn();
	for (int i = 0; i < bed.pairs; i++)
		for (int side = 0; side < 2; side++)
			assert_int_equal(put(i, side, 3000, 0), 3000);
	all_arrived();
	for (int i = 0; i < bed.pairs; i++)
		assert_false(stream_sends_on_link(stream_of(&bed.pair[i].side[0])));
	assert_int_equal(counted(0, "failovers"), 1);
	for (int i = 0; i < bed.pairs; i++) {
		close_side(&bed.pair[i].side[0]);
		close_side(&bed.pair[i].side[1]);
	}
	for (int n = 0; n < 20; n++)
		turn();
	assert_int_equal(counted(0, "lanes"), 0);
	assert_int_equal(counted(1, "lanes"), 0);
	bed.pairs = 0;
}
