/* SPDX-License-Identifier: MIT */
/* Completion queues: making them, the QPs attached to them, arming them. */
#include <errno.h>
#include <stdlib.h>
#include "core/device/soft/device.h"

static void channel_link(struct soft_cq *cq)
{
	struct soft_channel *channel;

	if (!cq->ibv.channel)
		return;
	channel = container_of(cq->ibv.channel, struct soft_channel, ibv);
	soft_lock(&channel->lock);
	cq->next = channel->cqs;
	channel->cqs = cq;
	channel->ibv.refcnt++;
	soft_unlock(&channel->lock);
}

static void channel_unlink(struct soft_cq *cq)
{
	struct soft_channel *channel;
	struct soft_cq **at;

	if (!cq->ibv.channel)
		return;
	channel = container_of(cq->ibv.channel, struct soft_channel, ibv);
	soft_lock(&channel->lock);
	for (at = &channel->cqs; *at != cq; at = &(*at)->next)
		;
	*at = cq->next;
	channel->ibv.refcnt--;
	soft_unlock(&channel->lock);
}

struct ibv_cq *soft_create_cq(struct ibv_context *ibcontext, int cqe, void *cq_context,
			      struct ibv_comp_channel *channel, int comp_vector)
{
	struct soft_context *context = container_of(ibcontext, struct soft_context, ibv);
	struct soft_cq *cq;

	if (cqe <= 0 || (uint32_t)cqe > context->attr.max_cqe || comp_vector) {
		errno = EINVAL;
		return NULL;
	}
	cq = aligned_alloc(_Alignof(struct soft_cq), sizeof(*cq));
	if (!cq)
		return NULL;
	*cq = (struct soft_cq){ .ibv = { .context = ibcontext, .channel = channel,
					 .cq_context = cq_context, .cqe = cqe } };
	pthread_mutex_init(&cq->ibv.mutex, NULL);
	pthread_cond_init(&cq->ibv.cond, NULL);
	channel_link(cq);
	return &cq->ibv;
}

int soft_destroy_cq(struct ibv_cq *ibcq)
{
	struct soft_cq *cq = container_of(ibcq, struct soft_cq, ibv);

	if (cq->receivers.count || cq->senders.count)
		return EBUSY;
	channel_unlink(cq);
	soft_async_forget(container_of(ibcq->context, struct soft_context, ibv), ibcq);
	pthread_mutex_destroy(&ibcq->mutex);
	pthread_cond_destroy(&ibcq->cond);
	free(cq->receivers.at);
	free(cq->senders.at);
	free(cq->ring);
	free(cq);
	return 0;
}

static int list_add(struct soft_qps *list, struct soft_qp *qp)
{
	if (list->count == list->room) {
		uint32_t room = list->room ? 2 * list->room : 4;
		struct soft_qp **at = realloc(list->at, room * sizeof(*at));

		if (!at)
			return ENOMEM;
		list->at = at;
		list->room = room;
	}
	list->at[list->count++] = qp;
	return 0;
}

/* The last takes the place that is free: no list is walked, for a peer may end a thousand QPs at once. */
static void receivers_remove(struct soft_cq *cq, const struct soft_qp *qp)
{
	struct soft_qp *last = cq->receivers.at[--cq->receivers.count];

	cq->receivers.at[qp->place] = last;
	last->place = qp->place;
}

static void senders_remove(struct soft_cq *cq, const struct soft_qp *qp)
{
	struct soft_qp *last = cq->senders.at[--cq->senders.count];

	cq->senders.at[qp->send_place] = last;
	last->send_place = qp->send_place;
}

/* Could everything attached complete at once, with nobody polling, and not fit? */
static void cq_judge(struct soft_cq *cq, int64_t sends, int64_t receives)
{
	cq->sends += (uint64_t)sends;
	cq->receives += (uint64_t)receives;
	cq->may_overflow = cq->sends + cq->receives > (uint64_t)cq->ibv.cqe;
}

/*
 * A peer that took the arming meanwhile (soft_send_ring) has fired: that event must not be lost by arming again.
 * The caller sees to the fence between arming and the next poll.
 */
static void receiver_arm(struct soft_cq *cq, struct soft_qp *qp, uint32_t level)
{
	uint32_t before;

	if (level < qp->armed)
		level = qp->armed;
	before = atomic_exchange(&qp->queue->armed, level);
	if (qp->armed && before == SEGMENT_DISARMED) {
		soft_store(&cq->fired, 1);
		soft_bell_rang(qp->pd);
	}
	qp->armed = level;
}

void soft_cq_cover(struct soft_qp *qp)
{
	uint32_t level = soft_load(&qp->recv_cq->armed);

	if (level != SEGMENT_DISARMED)
		receiver_arm(qp->recv_cq, qp, level);
}

