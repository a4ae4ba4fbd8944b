/* SPDX-License-Identifier: MIT */
/* Queue pairs: making and unmaking them, and what tests and statistics ask of them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/device/soft/device.h"

static uint32_t power_of_two(uint32_t n)
{
	return n <= 1 ? 1 : 1u << (32 - __builtin_clz(n - 1));
}

static bool init_is_possible(const struct soft_context *context, const struct ibv_qp_init_attr *init)
{
	const struct ibv_qp_cap *cap = &init->cap;

	return init->qp_type == IBV_QPT_RC && !init->srq && init->send_cq && init->recv_cq &&
	       cap->max_send_wr <= context->attr.max_qp_wr &&
	       cap->max_recv_wr <= context->attr.max_qp_wr && cap->max_send_sge <= SOFT_MAX_SGE &&
	       cap->max_recv_sge <= 1 && cap->max_inline_data <= context->attr.max_inline;
}

/* Tells the caller what it really gets, as ibv_create_qp(3) does. */
static void cap_settle(const struct soft_context *context, struct ibv_qp_cap *cap)
{
	cap->max_send_wr = power_of_two(cap->max_send_wr);
	cap->max_recv_wr = power_of_two(cap->max_recv_wr);
	cap->max_send_sge = SOFT_MAX_SGE;
	cap->max_recv_sge = 1;
	cap->max_inline_data = context->attr.max_inline;
}

static void ibv_init(struct soft_qp *qp, struct ibv_pd *pd)
{
	qp->ibv.context = pd->context;
	qp->ibv.qp_context = qp->init.qp_context;
	qp->ibv.pd = pd;
	qp->ibv.send_cq = qp->init.send_cq;
	qp->ibv.recv_cq = qp->init.recv_cq;
	qp->ibv.qp_num = atomic_fetch_add(&qp->context->next_qp_num, 1);
	qp->ibv.state = IBV_QPS_RESET;
	qp->ibv.qp_type = IBV_QPT_RC;
	pthread_mutex_init(&qp->ibv.mutex, NULL);
	pthread_cond_init(&qp->ibv.cond, NULL);
}

static void qp_init(struct soft_qp *qp, struct ibv_pd *pd, const struct ibv_qp_init_attr *init)
{
	qp->context = container_of(pd->context, struct soft_context, ibv);
	qp->pd = container_of(pd, struct soft_pd, ibv);
	qp->init = *init;
	qp->send_cq = container_of(init->send_cq, struct soft_cq, ibv);
	qp->recv_cq = container_of(init->recv_cq, struct soft_cq, ibv);
	qp->attr = (struct ibv_qp_attr){ .timeout = 14, .retry_cnt = 7, .rnr_retry = 7 };
	qp->slow = SOFT_SLOW_STATE | (qp->context->thread ? SOFT_SLOW_THREAD : 0) |
		   (qp->context->attr.model.on ? SOFT_SLOW_MODEL : 0);
	qp->state = IBV_QPS_RESET;
	qp->sq_depth = init->cap.max_send_wr;
	qp->rq_mask = init->cap.max_recv_wr - 1;
	qp->max_inline = init->cap.max_inline_data;
	qp->sq_sig_all = init->sq_sig_all;
	qp->wake_fd = -1;
	ibv_init(qp, pd);
}

static int qp_make_queues(struct soft_qp *qp)
{
	uint32_t depth = qp->rq_mask + 1;
	int err;

	qp->rq_wr_id = calloc(depth, sizeof(*qp->rq_wr_id));
	qp->rq_buffer = calloc(depth, sizeof(*qp->rq_buffer));
	if (!qp->rq_wr_id || !qp->rq_buffer)
		return ENOMEM;
	err = soft_queue_take(qp->pd, &qp->queue_index);
	if (err)
		return err;
	qp->queue = soft_queue_at(qp->pd, qp->queue_index);
	memset(qp->queue, 0, segment_queue_bytes(depth));
	soft_receive_reset(qp);
	return 0;
}

