/* SPDX-License-Identifier: MIT */
#include "core/lane/direct.h"
#include "core/base/narrow.h"
#include "core/lane/copying.h"
#include "core/lane/lane_serve.h"
#include "core/lane/lane_trace.h"
#include "core/lane/wr.h"
#include "core/lane/send_queue.h"
#include "core/trace/probe.h"
#include "core/poll/group.h"

/* A sender that never waits gets its completions here. */
static __attribute__((noinline)) bool admitted_now(struct shunt_lane *lane, uint32_t bytes)
{
	enum shunt_limit limit;

	shunt_group_poll(lane->group);
	limit = shunt_wr_admit(lane, 0, 0, bytes, lane->reserve);
	if (limit) {
		__atomic_fetch_add(&lane->counters.stalls[limit], 1, __ATOMIC_RELAXED);
		SHUNT_PROBE4(stall, -1, lane->link->peer_pid, lane->number,
			     shunt_limit_names[limit]);
	}
	return !limit;
}

static inline bool admitted(struct shunt_lane *lane, uint32_t bytes)
{
	return __builtin_expect(shunt_wr_admit(lane, 0, 0, bytes, lane->reserve) == SHUNT_LIMIT_NONE, 1) ||
	       admitted_now(lane, bytes);
}

/* One WR of at most `bytes`, for stream offset `offset`. Returns its length; 0: the QP refused it, or from->bad. */
static inline uint32_t post_piece(struct shunt_lane *lane, struct shunt_seat *seat,
				  struct shunt_iov *from, uint32_t bytes, uint64_t offset,
				  enum shunt_wr_part part_of)
{
	struct shunt_seat_out *out = &seat->out;
	struct shunt_iov rest = *from;
	struct iovec part;
	struct ibv_sge sge[SHUNT_LANE_SGES];
	const struct shunt_pin *pin = atomic_load_explicit(&out->pin, memory_order_relaxed);
	uint32_t lkey = pin ? pin->mr->lkey : 0;
	struct ibv_send_wr wr;
	uint32_t length = 0;
	int sges = 0, flags, error;

	while (sges < (int)lane->max_sges && shunt_iov_next(&rest, bytes - length, &part)) {
		sge[sges++] = (struct ibv_sge) { .addr = (uintptr_t)part.iov_base,
						 .length = (uint32_t)part.iov_len,
						 .lkey = lkey };
		length += sge[sges - 1].length;
	}
	/* A sender that has pinned its buffer waits for this WR (zero_copy.c). */
	flags = shunt_wr_flags(lane, lane->sent + 1, 0, length, true,
			       length > lane->max_inline || (pin && lane->retains));
	flags |= shunt_copying_flags(lane, out, offset, length);
	shunt_wr_fill(&wr, sge, sges, flags | IBV_SEND_SOLICITED, lane->sent + 1,
		      shunt_imm_make(part_of == SHUNT_WR_BEHIND ? SHUNT_IMM_ROUND : SHUNT_IMM_DATA,
				     seat->peer_id),
		      shunt_wr_place(out, offset), out->ring.rkey);
	if (part_of == SHUNT_WR_AHEAD)
		shunt_wr_silence(&wr);
	atomic_store_explicit(&out->exposed, offset + length, memory_order_release);
	if (__builtin_expect(length < bytes, 0))
		shunt_window_shorten(&lane->window, bytes, length);
	shunt_wr_expect(lane, length);
	if (__builtin_expect(!shunt_wr_try(lane, &wr, 1, &error), 0)) {
		from->bad = error == EFAULT;
		shunt_wr_not_posted(lane, length);
		return 0;
	}
	lane->counters.direct++;
	if (part_of == SHUNT_WR_AHEAD) {
		lane->reads++;
		return length;
	}
	out->last_wr = lane->sent;
	if (__builtin_expect(pin != NULL, 0))
		shunt_send_queue_pinned(seat, lane->sent, offset, wr.sg_list,
				       flags & IBV_SEND_INLINE);
	atomic_store_explicit(&out->posted, offset + length, memory_order_release);
	return length;
}