/* A ring that can hold what the QP and those already there may have waiting. */
static int reserve(struct soft_cq *cq, const struct soft_qp *qp)
{
	int err;

	soft_lock(&cq->lock);
	err = soft_cq_reserve(cq, cq->sends + qp->sq_depth);
	soft_unlock(&cq->lock);
	return err;
}

static int attach_receiver(struct soft_qp *qp)
{
	struct soft_cq *cq = qp->recv_cq;
	int err;

	soft_lock(&cq->lock);
	err = list_add(&cq->receivers, qp);
	if (!err) {
		qp->place = cq->receivers.count - 1;
		cq_judge(cq, qp->send_cq == cq ? qp->sq_depth : 0, qp->rq_mask + 1ll);
		soft_cq_cover(qp);
	}
	soft_unlock(&cq->lock);
	return err;
}

static int attach_sender(struct soft_qp *qp)
{
	struct soft_cq *cq = qp->send_cq;
	int err;

	soft_lock(&cq->lock);
	err = list_add(&cq->senders, qp);
	if (!err) {
		qp->send_place = cq->senders.count - 1;
		cq_judge(cq, qp->sq_depth, 0);
	}
	soft_unlock(&cq->lock);
	return err;
}

static void detach_receiver(struct soft_qp *qp)
{
	struct soft_cq *cq = qp->recv_cq;

	soft_lock(&cq->lock);
	receivers_remove(cq, qp);
	soft_cq_clean(cq, qp);
	cq_judge(cq, qp->send_cq == cq ? -(int64_t)qp->sq_depth : 0, -(qp->rq_mask + 1ll));
	soft_unlock(&cq->lock);
}

static void detach_sender(struct soft_qp *qp)
{
	struct soft_cq *cq = qp->send_cq;

	soft_lock(&cq->lock);
	senders_remove(cq, qp);
	soft_cq_clean(cq, qp);
	cq_judge(cq, -(int64_t)qp->sq_depth, 0);
	soft_unlock(&cq->lock);
}

int soft_cq_attach(struct soft_qp *qp)
{
	int err = reserve(qp->send_cq, qp);

	if (!err)
		err = attach_receiver(qp);
	if (err || qp->send_cq == qp->recv_cq)
		return err;
	err = attach_sender(qp);
	if (err)
		detach_receiver(qp);
	return err;
}

void soft_cq_detach(struct soft_qp *qp)
{
	detach_receiver(qp);
	if (qp->send_cq != qp->recv_cq)
		detach_sender(qp);
}

void soft_cq_lock_both(struct soft_qp *qp)
{
	struct soft_cq *first = qp->recv_cq, *second = qp->send_cq;

	if ((uintptr_t)first > (uintptr_t)second) {
		first = qp->send_cq;
		second = qp->recv_cq;
	}
	soft_lock(&first->lock);
	if (first != second)
		soft_lock(&second->lock);
}

void soft_cq_unlock_both(struct soft_qp *qp)
{
	soft_unlock(&qp->recv_cq->lock);
	if (qp->send_cq != qp->recv_cq)
		soft_unlock(&qp->send_cq->lock);
}

/* Polling either CQ of a QP whose WRs wait gives them another try. */
void soft_cq_busy(struct soft_qp *qp, int change)
{
	atomic_fetch_add(&qp->send_cq->busy, (uint32_t)change);
	if (qp->recv_cq != qp->send_cq)
		atomic_fetch_add(&qp->recv_cq->busy, (uint32_t)change);
}

/*
 * A completion of our own was added. An error counts as solicited (ibv_req_notify_cq(3)). The caller has stored it with
 * sequential consistency, or has fenced: this load comes after that (soft_req_notify_cq).
 */
void soft_cq_notify(struct soft_cq *cq, bool solicited)
{
	uint32_t armed = atomic_load(&cq->armed);

	if (likely(armed == SEGMENT_DISARMED) || (armed == SEGMENT_ARMED_SOLICITED && !solicited))
		return;
	if (atomic_exchange(&cq->armed, SEGMENT_DISARMED) == SEGMENT_DISARMED)
		return;
	atomic_store(&cq->fired, 1);
	soft_channel_kick(cq->ibv.channel);
}

int soft_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct soft_cq *cq = container_of(ibcq, struct soft_cq, ibv);
	uint32_t level = solicited_only ? SEGMENT_ARMED_SOLICITED : SEGMENT_ARMED_ANY;

	soft_lock(&cq->lock);
	if (level < soft_load(&cq->armed))
		level = SEGMENT_ARMED_ANY;
	atomic_exchange(&cq->armed, level);
	for (uint32_t i = 0; i < cq->receivers.count; i++)
		receiver_arm(cq, cq->receivers.at[i], level);
	/*
	 * Arming comes before the poll that the caller does next. Pairs with the fence of soft_send_ring() and with the
	 * store of ring_put(). Without it both sides may read the old: the poll no arrival, the poster no arming. The
	 * caller then sleeps beside a completion.
	 */
	soft_fence_after_exchange();
	soft_unlock(&cq->lock);
	return 0;
}
