/* SPDX-License-Identifier: MIT */
#include "core/device/imm.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/guard.h"
#include "core/device/device.h"
#include "core/device/fault.h"
#include "core/lane/lane.h"

enum {
	BATCH = 16, /* messages that are translated on the stack at a time */
	SLOTS = SHUNT_IMM_SLOTS, /* of a send queue for a message, with its acknowledgment */
	ENTRIES = 3, /* of a CQ for each: a QP that fails flushes all slots of a message */
};

struct note { /* what a SEND carries */
	uint32_t imm; /* as in imm_data */
	uint32_t bytes; /* of the WRITE before it, in network order */
};
_Static_assert(sizeof(struct note) == SHUNT_IMM_NOTE_BYTES, "both ends have to agree");

/* The receives of a lane, in the order in which they are posted and complete. group.lock, or no thread polls the lane yet. */
struct shunt_imm_queue {
	struct note *notes; /* one for each receive, and one for READs */
	size_t bytes;
	struct ibv_mr *mr;
	uint32_t depth;
	uint32_t posted, taken; /* the note of the next receive, of the next completion */
	bool broken; /* a SEND was no note: what comes behind it is out of place */
};

/* qp_context is NULL for queue pairs of other rooms, which receive nothing. */
static struct shunt_device *device_of(const struct ibv_qp *qp)
{
	return qp->send_cq->cq_context;
}

static struct shunt_imm_queue *queue_of(const struct ibv_qp *qp)
{
	const struct shunt_lane *lane = qp->qp_context;

	return lane ? lane->imm : NULL;
}

/* --- sending; lane.lock held --- */

struct batch {
	struct ibv_send_wr wr[SLOTS * BATCH];
	struct ibv_send_wr *from[SLOTS * BATCH]; /* the caller's */
	struct note notes[SLOTS * BATCH];
	struct ibv_sge sges[SLOTS * BATCH];
	uint32_t count;
};

static uint32_t bytes_of(const struct ibv_send_wr *wr)
{
	uint32_t bytes = 0;

	for (int i = 0; i < wr->num_sge; i++)
		bytes += wr->sg_list[i].length;
	return bytes;
}

static struct ibv_send_wr *append(struct batch *batch, struct ibv_send_wr *from)
{
	struct ibv_send_wr *wr = &batch->wr[batch->count];

	if (batch->count)
		wr[-1].next = wr;
	batch->from[batch->count++] = from;
	*wr = *from;
	wr->next = NULL;
	return wr;
}

/*
 * A completion of iWARP says that the bytes have been taken, not that they have arrived. A READ is answered behind
 * all that was sent before it. So a signaled WR has a READ behind it. It reads the first word that the peer lets the
 * lane read, into a note that no receive has.
 */
static void add_acknowledgment(struct batch *batch, const struct shunt_lane *lane,
			       struct ibv_send_wr *from)
{
	const struct shunt_imm_queue *queue = lane->imm;
	uint32_t at = batch->count;
	struct ibv_send_wr *wr = append(batch, from);

	wr[-1].send_flags &= ~IBV_SEND_SIGNALED;
	batch->sges[at] = (struct ibv_sge) { (uintptr_t)&queue->notes[queue->depth],
					     sizeof(struct note), queue->mr->lkey };
	wr->opcode = IBV_WR_RDMA_READ;
	wr->send_flags = IBV_SEND_SIGNALED;
	wr->sg_list = &batch->sges[at];
	wr->num_sge = 1;
	wr->wr.rdma.remote_addr = lane->peer_controls;
	wr->wr.rdma.rkey = lane->rkey;
}

static bool is_acknowledgment(const struct batch *batch, uint32_t at)
{
	return batch->wr[at].opcode == IBV_WR_RDMA_READ &&
	       batch->from[at]->opcode != IBV_WR_RDMA_READ;
}

static void wr_add(struct batch *batch, const struct shunt_lane *lane, struct ibv_send_wr *from)
{
	append(batch, from);
	if (lane && from->send_flags & IBV_SEND_SIGNALED && from->opcode != IBV_WR_RDMA_READ)
		add_acknowledgment(batch, lane, from);
}

static void add_message(struct batch *batch, const struct shunt_lane *lane,
			struct ibv_send_wr *from)
{
	uint32_t bytes = bytes_of(from), at;
	struct ibv_send_wr *wr;

	if (bytes) {
		wr = append(batch, from);
		wr->opcode = IBV_WR_RDMA_WRITE;
		wr->send_flags &= ~(IBV_SEND_SIGNALED | IBV_SEND_SOLICITED);
	}
	at = batch->count;
	wr = append(batch, from);
	batch->notes[at] = (struct note) { from->imm_data, htonl(bytes) };
	batch->sges[at] = (struct ibv_sge) { (uintptr_t)&batch->notes[at], sizeof(struct note), 0 };
	wr->opcode = IBV_WR_SEND;
	wr->send_flags &= IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_FENCE;
	wr->send_flags |= IBV_SEND_INLINE;
	wr->sg_list = &batch->sges[at];
	wr->num_sge = 1;
	if (from->send_flags & IBV_SEND_SIGNALED)
		add_acknowledgment(batch, lane, from);
}

