/* SPDX-License-Identifier: MIT */
#include "tools/plan/footprint.h"

#include "core/base/config.h"
#include "core/device/device.h"
#include "core/device/soft/device.h"
#include "core/engine.h"
#include "core/lane/lane.h"
#include "core/lane/lanes.h"
#include "core/lane/send_queue.h"
#include "core/link/link.h"
#include "core/poll/devices.h"
#include "core/poll/group.h"
#include "core/service.h"
#include "core/stream/stream.h"
#include "core/stream/streams.h"
#include "core/wait/watch.h"

#define PAGE 4096u
#define K 1024u

/* Allowances for what is not ours to size. */
enum {
	PROCESS = 200 * K,	/* stacks and heaps of the service's threads, relocations and data of the library */
	MALLOC = 16,		/* of malloc() for each piece */
	REALLOC = 128 * K,	/* from this size on realloc() moves pages instead of copying */
	DRIVER_SEND = 512,	/* of a WR with 256 bytes inline, */
	DRIVER_RECEIVE = 16,	/* of a posted receive, */
	DRIVER_COMPLETION = 64,	/* and of a completion, as mlx5 has them */
};

/*
 * Descriptors (docs/dev/ARCHITECTURE.md): the service's, the device's, and wakers; a listener's name; a companion and an
 * eventfd of an epoll set. Of an RDMA device there are more: two of the device, two of the connection manager, its
 * channel, and a listener's. A link has its channel, and within one host its memory and what wakes the peer, once a lane.
 */
enum {
	PROCESS_FDS = 8,
	LISTENER_FDS = 1,
	SET_FDS = 2,
	DEVICE_FDS = 6,
	LINK_FDS = 1,
	SHARED_LINK_FDS = 1,
	SHARED_LANE_FDS = 1,
};

/* All links of a plan have this in common. */
struct link_plan {
	const struct shunt_config *config;
	bool verbs, retains;
	uint64_t arena, lines;	/* bytes: of its arena, and of the control lines in it */
	uint64_t block;		/* bytes of a memory region */
	uint64_t room;		/* connections that a link has room for */
	uint64_t ring, stage;	/* bytes of a connection that has been used; stage 0: it needs none */
	uint64_t each;		/* registered bytes of both */
};

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t round_up(uint64_t n, uint64_t to)
{
	return (n + to - 1) / to * to;
}

/* --- one link --- */

static struct link_plan plan_links(const struct shunt_plan *plan)
{
	const struct shunt_config *config = plan->config;
	uint64_t streams = (plan->verbs ? SHUNT_VERBS_STREAMS : SHUNT_SOFT_STREAMS) -
			   PAGE / sizeof(struct shunt_control);
	bool fetches = least(config->inline_bytes, plan->verbs ? SHUNT_VERBS_INLINE : UINT32_MAX) <
		       config->frag_bytes;
	struct link_plan link = { .config = config,
				  .verbs = plan->verbs,
				  .arena = config->arena_bytes,
				  .retains = plan->verbs || config->retain,
				  .block = config->mr_bytes,
				  .lines = streams * sizeof(struct shunt_control),
				  .ring = config->ring_min };

	link.stage = link.retains ? SHUNT_SEND_QUEUE_BYTES : 0;
	link.each = link.ring + (fetches ? link.stage : 0);
	while (link.block > PAGE &&
	       round_up(link.lines + PAGE, link.block) + SHUNT_ARENA_BLOCKS * link.block >
		       link.arena)
		link.block /= 2;	/* as the arena does */
	if (link.ring <= link.block)	/* else no ring has room, and connections stay on TCP */
		link.room = (link.arena - round_up(link.lines + PAGE, link.block)) / link.each;
	link.room = least(link.room, streams - 1);	/* number 0 is the lanes' own */
	return link;
}

static uint64_t blocks_of(const struct link_plan *link, uint64_t connections)
{
	return round_up(connections * link->each, link->block) / link->block;
}

static uint64_t registered_of(const struct link_plan *link, uint64_t connections)
{
	return link->lines + blocks_of(link, connections) * link->block;
}

/* Rings and stages of its connections where all have grown. */
static uint64_t registered_most(const struct link_plan *link, uint64_t connections)
{
	uint64_t each = link->config->ring_max +
			(link->each > link->ring ? link->config->stage_max : 0);
	uint64_t bytes = link->lines + round_up(connections * each, link->block);

	return connections ? least(bytes, link->arena) : link->lines;
}

/* A queue pair, and what the engine has for it. The soft device's queue in the segment is cleared as it is made. */
static uint64_t memory_of_lane(const struct link_plan *link)
{
	uint32_t rq = (uint32_t)link->config->rq_depth;
	uint64_t bytes = sizeof(struct shunt_lane) +
			 link->config->sq_depth * sizeof(struct shunt_mark);

	if (link->verbs)
		return bytes;
	return bytes + sizeof(struct soft_qp) + rq * sizeof(uint64_t) +
	       round_up(segment_queue_bytes(rq), PAGE);
}

/* Without connections. A peer's segment begins with a page of its own and one of its regions. */
static uint64_t memory_of_link(const struct link_plan *link, uint64_t lanes, uint64_t blocks)
{
	uint64_t bytes = sizeof(struct shunt_link) +
			 link->arena / link->block * sizeof(struct shunt_arena_block) +
			 blocks * (2 * link->block >> SHUNT_ARENA_MIN_LOG) +
			 lanes * memory_of_lane(link);

	return link->verbs ? bytes : bytes + sizeof(struct soft_pd) + 3 * PAGE;
}

