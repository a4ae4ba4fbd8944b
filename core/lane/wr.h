/* SPDX-License-Identifier: MIT */
/*
 * The work requests of a lane: whether one more may be posted, its flags, its place in the peer's
 * ring, and the posting. Shared by chain.h and direct.h. lane.lock held.
 */
#ifndef SHUNT_CORE_LANE_WR_H
#define SHUNT_CORE_LANE_WR_H

#include <arpa/inet.h>
#include <errno.h>
#include "core/base/config.h"
#include "core/base/sys.h"
#include "core/lane/lane.h"
#include "core/lane/window.h"
#include "core/link/seat.h"
#include "core/loop/request.h"
#include "core/poll/group.h"

#define SHUNT_WR_ROUND 4096	/* bytes that are seen at once though they lie around the ring's end; the smallest ring */

/* Of bytes around the ring's end the first part is written without a word; what is behind it tells of both. */
enum shunt_wr_part { SHUNT_WR_WHOLE, SHUNT_WR_AHEAD, SHUNT_WR_BEHIND };

/* Posts a READ by itself; *number is its WR's. False: there is no slot for it. */
bool shunt_wr_read(struct shunt_lane *lane, struct ibv_sge *to, uint64_t addr, uint32_t rkey, uint64_t *number);
/* The same for a WRITE of no bytes. */
bool shunt_wr_probe(struct shunt_lane *lane, uint64_t *number);
/* The same for a WRITE of one word without a message. */
bool shunt_wr_word(struct shunt_lane *lane, uint64_t word, uint64_t addr, uint32_t rkey,
		   uint64_t *number);
/* Posts a WRITE of one piece without a message, which need not say when it is complete. Two slots stay free. */
bool shunt_wr_plain(struct shunt_lane *lane, struct ibv_sge *from, uint64_t addr, uint32_t rkey);
/* The same for a FETCH_AND_ADD; what was there before is in the 8 bytes of `to` once the WR is complete. */
bool shunt_wr_fetch_add(struct shunt_lane *lane, struct ibv_sge *to, uint64_t add, uint64_t addr,
			uint32_t rkey, uint64_t *number);

/* One more message behind `ahead`, `reserve` receives kept back. */
static inline enum shunt_limit shunt_wr_slots(struct shunt_lane *lane, uint32_t ahead, uint32_t reserve)
{
	uint64_t next = lane->sent + ahead;

	if (__builtin_expect(atomic_load_explicit(&lane->allowed, memory_order_acquire) <= next - lane->reads + reserve, 0))
		return SHUNT_LIMIT_RECEIVES;
	if (__builtin_expect(next - atomic_load_explicit(&lane->retired, memory_order_acquire) >=
			     shunt_lane_slots(lane), 0))
		return SHUNT_LIMIT_SQ;
	return SHUNT_LIMIT_NONE;
}

/* WRs that are not known to be complete, with `ahead` that will be. */
static inline uint64_t shunt_wr_out(const struct shunt_lane *lane, uint32_t ahead)
{
	return lane->sent + ahead - atomic_load_explicit(&lane->retired, memory_order_relaxed);
}

/*
 * Data of `bytes` behind `ahead` WRs with `ahead_bytes` of data; 0 bytes: a control message, for which there is no
 * window.
 */
static inline enum shunt_limit shunt_wr_admit(struct shunt_lane *lane, uint32_t ahead, uint64_t ahead_bytes,
					      uint32_t bytes, uint32_t reserve)
{
	enum shunt_limit limit = shunt_wr_slots(lane, ahead, reserve);

	if (limit || !bytes)
		return limit;
	return shunt_window_admit(&lane->window, shunt_wr_out(lane, ahead), ahead_bytes, bytes);
}

/* Data in two WRs, both or none of them. */
static inline bool shunt_wr_admit_two(struct shunt_lane *lane, uint32_t ahead, uint64_t ahead_bytes,
				      uint32_t first, uint32_t second)
{
	if (shunt_wr_slots(lane, ahead + 1, lane->reserve) ||
	    shunt_wr_admit(lane, ahead, ahead_bytes, first, lane->reserve))
		return false;
	if (!shunt_window_admit(&lane->window, shunt_wr_out(lane, ahead + 1), ahead_bytes + first, second))
		return true;
	shunt_window_return(&lane->window, first);
	return false;
}

#define SHUNT_WR_TIMED_EVERY 32	/* WRs; the clock is read twice for one of so many */

/* When a signaled WR is posted, if it is timed; else 0. */
static inline uint64_t shunt_wr_time(struct shunt_lane *lane, uint64_t number)
{
	if (!lane->window.policy->completed &&
	    !shunt_config_live(&lane->group->config->slow_us) &&
	    number - lane->last_timed < SHUNT_WR_TIMED_EVERY)
		return 0;
	lane->last_timed = number;
	return lane->group->sys->now();
}

/* WR `number` says when it is complete; `posted`: all data up to and with it. */
static inline void shunt_wr_signal(struct shunt_lane *lane, uint64_t number, uint64_t posted)
{
	struct shunt_window *window = &lane->window;

	lane->unsignaled = 0;
	lane->last_signaled = number;
	lane->counters.signaled++;
	if (number - lane->retired > window->most_wrs)
		window->most_wrs = number - lane->retired;
	shunt_window_mark(window, number, posted, shunt_wr_time(lane, number));
}

