/* SPDX-License-Identifier: MIT */
/*
 * The send queue of a direction: bytes that the program has sent and that may be needed yet. From `posted` to
 * `staged` the device does not have them. Bytes before `posted` stay until their WR is complete where it cannot
 * carry them itself (shunt_lane.fetches). So they do where a lane keeps them in case the queue pair dies
 * (shunt_lane.retains).
 *
 * They lie in the stage, a ring of the process' memory or of the link's registered memory (preMR, RB-09). Those of a
 * large blocking send stay in the program's own buffer, which is registered (dynMR, RB-10). The call returns when the
 * device has read them.
 *
 * A lane that keeps bytes needs to know which have arrived, and has a window: how many may be under way. A stage of
 * 64 KiB bears no more than that for each round trip. So both grow to the bandwidth-delay product: the rate at which
 * bytes arrive, times the shortest round trip seen. Where a sender fills them they have 256 KiB without a measure.
 * Within stage_max, and 64 times that for all streams of the process. A direction in which nothing has been sent for
 * some seconds has the small one again (core/recovery/reclaim.c).
 *
 * Eight marks, each a WR's number and where its bytes end, say how far that is while others are under way. So every
 * chain from which something is fetched ends in a signaled one. A sender without room, a seat that both ends have
 * left, and a pin wait for completions in the lane's list of those held (SHUNT_WORK_DONE). A stream has one pin at a
 * time, so large buffers of a call follow each other; everything else takes the stage. A seat stays as long as there
 * is a pin, because the region is the link's.
 *
 * Keeping what was sent. A QP can die while both processes live. Where the peer's memory cannot be seen (an RDMA
 * device; SHUNT_TUNE=retain=always for tests of the same code on the soft device) a lane retains. Every send goes
 * through the stage, and every chain ends in a signaled WR. A completion means that the peer's device has
 * acknowledged the message, and that its own completion is in memory of the peer. An acknowledgement of the engine
 * would take a message for each quarter of a stage. The path is measured only while a send finds the stage full and
 * all of it posted. The wider stage gets what is under way, too, and the narrow one stays until the device has
 * fetched from it; there are never three. Behind a gate of tokens a stage does not grow. The peer takes all its
 * completions before it says how far it has come. A message that the peer misses all the same makes a reset, never a
 * hole.
 *
 * A READ by the receiver, from the sender's buffer into its own (XR-10, XR-11), was measured and not built.
 * tests/bench/one_copy.c does it with process_vm_readv, the only way between two processes of one host, against two
 * copies through a ring. One copy on one core is slower than two on two cores (EXPERIMENTS.md). Besides, a sender
 * that is read from must wait for a reader that may not come, which a kernel's sender does not.
 *
 * Written under tx.lock, emptied under lane.lock.
 */
#ifndef SHUNT_CORE_LANE_SEND_QUEUE_H
#define SHUNT_CORE_LANE_SEND_QUEUE_H

#include "core/base/iov.h"
#include "core/base/verbs.h"
#include "core/link/seat.h"

#define SHUNT_SEND_QUEUE_BYTES 65536	/* a power of two: of the usual stage, and of the usual window */
#define SHUNT_SEND_QUEUE_CUTS 1024	/* sends that are kept apart; a power of two */
#define SHUNT_SEND_QUEUE_MARKS 8

/* A WR of the stream, and where its bytes end. Written under lane.lock, read by any thread: `wr` first and last. */
struct shunt_send_mark {
	_Atomic uint64_t wr;	/* SHUNT_NEVER: it is being changed, or none */
	_Atomic uint64_t end;	/* stream offset */
};

/* Of a direction on a lane that keeps bytes (shunt_lane_keeps). tx.lock, unless a field says lane.lock. */
struct shunt_send_window {
	struct shunt_send_mark marks[SHUNT_SEND_QUEUE_MARKS];	/* lane.lock */
	uint32_t next_mark;	/* lane.lock */
	uint64_t marked;	/* lane.lock: end of the newest */
	_Atomic uint64_t kept_wr;	/* lane.lock: number of the last WR for which the stage keeps bytes; 0: none */
	_Atomic uint64_t pinned_wr;	/* lane.lock: and the program's buffer; 0: all are complete */
	_Atomic uint64_t reusable;	/* stream offset up to which the stage's bytes may be overwritten already */

	_Atomic uint32_t bytes;	/* that may be under way */
	/* The stage before this one, from which the device still fetches. */
	_Atomic uint64_t former_wr;	/* number of the last WR that does; 0: none */
	uint8_t *former;
	uint32_t former_size;

	/* A round: from when the window was full until what was posted last has arrived. */
	uint64_t round_wr;	/* 0: none is measured */
	uint64_t round_from, round_since;	/* what had arrived then; ns */
	uint64_t shortest;	/* ns that a round took; 0: none has ended */

	uint64_t quiet_at, quiet_since;	/* end of what was sent, and when a look found it there first */
};

/* A buffer of the program's that is registered for one blocking send. */
struct shunt_pin {
	struct ibv_mr *mr;
	const char *at;
	size_t bytes;
	uint64_t from, to;	/* stream offsets: what was posted from it */
	const char *first;	/* the byte of it that is at `from` */
};

