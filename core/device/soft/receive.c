/* SPDX-License-Identifier: MIT */
/*
 * The receive side of a QP: posting receives, and polling what the peer wrote.
 *
 * The peer writes arrival k into a slot whose former arrival was polled, because `posted` is
 * published only for those. The consumer needs no shared counter: the slot's sequence number
 * says whether the arrival it waits for is there.
 */
#include <errno.h>
#include <string.h>
#include "core/device/soft/device.h"

/* Publishes the buffer for SENDs, unless the slot's last one was the same. */
static void buffer_put(struct soft_qp *qp, uint32_t slot, const struct ibv_recv_wr *wr)
{
	struct soft_rqe buffer = { 0 }, *known = &qp->rq_buffer[slot];
	struct segment_rqe *rqe = &segment_rqes(qp->queue, qp->rq_mask + 1)[slot];
	uint64_t offset = 0;

	if (wr->num_sge)
		buffer = (struct soft_rqe){ wr->sg_list->addr, wr->sg_list->length, wr->sg_list->lkey };
	if (buffer.length)
		offset = soft_receive_find(qp->pd, wr->sg_list);
	if (known->address == buffer.address && known->length == buffer.length &&
	    known->lkey == buffer.lkey && soft_load(&rqe->offset) == offset)
		return;
	*known = buffer;
	soft_store(&rqe->length, buffer.length);
	soft_store(&rqe->offset, offset);
}

static int receive_put(struct soft_qp *qp, const struct ibv_recv_wr *wr, uint64_t posted)
{
	uint32_t slot = (uint32_t)posted & qp->rq_mask;

	if (unlikely(wr->num_sge < 0 || wr->num_sge > 1))
		return EINVAL;
	if (unlikely(posted - soft_load_acquire(&qp->rq_polled) > qp->rq_mask))
		return ENOMEM;
	qp->rq_wr_id[slot] = wr->wr_id;
	if (wr->num_sge)
		qp->rq_buffers = true;
	if (qp->rq_buffers)
		buffer_put(qp, slot, wr);
	return 0;
}

int soft_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct soft_qp *qp = container_of(ibqp, struct soft_qp, ibv);
	uint64_t posted;
	int err = 0;

	soft_lock(&qp->rq_lock);
	posted = soft_load(&qp->rq_posted);
	if (unlikely(soft_load(&qp->state) == IBV_QPS_RESET))
		err = EINVAL;
	while (!err && wr) {
		err = receive_put(qp, wr, posted);
		if (err)
			break;
		posted++;
		wr = wr->next;
	}
	if (err)
		*bad_wr = wr;
	/* Pairs with the pollers' acquires in this file: they read wr_id and buffer behind it. */
	soft_store_release(&qp->rq_posted, posted);
	/* Pairs with arrival_is_free() in execute.c: what we have read of the slot was read before the peer fills it. */
	soft_store_release(&qp->queue->posted, posted);
	soft_unlock(&qp->rq_lock);
	/* Either we see that the QP broke, or soft_qp_break() sees what was posted: both took rq_lock in between. */
	if (unlikely(soft_load(&qp->rq_broken))) {
		soft_fence();	/* `posted` before the look at the arming; pairs with soft_req_notify_cq() */
		soft_cq_notify(qp->recv_cq, true);	/* it is flushed at once */
	}
	return err;
}

/* Is what the peer says of this arrival possible? The rest of it can at worst confuse the peer. */
static bool arrival_is_sane(const struct soft_qp *qp, uint64_t k, uint32_t bytes, uint32_t opcode,
			    uint32_t status)
{
	uint32_t room;

	if (unlikely(k >= soft_load_acquire(&qp->rq_posted)))
		return false;
	if (likely(opcode == (SEGMENT_IMMEDIATE | IBV_WC_RECV_RDMA_WITH_IMM)))
		return bytes <= SOFT_MAX_MESSAGE && status == IBV_WC_SUCCESS;
	if ((opcode & ~SEGMENT_IMMEDIATE) != IBV_WC_RECV)
		return false;
	room = qp->rq_buffers ? qp->rq_buffer[k & qp->rq_mask].length : 0;
	return status == IBV_WC_SUCCESS ? bytes <= room :
	       status == IBV_WC_LOC_LEN_ERR || status == IBV_WC_LOC_PROT_ERR;
}

static void wc_fill(struct ibv_wc *wc, struct soft_qp *qp, uint64_t k, uint64_t what, uint64_t stamp)
{
	bool immediate = stamp & SEGMENT_IMMEDIATE;

	wc->wr_id = qp->rq_wr_id[k & qp->rq_mask];
	wc->status = (uint16_t)(stamp >> 16);
	wc->opcode = stamp & 0xff;
	wc->vendor_err = 0;
	wc->byte_len = (uint32_t)(what >> 32);
	wc->imm_data = immediate ? (uint32_t)what : 0;
	wc->qp_num = qp->ibv.qp_num;
	wc->src_qp = 0;
	wc->wc_flags = immediate ? IBV_WC_WITH_IMM : 0;
	wc->pkey_index = 0;
	wc->slid = 0;
	wc->sl = 0;
	wc->dlid_path_bits = 0;
}