/* `must`: somebody waits for it to be done. */
static inline int shunt_wr_flags(struct shunt_lane *lane, uint64_t number, uint64_t ahead, uint32_t bytes, bool data, bool must)
{
	struct shunt_window *window = &lane->window;
	int flags = 0;

	if (__builtin_expect(bytes <= lane->max_inline, 1))
		flags = IBV_SEND_INLINE;
	else
		lane->counters.gathered++;
	if (!data)
		bytes = 0;
	if (++lane->unsignaled < lane->signal_every && !lane->late && !must &&
	    !shunt_window_signals(window, ahead, bytes))
		return flags;
	shunt_wr_signal(lane, number, window->posted + ahead + bytes);
	return flags | IBV_SEND_SIGNALED;
}

static inline void shunt_wr_fill(struct ibv_send_wr *wr, struct ibv_sge *sge, int sges, int flags, uint64_t number,
				  uint32_t imm, uint64_t address, uint32_t rkey)
{
	wr->wr_id = number;
	wr->next = NULL;
	wr->sg_list = sge;
	wr->num_sge = sges;
	wr->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	wr->send_flags = flags;
	wr->imm_data = htonl(imm);
	wr->wr.rdma.remote_addr = address;
	wr->wr.rdma.rkey = rkey;
}

/* Said before they are posted: they may be complete before the QP returns. */
static inline void shunt_wr_expect(struct shunt_lane *lane, uint64_t bytes)
{
	struct shunt_window *window = &lane->window;

	atomic_store_explicit(&window->posted, window->posted + bytes, memory_order_relaxed);
}

static inline void shunt_wr_not_posted(struct shunt_lane *lane, uint32_t bytes)
{
	struct shunt_window *window = &lane->window;

	atomic_store_explicit(&window->posted, window->posted - bytes, memory_order_relaxed);
	shunt_window_return(window, bytes);
}

/* Posts linked WRs, `count` of them. Returns how many the QP took; *error: why not all, an errno. */
static inline uint32_t shunt_wr_try(struct shunt_lane *lane, struct ibv_send_wr *wr, uint32_t count,
				    int *error)
{
	struct ibv_send_wr *bad = NULL;
	uint32_t taken = count;

	lane->counters.doorbells++;
	*error = ibv_post_send(lane->qp, wr, &bad);
	if (__builtin_expect(*error, 0)) {
		taken = 0;
		for (; wr && wr != bad; wr = wr->next)
			taken++;
		lane->counters.post_failures++;
		/* The WR that was to be signaled may be among those refused: the next is, and nobody waits before. */
		lane->unsignaled = lane->signal_every;
		lane->last_signaled = 0;
		if (*error != EFAULT) { /* the caller's memory: nothing to be tried again */
			atomic_store(&lane->refused, true);
			shunt_request_retry(lane->group->loop);
		}
	}
	lane->sent += taken;
	return taken;
}

static inline uint32_t shunt_wr_post(struct shunt_lane *lane, struct ibv_send_wr *wr,
				     uint32_t count)
{
	int error;

	return shunt_wr_try(lane, wr, count, &error);
}

/* `piece` of these bytes ends with the ring, and the rest is one WR, too. */
static inline bool shunt_wr_goes_round(const struct shunt_lane *lane,
				       const struct shunt_seat_out *out, uint64_t offset,
				       uint32_t piece, uint64_t bytes)
{
	return __builtin_expect(piece < bytes && bytes <= SHUNT_WR_ROUND, 0) &&
	       !((offset + piece) & (out->ring.bytes - 1)) && bytes - piece <= lane->frag_bytes;
}

/* A control word for WR `number`: inline, or from the lane's registered memory. `word` stays until it is posted. */
static inline struct ibv_sge shunt_wr_word_sge(const struct shunt_lane *lane, const uint64_t *word,
					       uint64_t number)
{
	uint64_t *kept;

	if (__builtin_expect(lane->words == NULL, 1))
		return (struct ibv_sge) { .addr = (uintptr_t)word, .length = sizeof(*word) };
	kept = &lane->words[number & (lane->sq_depth - 1)];
	*kept = *word;
	return (struct ibv_sge) { .addr = (uintptr_t)kept, .length = sizeof(*kept), .lkey = lane->words_lkey };
}

static inline void shunt_wr_silence(struct ibv_send_wr *wr)
{
	wr->opcode = IBV_WR_RDMA_WRITE;
	wr->send_flags &= ~IBV_SEND_SOLICITED;
}

/* How many of `bytes` at `offset` go to one place: up to the ring's wrap and the fragment. */
static inline uint32_t shunt_wr_piece(const struct shunt_lane *lane,
				      const struct shunt_seat_out *out, uint64_t offset,
				      uint64_t bytes)
{
	uint32_t size = out->ring.bytes, piece = size - (uint32_t)(offset & (size - 1));

	if (piece > lane->frag_bytes)
		piece = lane->frag_bytes;
	return bytes < piece ? (uint32_t)bytes : piece;
}

static inline uint64_t shunt_wr_place(const struct shunt_seat_out *out, uint64_t offset)
{
	return out->ring.address + (offset & (out->ring.bytes - 1));
}

#endif
