/* SPDX-License-Identifier: MIT */
/* Completions: the ring of completed sends, and polling it together with what has arrived. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/device/soft/device.h"

enum { RING_ROOM_MIN = 64 };

/*
 * There is memory for all that can wait, so nothing is lost for the lack of it later. But the part in use starts
 * small: a ring that is as large would walk through the whole cache.
 */
int soft_cq_reserve(struct soft_cq *cq, uint64_t sends)
{
	struct soft_wc *ring;
	uint32_t reserved = cq->reserved ? cq->reserved : RING_ROOM_MIN;

	if (sends > (uint64_t)cq->ibv.cqe)
		sends = (uint64_t)cq->ibv.cqe;
	while (reserved < sends)
		reserved *= 2;
	if (reserved == cq->reserved)
		return 0;
	soft_lock(&cq->ring_lock);
	ring = realloc(cq->ring, reserved * sizeof(*ring));
	if (ring) {
		cq->ring = ring;
		cq->reserved = reserved;
		cq->room = cq->room ? cq->room : RING_ROOM_MIN;
	}
	soft_unlock(&cq->ring_lock);
	return ring ? 0 : ENOMEM;
}

/* It is full: what has wrapped goes behind the rest. */
static bool ring_grow(struct soft_cq *cq)
{
	if (cq->room == cq->reserved)
		return false;
	memcpy(cq->ring + cq->room, cq->ring, cq->head * sizeof(*cq->ring));
	cq->room *= 2;
	return true;
}

static bool ring_put(struct soft_cq *cq, const struct soft_wc *wc)
{
	uint32_t waiting = soft_load(&cq->waiting);

	if (unlikely(waiting + soft_load(&cq->waiting_receives) >= (uint32_t)cq->ibv.cqe))
		return false;
	if (unlikely(waiting == cq->room) && !ring_grow(cq))
		return false;
	cq->ring[(cq->head + waiting) & (cq->room - 1)] = *wc;
	/*
	 * Sequentially consistent, so before the load of `armed` in soft_cq_notify(). Pairs with the fence of
	 * soft_req_notify_cq(). Without it, a thread that arms could miss both the completion and its event.
	 */
	atomic_store(&cq->waiting, waiting + 1);
	return true;
}

static void cq_overflow(struct soft_cq *cq)
{
	if (atomic_exchange(&cq->overflow, SOFT_OVERFLOWED) == SOFT_FITS)
		soft_async_push(container_of(cq->ibv.context, struct soft_context, ibv),
				IBV_EVENT_CQ_ERR, &cq->ibv);
}

/* False: lost, because the CQ overflowed. sq_lock of wc->qp held. */
bool soft_cq_push(struct soft_cq *cq, const struct soft_wc *wc)
{
	bool fits;

	if (unlikely(soft_load(&cq->overflow)))
		return false;
	soft_lock(&cq->ring_lock);
	fits = ring_put(cq, wc);
	soft_unlock(&cq->ring_lock);
	if (unlikely(!fits)) {
		cq_overflow(cq);
		return false;
	}
	soft_cq_notify(cq, wc->status != IBV_WC_SUCCESS);
	return true;
}

static void wc_fill(struct ibv_wc *to, const struct soft_wc *from)
{
	*to = (struct ibv_wc){
		.wr_id = from->wr_id,
		.status = from->status,
		.opcode = from->opcode,
		.byte_len = from->byte_len,
		.qp_num = from->qp->ibv.qp_num,
	};
}

/* Only polling frees slots of the SQ, as on an RNIC (SD-05). */
int soft_cq_pop(struct soft_cq *cq, int count, struct ibv_wc *wc)
{
	uint32_t waiting;
	int got = 0;

	soft_lock(&cq->ring_lock);
	waiting = soft_load(&cq->waiting);
	while (got < count && waiting) {
		const struct soft_wc *from = &cq->ring[cq->head];

		wc_fill(&wc[got++], from);
		/* Pairs with wr_check(): the slot is read before post_send fills it again. */
		soft_store_release(&from->qp->sq_freed, from->sq_end);
		cq->head = (cq->head + 1) & (cq->room - 1);
		waiting--;
	}
	soft_store(&cq->waiting, waiting);
	soft_unlock(&cq->ring_lock);
	return got;
}

/* Forgets the completions of a QP that is destroyed or reset. */
void soft_cq_clean(struct soft_cq *cq, const struct soft_qp *qp)
{
	uint32_t waiting, kept = 0;

	soft_lock(&cq->ring_lock);
	waiting = soft_load(&cq->waiting);
	for (uint32_t i = 0; i < waiting; i++) {
		struct soft_wc *from = &cq->ring[(cq->head + i) & (cq->room - 1)];

		if (from->qp != qp)
			cq->ring[(cq->head + kept++) & (cq->room - 1)] = *from;
	}
	soft_store(&cq->waiting, kept);
	soft_unlock(&cq->ring_lock);
}

static void break_all(struct soft_qps *list)
{
	for (uint32_t i = 0; i < list->count; i++) {
		list->at[i]->rq_closed = true;
		soft_qp_break_unlocked(list->at[i]);
	}
}

/* Nobody counts completions of receives when they are written, so they are counted here. */
static void overflow_check(struct soft_cq *cq)
{
	uint64_t waiting = 0;

	for (uint32_t i = 0; i < cq->receivers.count; i++)
		waiting += soft_receive_count(cq->receivers.at[i]);
	soft_store(&cq->waiting_receives, (uint32_t)waiting);
	if (waiting + soft_load(&cq->waiting) > (uint64_t)cq->ibv.cqe)
		cq_overflow(cq);
}

/* The rare steps of a poll. */
static void poll_slow(struct soft_cq *cq)
{
	if (soft_load(&cq->busy)) {
		for (uint32_t i = 0; i < cq->receivers.count; i++)
			soft_pending_poll(cq->receivers.at[i]);
		for (uint32_t i = 0; i < cq->senders.count; i++)
			soft_pending_poll(cq->senders.at[i]);
	}
	if (cq->may_overflow)
		overflow_check(cq);
	if (soft_load(&cq->overflow) == SOFT_OVERFLOWED) {
		atomic_store(&cq->overflow, SOFT_OVERFLOW_DONE);
		break_all(&cq->receivers);
		break_all(&cq->senders);
	}
}

static int poll_receivers(struct soft_cq *cq, int count, struct ibv_wc *wc)
{
	uint32_t receivers = cq->receivers.count, turn = cq->turn;
	int got = 0;

	for (uint32_t i = 0; i < receivers && got < count; i++) {
		struct soft_qp *qp;

		if (turn >= receivers)
			turn = 0;
		qp = cq->receivers.at[turn++];
		if (!soft_receive_is_quiet(qp))
			got += soft_receive_poll(qp, count - got, wc + got);
	}
	if (got)
		cq->turn = turn;
	return got;
}

int soft_poll_cq(struct ibv_cq *ibcq, int count, struct ibv_wc *wc)
{
	struct soft_cq *cq = container_of(ibcq, struct soft_cq, ibv);
	int got = 0;

	soft_lock(&cq->lock);
	if (unlikely(cq->may_overflow | soft_load(&cq->busy) | soft_load(&cq->overflow)))
		poll_slow(cq);
	if (soft_load(&cq->waiting))	/* a hint; ring_lock has the entries */
		got = soft_cq_pop(cq, count, wc);
	if (got < count)
		got += poll_receivers(cq, count - got, wc + got);
	soft_unlock(&cq->lock);
	return got;
}
