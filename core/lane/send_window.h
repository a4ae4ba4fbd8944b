/* SPDX-License-Identifier: MIT */
/*
 * How many bytes of a stream may be under way: posted, and kept until they have arrived. A stage of 64 KiB bears no
 * more than that for each round trip. So it grows to the bandwidth-delay product: the rate at which bytes arrive,
 * times the shortest round trip seen. Within SHUNT_STAGE_MAX, and 64 times that for all streams of the process. A
 * direction in which nothing has been sent for some seconds has the small one again (core/recovery/reclaim.c).
 *
 * Only lanes that keep what was posted (shunt_lane_keeps) have one: those of RDMA devices.
 *
 * Keeping what was sent. A QP can die while both processes live. Where the peer's memory cannot be seen (an RDMA
 * device; SHUNT_RETAIN=always for tests of the same code on the soft device) a lane retains. Every send goes through
 * the stream's stage, inline or fetched, and stays there until its work request is complete. Every chain ends in a
 * signaled one. A pinned send's buffer is its own copy. A completion means that the peer's device has acknowledged
 * the message, and that its own completion is in memory of the peer. An acknowledgement of the engine would take a
 * message for each quarter of a stage. A stage bears as much in a round trip as it is large, so it grows with the
 * path. It gets twice the rate at which bytes arrive, times the shortest round trip seen. It is measured only while a
 * send finds the stage full and all of it posted. The wider stage gets what is under way, too, and the narrow one
 * stays until the device has fetched from it; there are never three. After some quiet seconds the stage is small
 * again (core/recovery/reclaim.c). Behind a gate of tokens a stage does not grow. The peer takes all its completions
 * before it says how far it has come. A message that the peer misses all the same makes a reset, never a hole.
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