/* The message has gone and its READ has not: nobody would ever hear that it has arrived. */
static void qp_give_up(struct ibv_qp *qp)
{
	struct ibv_qp_attr dead = { .qp_state = IBV_QPS_ERR };

	device_of(qp)->verbs->modify_qp(qp, &dead, IBV_QP_STATE);
}

/*
 * Posts what has been translated. If only a message's WRITE is taken, the message is not: *bad is the caller's WR. The
 * caller repeats it, or writes other bytes that the peer has room for, behind this WRITE. Some devices do not say which
 * WR they refuse (docs/dev/DEVICES.md): then it is the first.
 */
static int flush(struct ibv_qp *qp, struct batch *batch, struct ibv_send_wr **bad)
{
	struct ibv_send_wr *refused = batch->wr;
	int result = device_of(qp)->imm.post_send(qp, batch->wr, &refused);
	uint32_t at = result && refused ? (uint32_t)(refused - batch->wr) : 0;

	batch->count = 0;
	if (result && is_acknowledgment(batch, at)) {
		qp_give_up(qp);
		return 0;
	}
	if (result)
		*bad = batch->from[at];
	return result;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	const struct shunt_lane *lane = qp->qp_context;
	struct batch batch;
	int result = 0;

	for (batch.count = 0; wr && !result; wr = wr->next) {
		if (wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
			add_message(&batch, lane, wr);
		else
			wr_add(&batch, lane, wr);
		if (batch.count > SLOTS * (BATCH - 1) || !wr->next)
			result = flush(qp, &batch, bad);
	}
	return result;
}

/* --- receiving --- */

struct receives {
	struct ibv_recv_wr wr[BATCH];
	struct ibv_recv_wr *from[BATCH];
	struct ibv_sge sges[BATCH];
	uint32_t count;
};

static uint32_t behind(const struct shunt_imm_queue *queue, uint32_t at, uint32_t count)
{
	return at + count < queue->depth ? at + count : at + count - queue->depth;
}

static void add_receive(struct receives *receives, const struct shunt_imm_queue *queue,
			struct ibv_recv_wr *from)
{
	uint32_t i = receives->count++, at = behind(queue, queue->posted, i);

	if (i)
		receives->wr[i - 1].next = &receives->wr[i];
	receives->from[i] = from;
	receives->sges[i] = (struct ibv_sge) { (uintptr_t)&queue->notes[at], sizeof(struct note),
					       queue->mr->lkey };
	receives->wr[i] = (struct ibv_recv_wr) { .wr_id = from->wr_id,
						 .sg_list = &receives->sges[i],
						 .num_sge = 1 };
}

static int flush_receives(struct ibv_qp *qp, struct shunt_imm_queue *queue,
			  struct receives *receives, struct ibv_recv_wr **bad)
{
	struct ibv_recv_wr *refused = receives->wr;
	int result = device_of(qp)->imm.post_recv(qp, receives->wr, &refused);
	uint32_t taken = result ? (uint32_t)(refused ? refused - receives->wr : 0) :
				  receives->count;

	if (result)
		*bad = receives->from[taken];
	queue->posted = behind(queue, queue->posted, taken);
	receives->count = 0;
	return result;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct shunt_imm_queue *queue = queue_of(qp);
	struct receives receives;
	uint32_t most;
	int result = 0;

	if (!queue)
		return device_of(qp)->imm.post_recv(qp, wr, bad);
	most = queue->depth < BATCH ? queue->depth : BATCH;
	for (receives.count = 0; wr && !result; wr = wr->next) {
		add_receive(&receives, queue, wr);
		if (receives.count == most || !wr->next)
			result = flush_receives(qp, queue, &receives, bad);
	}
	return result;
}

/* The peer's 8 bytes. Behind a SEND that is no note nothing counts, as behind any error of a QP. */
static void note_take(struct shunt_imm_queue *queue, struct ibv_wc *wc)
{
	struct note note = queue->notes[queue->taken];

	queue->taken = behind(queue, queue->taken, 1);
	if (queue->broken || wc->byte_len != sizeof(note)) {
		wc->status = queue->broken ? IBV_WC_WR_FLUSH_ERR : IBV_WC_GENERAL_ERR;
		queue->broken = true;
		return;
	}
	wc->opcode = IBV_WC_RECV_RDMA_WITH_IMM;
	wc->wc_flags |= IBV_WC_WITH_IMM;
	wc->imm_data = note.imm;
	wc->byte_len = ntohl(note.bytes);
}

static int poll_cq(struct ibv_cq *cq, int room, struct ibv_wc *wc)
{
	const struct shunt_device *device = cq->cq_context;
	int count = device->imm.poll_cq(cq, room, wc);

	for (int i = 0; i < count; i++) {
		if (wc[i].status != IBV_WC_SUCCESS)
			continue;
		if (wc[i].opcode & IBV_WC_RECV) {
			const struct shunt_lane *lane = (struct shunt_lane *)(uintptr_t)wc[i].wr_id;

			note_take(lane->imm, &wc[i]);
		}
	}
	return count;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	const struct shunt_device *device = cq->cq_context;

	(void)solicited_only;
	return device->imm.req_notify_cq(cq, 0);
}

/* --- making --- */

static void *map(struct ibv_pd *pd, size_t bytes)
{
	(void)pd;
	return shunt_guard_map(bytes, -1);
}

static void free_queue(const struct shunt_device *device, struct shunt_imm_queue *queue)
{
	if (queue->mr)
		device->verbs->deregister_mr(queue->mr);
	if (queue->notes)
		device->imm.unmap(queue->notes, queue->bytes);
	free(queue);
}

/* NULL and errno. */
static struct shunt_imm_queue *make_queue(const struct shunt_device *device, struct ibv_pd *pd,
					  uint32_t depth)
{
	struct shunt_imm_queue *queue = calloc(1, sizeof(*queue));
	int saved;

	if (!queue)
		return NULL;
	queue->depth = depth;
	queue->bytes = (depth + 1) * sizeof(*queue->notes);
	queue->notes = device->imm.map(pd, queue->bytes);
	if (queue->notes && !shunt_fault_denies(SHUNT_DENY_MR))
		queue->mr = device->verbs->register_mr(pd, queue->notes, queue->bytes,
						       IBV_ACCESS_LOCAL_WRITE |
							       IBV_ACCESS_REMOTE_WRITE);
	if (queue->mr)
		return queue;
	saved = errno;
	free_queue(device, queue);
	errno = saved;
	return NULL;
}

static void ask_for_more(struct ibv_qp_cap *cap)
{
	cap->max_send_wr *= SLOTS;
	cap->max_recv_sge = 1;
	if (cap->max_inline_data < sizeof(struct note))
		cap->max_inline_data = sizeof(struct note);
}

static struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	const struct shunt_device *device = attr->send_cq->cq_context;
	struct shunt_lane *lane = attr->qp_context;
	struct shunt_imm_queue *queue;
	struct ibv_qp *qp;
	int saved;

	if (!lane)
		return device->imm.create_qp(pd, attr);
	queue = make_queue(device, pd, attr->cap.max_recv_wr);
	if (!queue)
		return NULL;
	ask_for_more(&attr->cap);
	qp = device->imm.create_qp(pd, attr);
	if (!qp) {
		saved = errno;
		free_queue(device, queue);
		errno = saved;
		return NULL;
	}
	attr->cap.max_send_wr /= SLOTS;
	lane->imm = queue;
	return qp;
}

