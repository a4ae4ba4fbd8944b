/* SPDX-License-Identifier: MIT */
/*
 * WRs that could not or, by the cost model, must not be executed when they were posted, in order. Each post to the
 * QP, each poll of a CQ of it, and the thread in its mode try them again. That ends when they succeed or their time
 * is over (RNR and transport timers of an RC requester, 9.7.5.2.8 and 9.9.2.1).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/copy.h"
#include "core/device/soft/device.h"

static struct soft_pending *pending_at(struct soft_qp *qp, uint32_t i)
{
	return &qp->pending[(qp->pending_head + i) & (qp->sq_depth - 1)];
}

/* Units of 10 µs: 655.36 ms for 0, else table 45 of the specification. */
static uint64_t rnr_timer_ns(uint32_t code)
{
	static const uint16_t table[32] = {
		0xffff, 1,   2,   3,	4,    6,    8,	  12,	16,   24,   32,	  48,	64,    96,    128,   192,
		256,	384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
	};

	return table[code & 31] * 10000ull;
}

/* How long nobody may answer; never where the timeout is 0. */
static uint64_t retry_ns(const struct soft_qp *qp)
{
	if (!qp->attr.timeout)
		return UINT64_MAX;
	return (qp->attr.retry_cnt + 1ull) * (4096ull << qp->attr.timeout);
}

/* An inline WR's payload is the caller's only until post_send returns. */
static int payload_copy(struct soft_pending *to, const struct ibv_send_wr *wr, uint64_t bytes)
{
	char *at;

	if (!(wr->send_flags & IBV_SEND_INLINE) || !bytes)
		return 0;
	at = malloc(bytes);
	if (!at)
		return ENOMEM;
	to->payload = at;
	for (int i = 0; i < wr->num_sge; i++) {
		if (!shunt_copy_plain(at, (const void *)(uintptr_t)wr->sg_list[i].addr,
				      wr->sg_list[i].length)) {
			free(to->payload);
			to->payload = NULL;
			return EFAULT;
		}
		at += wr->sg_list[i].length;
	}
	to->sge[0] = (struct ibv_sge){ (uint64_t)(uintptr_t)to->payload, (uint32_t)bytes, 0 };
	to->wr.num_sge = 1;
	return 0;
}

/*
 * soft_qp_settled() reads it without the lock, after it has stored settle_asked. qp_work() in thread.c reads
 * settle_asked after this. All four are sequentially consistent: else both may read the old, and nobody is told.
 */
static void count_set(struct soft_qp *qp, uint32_t count)
{
	__atomic_store_n(&qp->pending_count, count, __ATOMIC_SEQ_CST);
}

static void rnr_note(struct soft_qp *qp, struct soft_pending *pending)
{
	soft_qp_count(&qp->counters.rnr, 1);
	pending->rnr_tries++;
	pending->rnr_at = qp->context->attr.now() + rnr_timer_ns(soft_load(&qp->peer_queue->rnr_timer));
}

/*
 * The WR becomes number sq_posted + 1 of the SQ. `outcome`: how a first try has ended, or 0.
 * `doorbell`: it is the first of its post_send.
 */
int soft_pending_add(struct soft_qp *qp, const struct ibv_send_wr *wr, uint64_t bytes, int outcome,
		     bool doorbell)
{
	struct soft_pending *to;
	int err;

	if (!qp->pending)
		qp->pending = calloc(qp->sq_depth, sizeof(*qp->pending));
	if (!qp->pending)
		return ENOMEM;
	to = pending_at(qp, qp->pending_count);
	*to = (struct soft_pending){ .wr = *wr, .bytes = bytes, .posted_bytes = bytes,
				     .sq_end = qp->sq_posted + 1 };
	err = payload_copy(to, wr, bytes);
	if (err)
		return err;
	if (!to->payload && wr->num_sge)
		memcpy(to->sge, wr->sg_list, (size_t)wr->num_sge * sizeof(*to->sge));
	to->wr.sg_list = to->sge;
	to->wr.next = NULL;
	if (outcome == SOFT_RNR)
		rnr_note(qp, to);
	if (qp->context->attr.model.on)
		to->due = soft_nic_enter(qp, bytes, doorbell);
	count_set(qp, qp->pending_count + 1);
	if (qp->pending_count == 1) {
		atomic_fetch_or(&qp->slow, SOFT_SLOW_PENDING);
		soft_cq_busy(qp, 1);
	}
	return 0;
}

static void pop(struct soft_qp *qp)
{
	struct soft_pending *head = pending_at(qp, 0);

	free(head->payload);
	head->payload = NULL;
	if (qp->context->attr.model.on)
		soft_nic_leave(qp->context, head->posted_bytes);
	qp->pending_head++;
	count_set(qp, qp->pending_count - 1);
	if (qp->pending_count)
		return;
	atomic_fetch_and(&qp->slow, ~(uint32_t)SOFT_SLOW_PENDING);
	soft_cq_busy(qp, -1);
}