/* A connection's structures, wherever its bytes are. */
static uint64_t memory_of_connections(const struct link_plan *link, uint64_t count)
{
	uint64_t each = sizeof(struct shunt_seat *) + sizeof(struct shunt_file *) +
			sizeof(struct shunt_watch) + MALLOC;

	if (!link->verbs)	/* those of an RDMA device are registered, and counted with it */
		each += sizeof(struct shunt_control);
	if (link->retains)
		each += sizeof(struct shunt_send_window) + MALLOC;
	return count * each + round_up(count, SHUNT_SLAB_STREAMS) * sizeof(struct shunt_stream) +
	       round_up(count, SHUNT_SLAB_SEATS) * sizeof(struct shunt_seat);
}

/* --- the process --- */

/* The soft device's ring of completions grows with the lanes, and is copied while it is small. */
static uint64_t memory_of_completions(uint64_t lanes, uint64_t depth)
{
	uint64_t before = depth;

	if (lanes < 2)
		return 0;
	while (2 * before < lanes * depth)
		before *= 2;
	return least(before * sizeof(struct soft_wc), REALLOC);
}

/* Lanes that a device's completion queues have room for; *entries: of so many queues as `lanes` need. */
static uint64_t completion_room(const struct link_plan *link, uint64_t lanes, uint64_t *entries)
{
	uint64_t depth = link->config->sq_depth + link->config->rq_depth, room = 0;
	uint64_t next = link->verbs ? SHUNT_VERBS_CQ_LANES : SHUNT_SOFT_CQ_LANES;

	*entries = 0;
	for (uint64_t i = 0; i < SHUNT_CQS_MAX; i++, next *= 2) {
		next = least(next, SHUNT_CQ_ENTRIES / depth);
		if (room < lanes || i < link->config->cqs)
			*entries += next * depth;
		room += next;
	}
	return room;
}

/* Lanes of the next link; `more`: what those before it have beyond the first. */
static uint64_t lanes_of(const struct shunt_plan *plan, uint64_t more)
{
	uint64_t lanes = plan->config->lanes;

	if (lanes != SHUNT_LANES_AUTO)
		return lanes;
	return plan->verbs ? SHUNT_VERBS_LANES :
			     shunt_lanes_share((uint32_t)plan->sets, (uint32_t)more);
}

static void add_link(const struct link_plan *link, uint64_t lanes, uint64_t connections,
		     struct shunt_footprint *result)
{
	uint64_t linked = least(connections, link->room), blocks = blocks_of(link, linked);
	uint64_t most = registered_most(link, linked), grown = most - link->lines;

	result->links++;
	result->lanes += lanes;
	result->linked += linked;
	result->regions += 1 + blocks;
	result->registered += registered_of(link, linked);
	result->registered_most += most;
	result->idle += memory_of_link(link, lanes, blocks);
	result->used += linked * (link->ring + link->stage);
	result->most += grown;
	result->own_descriptors += LINK_FDS +
				   (link->verbs ? 0 : SHARED_LINK_FDS + lanes * SHARED_LANE_FDS) +
				   (link->config->waiters && !link->verbs &&
						    result->links <= SOFT_WAITED ?
					    2 * SOFT_WAITERS :
					    0);
}

/*
 * So far `idle` has the links' structures, `used` the pages of rings and stages, and `most` those of all that have grown.
 * Memory that an RDMA device reaches is there as soon as it is registered.
 */
static void add_process(const struct shunt_plan *plan, const struct link_plan *link,
			uint64_t entries, struct shunt_footprint *result)
{
	bool apart = link->each == link->ring;	/* stages are the heap's */
	uint64_t fixed = PROCESS + sizeof(struct shunt_engine) + sizeof(struct shunt_service) +
			 result->idle + memory_of_connections(link, plan->connections);

	result->own_descriptors += PROCESS_FDS + LISTENER_FDS + plan->sets * SET_FDS +
				   (link->verbs				   ? DEVICE_FDS :
				    link->config->waiters && result->links ? SOFT_WAITERS :
									     0);
	if (link->verbs) {
		result->queues = result->lanes * (link->config->sq_depth * DRIVER_SEND +
						  link->config->rq_depth * DRIVER_RECEIVE) +
				 entries * DRIVER_COMPLETION;
		result->idle = result->used = fixed + result->registered + result->queues;
		result->most = fixed + result->registered_most + result->queues;
		return;
	}
	fixed += memory_of_completions(result->lanes, link->config->sq_depth);
	result->idle = fixed + result->linked * link->stage;
	result->used += fixed;
	result->most += fixed + (apart ? result->linked * SHUNT_SEND_QUEUE_BYTES : 0);
}

void shunt_footprint(const struct shunt_plan *plan, struct shunt_footprint *result)
{
	struct link_plan link = plan_links(plan);
	uint64_t share = plan->connections / plan->peers, rest = plan->connections % plan->peers,
		 entries;
	uint64_t room = completion_room(&link, 0, &entries);

	*result = (struct shunt_footprint) { 0 };
	for (uint64_t i = 0; i < plan->peers && i < plan->connections; i++) {
		uint64_t lanes = lanes_of(plan, result->lanes - result->links);

		if (result->lanes + lanes > room)
			break;
		add_link(&link, lanes, share + (i < rest), result);
	}
	completion_room(&link, result->lanes, &entries);
	add_process(plan, &link, entries, result);
}