/* The memory goes when no SEND can land in it any more. */
static int destroy_qp(struct ibv_qp *qp)
{
	const struct shunt_device *device = device_of(qp);
	struct shunt_lane *lane = qp->qp_context;
	int result = device->imm.destroy_qp(qp);

	if (result || !lane)
		return result;
	free_queue(device, lane->imm);
	lane->imm = NULL;
	return 0;
}

static struct ibv_cq *create_cq(struct ibv_context *context, int cqe, void *cq_context,
				struct ibv_comp_channel *channel, int comp_vector)
{
	const struct shunt_device *device = cq_context;

	return device->imm.create_cq(context, ENTRIES * cqe, cq_context, channel, comp_vector);
}

void shunt_imm_limit(const struct shunt_device *device, struct ibv_device_attr *limits)
{
	if (!device->imm.post_send)
		return;
	limits->max_qp_wr /= SLOTS;
	limits->max_cqe /= ENTRIES;
	/* Pages of words need QPs that are connected by hand (page_verbs.c). */
	limits->atomic_cap = IBV_ATOMIC_NONE;
}

int shunt_imm_attach(struct shunt_device *device, struct shunt_verbs *verbs)
{
	struct ibv_context_ops *ops = &device->context->ops;

	if (!ops->post_send || ops->post_send == post_send || verbs->create_qp == create_qp)
		return -EINVAL;
	device->imm = (struct shunt_imm_calls) { .post_send = ops->post_send,
						 .post_recv = ops->post_recv,
						 .poll_cq = ops->poll_cq,
						 .req_notify_cq = ops->req_notify_cq,
						 .create_cq = verbs->create_cq,
						 .create_qp = verbs->create_qp,
						 .destroy_qp = verbs->destroy_qp,
						 .map = map,
						 .unmap = shunt_guard_unmap };
	ops->post_send = post_send;
	ops->post_recv = post_recv;
	ops->poll_cq = poll_cq;
	ops->req_notify_cq = req_notify_cq;
	verbs->create_cq = create_cq;
	verbs->create_qp = create_qp;
	verbs->destroy_qp = destroy_qp;
	return 0;
}