static void pending_finish(struct soft_qp *qp, int status)
{
	struct soft_pending *head = pending_at(qp, 0);
	struct ibv_send_wr wr = head->wr;
	uint64_t bytes = head->bytes, sq_end = head->sq_end;

	pop(qp);
	if (status != IBV_WC_SUCCESS || wr.send_flags & IBV_SEND_SIGNALED || qp->sq_sig_all)
		soft_send_done(qp, &wr, bytes, sq_end, status);
}

/* 0: wait on; else the status that the WR ends with. */
static int rnr_wait(struct soft_qp *qp, struct soft_pending *head)
{
	if (!head->rnr_at) {
		rnr_note(qp, head);
		return 0;
	}
	if (qp->context->attr.now() < head->rnr_at)
		return 0;
	if (qp->attr.rnr_retry < 7 && head->rnr_tries > qp->attr.rnr_retry)
		return IBV_WC_RNR_RETRY_EXC_ERR;
	rnr_note(qp, head);
	return 0;
}

static int silence_wait(struct soft_qp *qp, struct soft_pending *head)
{
	uint64_t now = qp->context->attr.now(), limit = retry_ns(qp);

	if (!head->unreachable_at)
		head->unreachable_at = now ? now : 1;
	if (limit == UINT64_MAX || now - head->unreachable_at < limit)
		return 0;
	return IBV_WC_RETRY_EXC_ERR;
}

static bool peer_answers(struct soft_qp *qp)
{
	return soft_load(&qp->fault) != SOFT_FAULT_DROP && !(soft_load(&qp->slow) & SOFT_SLOW_GONE) &&
	       soft_load_acquire(&qp->peer_queue->live) == qp->peer_generation;
}

static bool is_due(struct soft_qp *qp, const struct soft_pending *head)
{
	return !head->due || head->due <= qp->context->attr.now();
}

/* True: the head is done with, look at the next. */
static bool try_head(struct soft_qp *qp)
{
	struct soft_pending *head = pending_at(qp, 0);
	int outcome, status;

	if (!is_due(qp, head))
		return false;
	if (!peer_answers(qp)) {
		status = silence_wait(qp, head);
	} else {
		head->unreachable_at = 0;
		outcome = soft_execute(qp, &head->wr, head->bytes);
		if (outcome != SOFT_RNR) {
			pending_finish(qp, outcome == SOFT_FAULTED ? IBV_WC_LOC_PROT_ERR : outcome);
			return true;
		}
		status = rnr_wait(qp, head);
	}
	if (status)
		pending_finish(qp, status);
	return status != 0;
}

/* sq_lock held. Afterwards the caller rings. */
void soft_pending_progress(struct soft_qp *qp)
{
	while (qp->pending_count && soft_load(&qp->state) == IBV_QPS_RTS &&
	       soft_load(&qp->fault) != SOFT_FAULT_STALL && try_head(qp))
		;
}

/* All of them fail, in order, signaled or not. sq_lock held, the QP is in ERROR. */
void soft_pending_flush(struct soft_qp *qp)
{
	while (qp->pending_count) {
		pending_at(qp, 0)->bytes = 0;
		pending_finish(qp, IBV_WC_WR_FLUSH_ERR);
	}
}

/* Called by pollers in inline mode. A QP that is just being posted to gets its turn there. */
void soft_pending_poll(struct soft_qp *qp)
{
	uint32_t wake;

	if (qp->context->thread || !(soft_load(&qp->slow) & SOFT_SLOW_PENDING) ||
	    !soft_trylock(&qp->sq_lock))
		return;
	soft_pending_progress(qp);
	wake = soft_send_ring(qp);
	soft_unlock(&qp->sq_lock);
	if (wake)
		soft_peer_wake(qp, wake);
}

/* They vanish without a completion: the QP is destroyed or reset. sq_lock held. */
void soft_pending_free(struct soft_qp *qp)
{
	while (qp->pending_count)
		pop(qp);
	free(qp->pending);
	qp->pending = NULL;
	qp->pending_head = 0;
}

/* When the first one is to be looked at: 0 where that is not for the model to say. UINT64_MAX: none. */
uint64_t soft_pending_due(struct soft_qp *qp)
{
	struct soft_pending *head = pending_at(qp, 0);

	if (!qp->pending_count)
		return UINT64_MAX;
	return is_due(qp, head) || soft_load(&qp->fault) == SOFT_FAULT_STALL ? 0 : head->due;
}

static bool nothing_pends(struct soft_qp *qp)
{
	return !__atomic_load_n(&qp->pending_count, __ATOMIC_SEQ_CST);
}

/* Asked for first, looked at again after: whoever empties the queue in between sees one of the two. */
int soft_qp_settled(struct ibv_qp *ibqp)
{
	struct soft_qp *qp = container_of(ibqp, struct soft_qp, ibv);

	if (soft_load(&qp->state) != IBV_QPS_RTS)
		return 0;
	if (nothing_pends(qp))
		return 1;
	atomic_store(&qp->settle_asked, 1);
	return nothing_pends(qp);
}

const uint32_t *soft_qp_backlog(struct ibv_qp *ibqp)
{
	return &container_of(ibqp, struct soft_qp, ibv)->pending_count;
}
