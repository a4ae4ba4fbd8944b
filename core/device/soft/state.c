/* SPDX-License-Identifier: MIT */
/* The state machine of a QP (InfiniBand specification 10.3.1; ibv_modify_qp(3)). */
#include <errno.h>
#include "core/device/soft/device.h"

static void state_set(struct soft_qp *qp, enum ibv_qp_state state)
{
	soft_store(&qp->state, state);
	__atomic_store_n(&qp->ibv.state, state, __ATOMIC_RELAXED);
	if (state == IBV_QPS_RTS)
		atomic_fetch_and(&qp->slow, ~(uint32_t)SOFT_SLOW_STATE);
	else
		atomic_fetch_or(&qp->slow, SOFT_SLOW_STATE);
}

/*
 * To ERROR: nothing is executed any more, WRs that wait are flushed, and the pollers flush the
 * receives. The peer finds `live` gone and counts it as silence. sq_lock held.
 */
void soft_qp_break(struct soft_qp *qp)
{
	uint64_t posted;

	if (soft_load(&qp->state) == IBV_QPS_ERR)
		return;
	state_set(qp, IBV_QPS_ERR);
	soft_store_release(&qp->queue->live, 0);
	/*
	 * Pairs with the fence of is_certain() in send.c: a poster that still saw us alive has its arrival visible to each
	 * poll that sees rq_broken. Without it such an arrival could be lost, and the peer was told of success.
	 */
	soft_fence();
	soft_pending_flush(qp);
	/* Sequentially consistent, so before the load of `armed` in soft_cq_notify(); pairs with soft_req_notify_cq(). */
	atomic_store(&qp->rq_broken, 1);
	/*
	 * A receive is in what we read here, or soft_post_recv() takes the lock after us and sees rq_broken. Without the
	 * lock both may read the old, and nobody tells a sleeper of the flush.
	 */
	soft_lock(&qp->rq_lock);
	posted = soft_load(&qp->rq_posted);
	soft_unlock(&qp->rq_lock);
	if (posted != soft_load(&qp->rq_polled))
		soft_cq_notify(qp->recv_cq, true);
}

void soft_qp_break_unlocked(struct soft_qp *qp)
{
	soft_lock(&qp->sq_lock);
	soft_qp_break(qp);
	soft_unlock(&qp->sq_lock);
}

/* Drops everything that was posted, completed or agreed; the peer has to import us anew. */
static void qp_reset(struct soft_qp *qp)
{
	soft_cq_lock_both(qp);
	soft_lock(&qp->sq_lock);
	soft_lock(&qp->rq_lock);
	state_set(qp, IBV_QPS_RESET);
	soft_pending_free(qp);
	soft_receive_reset(qp);
	soft_cq_cover(qp);
	soft_cq_clean(qp->send_cq, qp);
	if (qp->recv_cq != qp->send_cq)
		soft_cq_clean(qp->recv_cq, qp);
	qp->sq_posted = 0;
	soft_store(&qp->sq_freed, 0);
	qp->rang = false;
	qp->rang_solicited = false;
	qp->rang_count = 0;
	atomic_store(&qp->rings, 0);
	soft_peer_drop(qp);
	soft_unlock(&qp->rq_lock);
	soft_unlock(&qp->sq_lock);
	soft_cq_unlock_both(qp);
}

/* Which ones there are but to RESET and ERROR, and with which attributes (ibv_modify_qp(3)). */
static const struct transition {
	enum ibv_qp_state from, to;
	int required, optional;
} transitions[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, SHUNT_TO_INIT, 0 },
	{ IBV_QPS_INIT, IBV_QPS_INIT, 0, SHUNT_TO_INIT },
	{ IBV_QPS_INIT, IBV_QPS_RTR, SHUNT_TO_RTR, IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX },
	{ IBV_QPS_RTR, IBV_QPS_RTS, SHUNT_TO_RTS, IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS |
						  IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS |
				       IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE },
};

static bool transition_is_legal(enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
	if (to == IBV_QPS_ERR)
		return from != IBV_QPS_RESET;
	for (size_t i = 0; i < sizeof(transitions) / sizeof(transitions[0]); i++) {
		const struct transition *t = &transitions[i];

		if (t->from == from && t->to == to)
			return (mask & t->required) == t->required && !(mask & ~(t->required | t->optional));
	}
	return false;
}

