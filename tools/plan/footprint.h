/* SPDX-License-Identifier: MIT */
/*
 * Memory, queue pairs and descriptors of a process for so many connections: `shunt doctor --plan`. Sizes are those of the
 * code: of its structures, rings, stages, queues and blocks. A few allowances are for libc and the kernel.
 * tests/calls/plan.sh compares all of it with processes.
 *
 * - A connection has a stream, a seat, a control line, its places in two tables and a registration in an epoll set.
 * - A ring has `ring_min` bytes until its sender fills it. It takes pages as it is used. Within one host an idle ring gives
 *   them back, so an idle connection has the structures alone.
 * - A lane that keeps what was sent has a stage of 64 KiB and a window for each connection that sends. A device that
 *   fetches from it has the stage in registered memory.
 * - A link has its descriptors, control lines, and registered blocks (`mr`) for its rings and stages. Memory of an RDMA
 *   device is locked as a whole. That of a link within one host is not: blocks there cost no memory before they are used.
 * - Of memory that two processes share, each has what its own segment takes: the peer's belongs to the peer.
 * - Not counted: buffers of kernel TCP, files of programs and libraries, memory of rdma-core itself.
 */
#ifndef SHUNT_TOOLS_PLAN_FOOTPRINT_H
#define SHUNT_TOOLS_PLAN_FOOTPRINT_H

#include <stdbool.h>
#include <stdint.h>

struct shunt_config;

struct shunt_plan {
	const struct shunt_config *config;
	uint64_t connections, peers;	/* spread evenly; a peer is a process */
	uint64_t sets;			/* epoll sets that the program has before its links: `lanes` may follow them */
	bool verbs;			/* over an RDMA device, else within this host */
};

/* Bytes and numbers of one process. */
struct shunt_footprint {
	uint64_t linked;		/* connections that links have room for; the others stay on TCP */
	uint64_t links, lanes;		/* a lane is a queue pair */
	uint64_t idle, used, most;	/* memory: no ring has pages, each has its first size, each has grown as far as it may */
	uint64_t registered, registered_most;	/* memory regions: as used, and at most */
	uint64_t queues;		/* what a driver such as mlx5's locks for queues; 0 within one host */
	uint64_t regions;
	uint64_t own_descriptors;	/* beside the connections' own */
};

void shunt_footprint(const struct shunt_plan *plan, struct shunt_footprint *result);

#endif