/* All `bytes`, of which `first` are before the ring's end, or none. */
static __attribute__((noinline)) uint32_t post_round(struct shunt_lane *lane,
						     struct shunt_seat *seat,
						     struct shunt_iov *whole, uint32_t first,
						     uint32_t bytes)
{
	uint64_t offset = atomic_load_explicit(&seat->out.posted, memory_order_relaxed);
	struct shunt_iov from = *whole;

	if (!post_piece(lane, seat, whole, first, offset, SHUNT_WR_AHEAD)) {
		shunt_window_return(&lane->window, bytes - first);
		return 0;
	}
	shunt_iov_advance(&from, first);
	if (post_piece(lane, seat, &from, bytes - first, offset + first, SHUNT_WR_BEHIND))
		return bytes;
	whole->bad = from.bad;
	return 0;
}

/* Bytes that have been admitted are about to be posted. */
static __attribute__((noinline)) void write_records(struct shunt_lane *lane,
						    struct shunt_seat *seat, uint64_t upto)
{
	shunt_lane_trace_write(lane, seat, upto);
	if (lane->trace)
		shunt_lane_trace_stamp(lane);
}

static __attribute__((noinline)) void posted_traced(struct shunt_lane *lane,
						    const struct shunt_seat *seat)
{
	if (!lane->trace)
		return;
	shunt_lane_trace_post(lane, seat,
			      atomic_load_explicit(&seat->out.posted, memory_order_relaxed),
			      lane->sent);
	shunt_lane_trace_look(lane);
}

static inline __attribute__((always_inline)) size_t direct_send(struct shunt_lane *lane,
								struct shunt_seat *seat,
								struct shunt_iov *from,
								size_t bytes, const bool traced)
{
	struct shunt_seat_out *out = &seat->out;
	size_t taken = 0;

	shunt_assert_held(&lane->lock);
	while (taken < bytes) {
		uint64_t offset = atomic_load_explicit(&out->posted, memory_order_relaxed);
		size_t left = bytes - taken;
		uint32_t length = shunt_wr_piece(lane, out, offset, left),
			 both = shunt_narrow_u32(left);

		if (shunt_wr_goes_round(lane, out, offset, length, left) &&
		    from->iovcnt <= (int)lane->max_sges && !out->pin &&
		    shunt_wr_admit_two(lane, 0, 0, length, both - length)) {
			if (traced)
				write_records(lane, seat, offset + both);
			length = post_round(lane, seat, from, length, both);
		} else {
			if (!admitted(lane, length))
				break;
			if (traced)
				write_records(lane, seat, offset + length);
			length = post_piece(lane, seat, from, length, offset, SHUNT_WR_WHOLE);
		}
		if (!length)
			break;
		if (traced)
			posted_traced(lane, seat);
		taken += length;
		shunt_iov_advance(from, length);
		/* A large send lets the others in between its fragments (XR-22). */
		if (__builtin_expect(taken < bytes && atomic_load_explicit(&lane->waiting, memory_order_relaxed), 0))
			shunt_lane_serve(lane);
	}
	return taken;
}

/* Apart, so that sends which nobody follows pay one look. */
static __attribute__((noinline)) size_t direct_send_traced(struct shunt_lane *lane,
							   struct shunt_seat *seat,
							   struct shunt_iov *from, size_t bytes)
{
	return direct_send(lane, seat, from, bytes, true);
}

size_t shunt_direct_send(struct shunt_lane *lane, struct shunt_seat *seat, struct shunt_iov *from,
			 size_t bytes)
{
	shunt_assert_held(&lane->lock);
	if (__builtin_expect(shunt_lane_trace_due(seat), 0))
		return direct_send_traced(lane, seat, from, bytes);
	return direct_send(lane, seat, from, bytes, false);
}
