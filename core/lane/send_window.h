/* SPDX-License-Identifier: MIT */
/*
 * How many bytes of a stream may be under way: posted, and kept until they have arrived. A stage of 64 KiB bears no
 * more than that for each round trip. So it grows to the bandwidth-delay product: the rate at which bytes arrive,
 * times the shortest round trip seen. Within SHUNT_STAGE_MAX, and 64 times that for all streams of the process. A
 * direction in which nothing has been sent for some seconds has the small one again (core/recovery/reclaim.c).
 *
 * Only lanes that keep what was posted (shunt_lane_keeps) have one: those of RDMA devices.
 */
#ifndef SHUNT_CORE_LANE_SEND_WINDOW_H
#define SHUNT_CORE_LANE_SEND_WINDOW_H

#include "core/link/seat.h"

#define SHUNT_SEND_WINDOW_MARKS 8

/* A WR of the stream, and where its bytes end. Written under lane.lock, read by any thread: `wr` first and last. */
struct shunt_send_mark {
	_Atomic uint64_t wr;	/* SHUNT_NEVER: it is being changed, or none */
	_Atomic uint64_t end;	/* stream offset */
};

struct shunt_send_window {	/* tx.lock, except the marks: lane.lock */
	struct shunt_send_mark marks[SHUNT_SEND_WINDOW_MARKS];
	uint32_t next_mark;
	uint64_t marked;	/* end of the newest */

	_Atomic uint32_t bytes;	/* that may be under way */
	/* The stage before this one, from which the device still fetches. */
	_Atomic uint64_t former_wr;	/* number of the last WR that does; 0: none */
	uint64_t former_place;
	uint32_t former_size;

	/* A round: from when the window was full until what was posted last has arrived. */
	uint64_t round_wr;	/* 0: none is measured */
	uint64_t round_from, round_since;	/* what had arrived then; ns */
	uint64_t shortest;	/* ns that a round took; 0: none has ended */

	uint64_t quiet_at, quiet_since;	/* end of what was sent, and when a look found it there first */
};

/* NULL: no memory. */
struct shunt_send_window *shunt_send_window_make(void);
/* The direction begins on a link: the window is small, and nothing is under way. tx.lock held. */
void shunt_send_window_begin(struct shunt_seat *seat);
/* The window is small: the stream leaves its link, or gives memory back. */
void shunt_send_window_leave(struct shunt_seat *seat);
/* WR `number` is to be posted; its bytes end there. lane.lock held. */
void shunt_send_window_mark(struct shunt_seat *seat, uint64_t number, uint64_t end);
/* Stream offset up to which marks say that all has arrived; 0: they say nothing. Any thread. */
uint64_t shunt_send_window_arrived(const struct shunt_seat *seat);
/* Bytes that may be in the stage. Any thread. */
uint32_t shunt_send_window(const struct shunt_seat *seat);
/* A send has found it full, though the ring has room. True: it has grown. */
bool shunt_send_window_full(struct shunt_seat *seat);
/* Nothing has been sent for engine.ring_quiet, or the window never grew. */
bool shunt_send_window_is_quiet(struct shunt_seat *seat);

#endif
