/* SPDX-License-Identifier: MIT */
/*
 * The staging buffer of a stream: accepted bytes that the device does not have yet. Either the lane could not post
 * them, or the device reads from it what a WR cannot carry itself (shunt_lane.fetches). Then it is carved from the
 * link's registered memory (preMR, RB-09). A device that reads, or a lane that keeps bytes in case the queue pair
 * dies (shunt_lane.retains), still needs posted bytes. Such a byte may be overwritten only when its WR is complete.
 * Written under tx.lock, emptied under lane.lock.
 *
 * Eight marks, each a request's number and where its bytes end, say how far that is while others are under way
 * (core/lane/send_window.c). So every chain from which something is fetched ends in a signaled one. A sender without
 * room, a seat that both ends have left, and a pin wait for completions in the lane's list of those held
 * (SHUNT_WORK_DONE).
 */
#ifndef SHUNT_CORE_LANE_SEND_BUFFER_H
#define SHUNT_CORE_LANE_SEND_BUFFER_H

#include "core/base/iov.h"
#include "core/link/seat.h"

#define SHUNT_SEND_BUFFER_BYTES 65536	/* a power of two: for bytes that the ring has room for */
#define SHUNT_SEND_BUFFER_CUTS 1024	/* sends that are kept apart; a power of two */

/* The direction begins on the link, at tx.offset: nothing is staged, nothing posted before is fetched any more. */
void shunt_send_buffer_begin(struct shunt_seat *seat, uint64_t offset);
/* False: there is no memory for one. */
bool shunt_send_buffer_ready(struct shunt_seat *seat, bool apart);
/* It holds `bytes`, or as much as it ever will. */
bool shunt_send_buffer_is_wide(struct shunt_seat *seat, uint64_t bytes);
/*
 * Makes the stage hold at least `bytes`, or as many as there is memory for; seat.out.overflow.most follows that. 0; -ENOMEM: no
 * memory; -EBUSY: the device still needs bytes of the former one.
 */
int shunt_send_buffer_widen(struct shunt_seat *seat, uint64_t bytes);
/* shunt_send_buffer_widen() would not say -EBUSY. Any thread. */
bool shunt_send_buffer_may_widen(const struct shunt_seat *seat);
/* Gives a widened buffer back when it is empty, and quiet. True: it may be later. */
bool shunt_send_buffer_narrow(struct shunt_seat *seat);
/*
 * Takes up to `bytes` of `from` into the buffer, behind tx.offset, until that holds `most`.
 * `apart`: a send of its own, not to be merged with the next (SHUNT_BATCH single and chain).
 */
size_t shunt_send_buffer_take(struct shunt_seat *seat, struct shunt_iov *from, size_t bytes,
			      uint64_t most, bool apart);
/* How many of the bytes from `offset` to `end` one WR may carry; at most what lies contiguously. */
uint32_t shunt_send_buffer_piece(struct shunt_send_buffer *stage, uint64_t offset, uint64_t end);
/* WR `number` is to be posted, and fetches bytes up to `end` from the buffer. lane.lock held. */
void shunt_send_buffer_keep(struct shunt_seat *seat, uint64_t number, uint64_t end);
/* Stream offset up to which bytes may be overwritten. It never falls. tx.lock held. */
uint64_t shunt_send_buffer_arrived(struct shunt_seat *seat);
/* Bytes up to `offset` are not in it any more, or never were: they went past it, and have arrived. */
void shunt_send_buffer_lacks(struct shunt_seat *seat, uint64_t offset);
/* Bytes up to `offset` have been posted. */
void shunt_send_buffer_posted(struct shunt_send_buffer *stage, uint64_t offset);
/* Copies the stream's bytes [from, to), which were posted or staged. False: they may have been overwritten. */
bool shunt_send_buffer_copy(struct shunt_seat *seat, uint8_t *out, uint64_t from, uint64_t to);
/* The stream leaves its link: nothing is fetched any more. */
void shunt_send_buffer_leave(struct shunt_seat *seat);
/* Its window stays, for the next stream that has this memory: threads may still look at it. */
void shunt_send_buffer_free(struct shunt_send_buffer *stage);

/* How many of the bytes from `offset` to `end` lie contiguously. */
static inline uint64_t shunt_send_buffer_span(const struct shunt_send_buffer *stage, uint64_t offset,
					      uint64_t end)
{
	uint64_t left = stage->size - (offset & (stage->size - 1));

	return end - offset < left ? end - offset : left;
}

static inline void *shunt_send_buffer_at(const struct shunt_send_buffer *stage, uint64_t offset)
{
	return stage->bytes + (offset & (stage->size - 1));
}

/*
 * Bytes in it. Below 0: a send goes straight from the program's buffer, and `posted` runs ahead.
 * Any thread.
 */
int64_t shunt_send_buffer_used(const struct shunt_seat *seat);
/* No more than half of the window is in use: worth telling a sender of. Any thread. */
bool shunt_send_buffer_roomy(const struct shunt_seat *seat);

#endif