static void qp_free(struct soft_qp *qp)
{
	pthread_mutex_destroy(&qp->ibv.mutex);
	pthread_cond_destroy(&qp->ibv.cond);
	free(qp->rq_wr_id);
	free(qp->rq_buffer);
	free(qp);
}

static void context_link(struct soft_qp *qp)
{
	soft_lock(&qp->context->list_lock);
	qp->next = qp->context->qps;
	qp->at = &qp->context->qps;
	if (qp->next)
		qp->next->at = &qp->next;
	qp->context->qps = qp;
	soft_unlock(&qp->context->list_lock);
}

static void context_unlink(struct soft_qp *qp)
{
	soft_lock(&qp->context->list_lock);
	*qp->at = qp->next;
	if (qp->next)
		qp->next->at = qp->at;
	soft_unlock(&qp->context->list_lock);
}

struct ibv_qp *soft_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct soft_context *context = container_of(pd->context, struct soft_context, ibv);
	struct soft_qp *qp;

	if (!init_is_possible(context, init)) {
		errno = EINVAL;
		return NULL;
	}
	qp = aligned_alloc(_Alignof(struct soft_qp), sizeof(*qp));
	if (!qp)
		return NULL;
	memset(qp, 0, sizeof(*qp));
	cap_settle(context, &init->cap);
	qp_init(qp, pd, init);
	errno = qp_make_queues(qp);
	if (errno)
		goto free_qp;
	errno = soft_cq_attach(qp);
	if (errno)
		goto give_queue;
	context_link(qp);
	return &qp->ibv;

give_queue:
	soft_queue_give(qp->pd, qp->queue_index);
free_qp:
	qp_free(qp);
	return NULL;
}

int soft_destroy_qp(struct ibv_qp *ibqp)
{
	struct soft_qp *qp = container_of(ibqp, struct soft_qp, ibv);

	soft_store(&qp->queue->live, 0);
	context_unlink(qp);
	soft_lock(&qp->sq_lock);
	soft_pending_free(qp);
	soft_unlock(&qp->sq_lock);
	soft_cq_detach(qp);
	soft_async_forget(qp->context, ibqp);
	soft_peer_drop(qp);
	soft_queue_give(qp->pd, qp->queue_index);
	qp_free(qp);
	return 0;
}

const struct soft_counters *soft_qp_counters(struct ibv_qp *ibqp)
{
	return &container_of(ibqp, struct soft_qp, ibv)->counters;
}

void soft_qp_fault(struct ibv_qp *ibqp, enum soft_fault fault)
{
	struct soft_qp *qp = container_of(ibqp, struct soft_qp, ibv);

	if (fault == SOFT_FAULT_KILL) {
		soft_qp_break_unlocked(qp);
		return;
	}
	soft_store(&qp->fault, fault);
	if (fault != SOFT_FAULT_NONE) {
		atomic_fetch_or(&qp->slow, SOFT_SLOW_FAULT);
		return;
	}
	atomic_fetch_and(&qp->slow, ~(uint32_t)SOFT_SLOW_FAULT);
	if (qp->context->thread)
		soft_thread_kick(qp->context);
	else
		soft_pending_poll(qp);
}

void soft_qp_trace(struct ibv_qp *ibqp, struct soft_trace *ring, uint32_t entries)
{
	struct soft_qp *qp = container_of(ibqp, struct soft_qp, ibv);

	soft_lock(&qp->sq_lock);
	qp->trace = entries ? ring : NULL;
	qp->trace_entries = entries;
	qp->traced = 0;
	soft_unlock(&qp->sq_lock);
}

void soft_qp_fail_post(struct ibv_qp *ibqp, unsigned int nth)
{
	struct soft_qp *qp = container_of(ibqp, struct soft_qp, ibv);

	soft_store(&qp->fail_post, nth);
	if (nth)
		atomic_fetch_or(&qp->slow, SOFT_SLOW_FAIL_POST);
	else
		atomic_fetch_and(&qp->slow, ~(uint32_t)SOFT_SLOW_FAIL_POST);
}
