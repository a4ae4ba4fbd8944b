/* SPDX-License-Identifier: MIT */
/*
 * post_send. In inline mode a WR is executed on the spot. If something prevents that (no receive,
 * no peer, a fault, the thread, the cost model), it and its successors go to the queue of
 * pending.c. One doorbell per call: the peer's arming is looked at once, after the last WR.
 */
#include <errno.h>
#include "core/device/soft/device.h"

static const uint16_t wc_opcodes[] = {
	[IBV_WR_RDMA_WRITE] = IBV_WC_RDMA_WRITE,
	[IBV_WR_RDMA_WRITE_WITH_IMM] = IBV_WC_RDMA_WRITE,
	[IBV_WR_SEND] = IBV_WC_SEND,
	[IBV_WR_SEND_WITH_IMM] = IBV_WC_SEND,
	[IBV_WR_RDMA_READ] = IBV_WC_RDMA_READ,
	[IBV_WR_ATOMIC_CMP_AND_SWP] = IBV_WC_COMP_SWAP,
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = IBV_WC_FETCH_ADD,
};

static inline bool is_signaled(const struct soft_qp *qp, const struct ibv_send_wr *wr)
{
	return wr->send_flags & IBV_SEND_SIGNALED || qp->sq_sig_all;
}

/*
 * The peer's QP is up, and is the one that was imported. Acquires what was stored before the release of `live`
 * (qp_advance): else an arrival could be written before soft_receive_reset() has cleared its slot.
 */
static inline bool peer_is_live(struct soft_qp *qp)
{
	return soft_load_acquire(&qp->peer_queue->live) == qp->peer_generation;
}

/*
 * Success means that the peer polls what was written. A peer that has gone to ERROR polls only arrivals from before
 * it said so (state.c), so it must not have said so by now. Else nobody knows, as when an acknowledgement is lost.
 * The fence pairs with that of soft_qp_break(). Without it the look at `live` may come before the arrival is visible:
 * a WR succeeds here that the peer never polls.
 */
static inline bool is_certain(struct soft_qp *qp)
{
	soft_fence();
	return likely(peer_is_live(qp));
}

/* A WR has been carried out, or has failed and takes the QP with it. sq_lock held. */
void soft_send_done(struct soft_qp *qp, const struct ibv_send_wr *wr, uint64_t bytes, uint64_t sq_end,
		    int status)
{
	struct soft_wc wc = { .qp = qp, .wr_id = wr->wr_id, .sq_end = sq_end,
			      .byte_len = (uint32_t)bytes, .opcode = wc_opcodes[wr->opcode],
			      .status = (uint16_t)status };
	bool kept;

	if (status == IBV_WC_SUCCESS && !is_certain(qp))
		wc.status = (uint16_t)(status = IBV_WC_RETRY_EXC_ERR);
	kept = soft_cq_push(qp->send_cq, &wc);
	if (unlikely(status != IBV_WC_SUCCESS || !kept))
		soft_qp_break(qp);
}

static inline int wr_check(const struct soft_qp *qp, const struct ibv_send_wr *wr, uint64_t *bytes)
{
	uint64_t sum = 0;

	if (unlikely(wr->num_sge < 0 || wr->num_sge > SOFT_MAX_SGE ||
		     (unsigned int)wr->opcode > IBV_WR_ATOMIC_FETCH_AND_ADD))
		return EINVAL;
	for (int i = 0; i < wr->num_sge; i++)
		sum += wr->sg_list[i].length;
	if (wr->send_flags & IBV_SEND_INLINE && unlikely(sum > qp->max_inline))
		return EINVAL;
	*bytes = sum;
	if (unlikely(qp->sq_posted - soft_load_acquire(&qp->sq_freed) >= qp->sq_depth))
		return ENOMEM;
	return 0;
}

static void trace_wr(struct soft_qp *qp, const struct ibv_send_wr *wr, uint64_t bytes)
{
	qp->trace[qp->traced++ % qp->trace_entries] = (struct soft_trace) {
		.time = qp->context->attr.now(),
		.doorbell = qp->counters.doorbells,
		.wr_id = wr->wr_id,
		.qp_num = qp->ibv.qp_num,
		.bytes = (uint32_t)bytes,
		.opcode = wr->opcode,
		.flags = wr->send_flags,
		.imm_data = wr->imm_data,
	};
}

static inline void count_wr(struct soft_qp *qp, const struct ibv_send_wr *wr, uint64_t bytes)
{
	struct soft_counters *counters = &qp->counters;

	soft_qp_count(&counters->wr, 1);
	soft_qp_count(&counters->wr_bytes, bytes);
	if (wr->send_flags & IBV_SEND_INLINE)
		soft_qp_count(&counters->inline_wr, 1);
	if (is_signaled(qp, wr))
		soft_qp_count(&counters->signaled, 1);
	if (unlikely(qp->trace != NULL))
		trace_wr(qp, wr, bytes);
}