static void peer_lied(struct soft_qp *qp)
{
	qp->rq_closed = true;
	soft_async_push(qp->context, IBV_EVENT_QP_FATAL, &qp->ibv);
	soft_qp_break_unlocked(qp);
}

/* A WR of the peer was refused: the responder fails too (C9-220.1 of the InfiniBand specification). */
static void fault_observe(struct soft_qp *qp, uint32_t fault)
{
	enum ibv_event_type type =
		fault == SEGMENT_FAULT_ACCESS ? IBV_EVENT_QP_ACCESS_ERR : IBV_EVENT_QP_REQ_ERR;

	if (qp->rq_faulted)
		return;
	qp->rq_faulted = true;
	soft_async_push(qp->context, type, &qp->ibv);
	soft_qp_break_unlocked(qp);
}

/* In ERROR, receives that nothing arrived for complete in order. */
static int flush(struct soft_qp *qp, int count, struct ibv_wc *wc)
{
	uint64_t k = soft_load(&qp->rq_polled), posted = soft_load_acquire(&qp->rq_posted);
	int got = 0;

	if (soft_load(&qp->recv_cq->overflow))
		return 0;
	for (; got < count && k < posted; k++)
		wc[got++] = (struct ibv_wc){ .wr_id = qp->rq_wr_id[k & qp->rq_mask],
					     .status = IBV_WC_WR_FLUSH_ERR,
					     .opcode = IBV_WC_RECV,
					     .qp_num = qp->ibv.qp_num };
	soft_store_release(&qp->rq_polled, k);
	return got;
}

/* How many arrivals wait to be polled. Each is looked at once. */
uint64_t soft_receive_count(struct soft_qp *qp)
{
	uint64_t polled = soft_load(&qp->rq_polled), stamp;

	if (qp->rq_seen < polled)
		qp->rq_seen = polled;
	while (qp->rq_seen <= polled + qp->rq_mask &&
	       soft_arrival_is_there(qp, qp->rq_seen, &stamp))
		qp->rq_seen++;
	return qp->rq_seen - polled;
}

static int poll_arrivals(struct soft_qp *qp, int count, struct ibv_wc *wc)
{
	uint64_t k = soft_load(&qp->rq_polled), stamp, what;
	int got = 0;

	while (got < count && soft_arrival_is_there(qp, k, &stamp)) {
		what = soft_load(&qp->queue->arrival[k & qp->rq_mask].what);
		if (unlikely(!arrival_is_sane(qp, k, (uint32_t)(what >> 32), stamp & 0xffff,
					      (uint16_t)(stamp >> 16)))) {
			peer_lied(qp);
			break;
		}
		wc_fill(&wc[got], qp, k++, what, stamp);
		if (unlikely(wc[got++].status != IBV_WC_SUCCESS)) {
			qp->rq_closed = true;
			soft_store_release(&qp->rq_polled, k);
			soft_qp_break_unlocked(qp);
			break;
		}
	}
	if (got) {
		/* Pairs with receive_put(): what we have read of the slot was read before a receive takes it again. */
		soft_store_release(&qp->rq_polled, k);
		soft_qp_count(&qp->counters.arrivals, (uint64_t)got);
	}
	return got;
}

/* recv_cq->lock held. */
int soft_receive_poll(struct soft_qp *qp, int count, struct ibv_wc *wc)
{
	/*
	 * Both are loaded before the arrivals: what had arrived by then is still delivered. `fault` pairs with wr_refuse() in
	 * execute.c, rq_broken with soft_qp_break(). Without the acquires an arrival of before could be left behind.
	 */
	uint32_t fault = soft_load_acquire(&qp->queue->fault);
	uint32_t broken = soft_load_acquire(&qp->rq_broken);
	int got = 0;

	if (likely(!qp->rq_closed))
		got = poll_arrivals(qp, count, wc);
	if (likely(!(fault | broken)) || got == count)
		return got;
	if (fault && !broken)
		fault_observe(qp, fault);
	if (soft_load(&qp->rq_broken)) {
		qp->rq_closed = true;
		got += flush(qp, count - got, wc + got);
	}
	return got;
}

/* Back to an empty queue of a new generation; everything locked. */
void soft_receive_reset(struct soft_qp *qp)
{
	struct segment_queue *queue = qp->queue;

	soft_store(&queue->live, 0);
	soft_store(&queue->armed, SEGMENT_DISARMED);
	soft_store(&queue->fault, SEGMENT_FAULT_NONE);
	soft_store(&queue->posted, 0);
	soft_lock(&qp->pd->lock);
	qp->generation = ++qp->pd->generation[qp->queue_index];
	soft_unlock(&qp->pd->lock);
	soft_store(&queue->generation, qp->generation);
	qp->base = segment_base(qp->generation);
	memset(queue->arrival, 0, (qp->rq_mask + 1ull) * sizeof(*queue->arrival));
	soft_store(&qp->rq_posted, 0);
	soft_store(&qp->rq_polled, 0);
	soft_store(&qp->rq_broken, 0);
	qp->rq_seen = 0;
	qp->rq_closed = false;
	qp->rq_faulted = false;
	qp->armed = SEGMENT_DISARMED;
}