/* The direction begins on the link, at `offset`: nothing is staged, nothing posted before is needed any more. */
void shunt_send_queue_begin(struct shunt_seat *seat, uint64_t offset);
/* There is a stage, and where the lane keeps bytes a window. False: there is no memory for them. */
bool shunt_send_queue_ready(struct shunt_seat *seat, bool apart);
/* The window alone. */
bool shunt_send_queue_has_window(struct shunt_seat *seat);
/*
 * Makes the stage hold at least `bytes`, or as many as there is memory for; seat.out.overflow.most follows that. 0; -ENOMEM: no
 * memory; -EBUSY: the lane is held, or the device still needs bytes of the former one. tx.lock held.
 */
int shunt_send_queue_widen(struct shunt_seat *seat, uint64_t bytes);
/* The device does not keep the stage from being widened. Any thread. */
bool shunt_send_queue_may_widen(const struct shunt_seat *seat);
/* Gives a widened stage back when it is empty, and quiet. True: it may be later. */
bool shunt_send_queue_narrow(struct shunt_seat *seat);
/*
 * Takes up to `bytes` of `from` into the stage, behind tx.offset, until that holds `most`.
 * `apart`: a send of its own, not to be merged with the next (`batch` single and chain).
 */
size_t shunt_send_queue_take(struct shunt_seat *seat, struct shunt_iov *from, size_t bytes,
			     uint64_t most, bool apart);
/*
 * Room in the stage for bytes that are not in memory yet, until that holds `most`: the largest piece that lies contiguously,
 * at *at. 0: none. shunt_send_queue_add() says how many have come there; both under one hold of tx.lock.
 */
size_t shunt_send_queue_room(struct shunt_seat *seat, uint64_t most, bool apart, void **at);
void shunt_send_queue_add(struct shunt_seat *seat, size_t bytes, bool apart);
/* How many of the bytes from `offset` to `end` one WR may carry; at most what lies contiguously. */
uint32_t shunt_send_queue_piece(struct shunt_send_stage *stage, uint64_t offset, uint64_t end);
/* WR `number` is to be posted, and fetches bytes up to `end` from the stage. lane.lock held. */
void shunt_send_queue_keep(struct shunt_seat *seat, uint64_t number, uint64_t end);
/* Bytes up to `offset` have been posted. */
void shunt_send_queue_posted(struct shunt_send_stage *stage, uint64_t offset);
/* Stream offset up to which bytes may be overwritten. It never falls. tx.lock held. */
uint64_t shunt_send_queue_arrived(struct shunt_seat *seat);
/* The device may still need bytes that were posted. */
bool shunt_send_queue_is_needed(const struct shunt_seat *seat);
/* Copies the stream's bytes [from, to), posted or not. False: some are not kept any more. tx.lock held. */
bool shunt_send_queue_copy(struct shunt_seat *seat, uint8_t *out, uint64_t from, uint64_t to);
/* The stream leaves its link: nothing is fetched any more. */
void shunt_send_queue_leave(struct shunt_seat *seat);
/* Its window stays, for the next stream that has this memory: threads may still look at it. */
void shunt_send_queue_free(struct shunt_send_stage *stage);

/* Bytes that may be in the stage. Any thread. */
uint32_t shunt_send_queue_limit(const struct shunt_seat *seat);
/* A send has found it full, though the ring has room. True: it has grown. */
bool shunt_send_queue_full(struct shunt_seat *seat);
/*
 * Bytes in it. Below 0: a send goes straight from the program's buffer, and `posted` runs ahead.
 * Any thread.
 */
int64_t shunt_send_queue_used(const struct shunt_seat *seat);
/* No more than half of the window is in use: worth telling a sender of. Any thread. */
bool shunt_send_queue_roomy(const struct shunt_seat *seat);

/* A piece of the pinned buffer has been posted at stream offset `offset`, with WR number `number`. lane.lock held. */
void shunt_send_queue_pinned(struct shunt_seat *seat, uint64_t number, uint64_t offset,
			     const struct ibv_sge *sge, bool is_inline);
/* Nothing is pinned any more, and what was posted from there is not in the stage. tx.lock held. */
void shunt_send_queue_unpin(struct shunt_seat *seat);

/* Number of the last WR from the program's buffer; 0: the device has fetched everything. */
static inline uint64_t shunt_send_queue_pinned_wr(const struct shunt_seat *seat)
{
	const struct shunt_send_window *window = atomic_load(&seat->window);

	return window ? atomic_load(&window->pinned_wr) : 0;
}

/*
 * Another thread may be sending something else on the stream. Where what was posted may be needed again, it must
 * be one piece: what does not continue it takes the stage.
 */
static inline bool shunt_send_queue_continues(const struct shunt_seat *seat,
					      const struct shunt_iov *from)
{
	const struct shunt_pin *pin = seat->out.pin;

	return pin && from->iovcnt == 1 && from->iov->iov_base == pin->at &&
	       from->iov->iov_len == pin->bytes &&
	       (pin->from == pin->to || pin->to == atomic_load(&seat->out.staged));
}

/* How many of the bytes from `offset` to `end` lie contiguously. */
static inline uint64_t shunt_send_queue_span(const struct shunt_send_stage *stage, uint64_t offset,
					     uint64_t end)
{
	uint64_t left = stage->size - (offset & (stage->size - 1));

	return end - offset < left ? end - offset : left;
}

static inline void *shunt_send_queue_at(const struct shunt_send_stage *stage, uint64_t offset)
{
	return stage->bytes + (offset & (stage->size - 1));
}

#endif