static bool attr_is_possible(const struct ibv_qp_attr *attr, int mask)
{
	return !(mask & IBV_QP_TIMEOUT && attr->timeout > 31) &&
	       !(mask & IBV_QP_RETRY_CNT && attr->retry_cnt > 7) &&
	       !(mask & IBV_QP_RNR_RETRY && attr->rnr_retry > 7) &&
	       !(mask & IBV_QP_MIN_RNR_TIMER && attr->min_rnr_timer > 31);
}

/* sq_lock held. */
static void attr_adopt(struct soft_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	if (mask & IBV_QP_ACCESS_FLAGS) {
		qp->attr.qp_access_flags = attr->qp_access_flags;
		soft_store(&qp->queue->access, attr->qp_access_flags);
	}
	if (mask & IBV_QP_MIN_RNR_TIMER) {
		qp->attr.min_rnr_timer = attr->min_rnr_timer;
		soft_store(&qp->queue->rnr_timer, attr->min_rnr_timer);
	}
	if (mask & IBV_QP_TIMEOUT)
		qp->attr.timeout = attr->timeout;
	if (mask & IBV_QP_RETRY_CNT)
		qp->attr.retry_cnt = attr->retry_cnt;
	if (mask & IBV_QP_RNR_RETRY)
		qp->attr.rnr_retry = attr->rnr_retry;
	if (mask & IBV_QP_PORT)
		qp->attr.port_num = attr->port_num;
	if (mask & IBV_QP_PATH_MTU)
		qp->attr.path_mtu = attr->path_mtu;
	if (mask & IBV_QP_RQ_PSN)
		qp->attr.rq_psn = attr->rq_psn;
	if (mask & IBV_QP_SQ_PSN)
		qp->attr.sq_psn = attr->sq_psn;
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		qp->attr.max_rd_atomic = attr->max_rd_atomic;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		qp->attr.max_dest_rd_atomic = attr->max_dest_rd_atomic;
}

static int qp_advance(struct soft_qp *qp, enum ibv_qp_state to, const struct ibv_qp_attr *attr, int mask)
{
	if (to == IBV_QPS_RTR && (!qp->peer || attr->dest_qp_num != qp->attr.dest_qp_num))
		return EINVAL;
	attr_adopt(qp, attr, mask);
	/*
	 * From INIT on, not only from RTR. A requester that is ahead of us would be told to try
	 * again, but nobody wakes it to do so. Its arrivals are polled a little early instead.
	 */
	if (to == IBV_QPS_INIT)	/* releases the empty queue of this generation; pairs with peer_is_live() in send.c */
		soft_store_release(&qp->queue->live, qp->generation);
	if (to == IBV_QPS_ERR)
		soft_qp_break(qp);
	else
		state_set(qp, to);
	return 0;
}

int soft_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask)
{
	struct soft_qp *qp = container_of(ibqp, struct soft_qp, ibv);
	enum ibv_qp_state from = soft_load(&qp->state), to;
	int err = EINVAL;

	if (mask & IBV_QP_CUR_STATE && attr->cur_qp_state != from)
		return EINVAL;
	if (!attr_is_possible(attr, mask))
		return EINVAL;
	if (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET) {
		qp_reset(qp);
		return 0;
	}
	soft_lock(&qp->sq_lock);
	from = soft_load(&qp->state);
	to = mask & IBV_QP_STATE ? attr->qp_state : from;
	if (transition_is_legal(from, to, mask))
		err = qp_advance(qp, to, attr, mask);
	soft_unlock(&qp->sq_lock);
	return err;
}

int soft_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask,
		  struct ibv_qp_init_attr *init)
{
	struct soft_qp *qp = container_of(ibqp, struct soft_qp, ibv);

	(void)mask;
	soft_lock(&qp->sq_lock);
	*attr = qp->attr;
	attr->qp_state = soft_load(&qp->state);
	soft_unlock(&qp->sq_lock);
	attr->cur_qp_state = attr->qp_state;
	attr->cap = qp->init.cap;
	*init = qp->init;
	return 0;
}