static bool test_wants_failure(struct soft_qp *qp)
{
	uint32_t nth = soft_load(&qp->fail_post);

	if (!nth)
		return false;
	soft_store(&qp->fail_post, nth - 1);
	if (nth == 1)
		atomic_fetch_and(&qp->slow, ~(uint32_t)SOFT_SLOW_FAIL_POST);
	return nth == 1;
}

static int post_slow(struct soft_qp *qp, struct ibv_send_wr *wr, bool doorbell)
{
	uint32_t state = soft_load(&qp->state);
	uint64_t bytes;
	int err;

	if (state != IBV_QPS_RTS && state != IBV_QPS_ERR)
		return EINVAL;
	if (test_wants_failure(qp))
		return ENOMEM;
	err = wr_check(qp, wr, &bytes);
	if (!err && state == IBV_QPS_RTS)
		err = soft_pending_add(qp, wr, bytes, 0, doorbell);
	if (err)
		return err;
	qp->sq_posted++;
	count_wr(qp, wr, bytes);
	if (state == IBV_QPS_ERR)
		soft_send_done(qp, wr, 0, qp->sq_posted, IBV_WC_WR_FLUSH_ERR);
	return 0;
}

static inline int post_fast(struct soft_qp *qp, struct ibv_send_wr *wr)
{
	uint64_t bytes;
	int status, err = wr_check(qp, wr, &bytes);

	if (unlikely(err))
		return err;
	status = soft_execute(qp, wr, bytes);
	if (unlikely(status == SOFT_FAULTED))
		return EFAULT; /* as if it had not been posted: the caller has given memory that is not there */
	if (unlikely(status == SOFT_RNR)) {
		err = soft_pending_add(qp, wr, bytes, status, false);
		if (err)
			return err;
	}
	qp->sq_posted++;
	count_wr(qp, wr, bytes);
	if (status != SOFT_RNR && (status != IBV_WC_SUCCESS || is_signaled(qp, wr)))
		soft_send_done(qp, wr, bytes, qp->sq_posted, status);
	return 0;
}

/* True: a sleeper on the channel is armed for this, and the poster is the one that takes the arming to zero. */
static inline bool takes_arming(struct soft_qp *qp, bool solicited)
{
	uint32_t armed = atomic_load(&qp->peer_queue->armed);

	if (likely(armed == SEGMENT_DISARMED) || (armed == SEGMENT_ARMED_SOLICITED && !solicited))
		return false;
	if (atomic_exchange(&qp->peer_queue->armed, SEGMENT_DISARMED) == SEGMENT_DISARMED)
		return false;
	soft_qp_count(&qp->counters.wakes, qp->wake_fd >= 0);
	return qp->wake_fd >= 0;
}

/*
 * Does the peer sleep, and is this what it waits for? The caller wakes those whose bits are set, without the lock: bit 0 is
 * whoever sleeps on the channel, the others are waiters. There is one wake per arming.
 */
uint32_t soft_send_ring(struct soft_qp *qp)
{
	bool solicited = qp->rang_solicited, others = true;
	uint32_t waiters = 0;

	if (!qp->rang)
		return 0;
	qp->rang = false;
	qp->rang_solicited = false;
	/*
	 * Arrivals come before the look at the arming. Pairs with the fence of soft_req_notify_cq(). Without it the arrival
	 * may still be in the store buffer when the peer polls for the last time, and nobody wakes it.
	 */
	soft_fence();
	if (unlikely(qp->rang_count) && solicited)
		waiters = soft_waiters_due(qp, &others);
	return waiters | takes_arming(qp, solicited && others);
}

static inline void progress_inline(struct soft_qp *qp)
{
	if (unlikely(soft_load(&qp->slow) & SOFT_SLOW_PENDING) && !qp->context->thread)
		soft_pending_progress(qp);
}

static int post_list(struct soft_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	int err = 0;
	bool fast = !soft_load(&qp->slow) && peer_is_live(qp), doorbell = true;

	if (unlikely(!fast) && soft_load(&qp->slow) & SOFT_SLOW_MODEL)
		progress_inline(qp); /* what is due is no longer outstanding */
	for (; wr; wr = wr->next, doorbell = false) {
		if (likely(fast)) {
			err = post_fast(qp, wr);
			fast = !soft_load(&qp->slow);
		} else {
			err = post_slow(qp, wr, doorbell);
		}
		if (unlikely(err)) {
			*bad_wr = wr;
			break;
		}
	}
	progress_inline(qp);
	return err;
}

int soft_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct soft_qp *qp = container_of(ibqp, struct soft_qp, ibv);
	uint32_t wake;
	int err;

	soft_lock(&qp->sq_lock);
	soft_qp_count(&qp->counters.doorbells, 1);
	err = post_list(qp, wr, bad_wr);
	wake = soft_send_ring(qp);
	soft_unlock(&qp->sq_lock);
	if (unlikely(wake) && qp->rings_later)
		atomic_fetch_or(&qp->rings, wake);
	else if (unlikely(wake))
		soft_peer_wake(qp, wake);
	if (unlikely(qp->context->thread != NULL))
		soft_thread_kick(qp->context);
	return err;
}
