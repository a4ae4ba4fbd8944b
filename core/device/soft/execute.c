/* SPDX-License-Identifier: MIT */
/*
 * Executes one work request: checks, then a copy between our memory and the peer's. Where the
 * opcode consumes a receive, the arrival that announces it comes last. Nothing is touched before it
 * is certain that the WR can be carried out whole, but for bytes of which the peer is not told (SOFT_FAULTED). sq_lock
 * held.
 */
#include <string.h>
#include "core/base/copy.h"
#include "core/device/soft/device.h"

static inline bool locals_hold(struct soft_qp *qp, const struct ibv_send_wr *wr, uint32_t access)
{
	for (int i = 0; i < wr->num_sge; i++)
		if (unlikely(wr->sg_list[i].length && !soft_local_find(qp, &wr->sg_list[i], access)))
			return false;
	return true;
}

static inline bool sources_hold(struct soft_qp *qp, const struct ibv_send_wr *wr)
{
	return wr->send_flags & IBV_SEND_INLINE || locals_hold(qp, wr, 0);
}

/*
 * A word that the peer may read before an arrival tells of it: a credit, say. Releases what was read and written
 * before, and pairs with the engine's acquire loads (core/stream/inbound.c, on_control). Without it the peer could
 * see the credit while our reads of the ring are still under way, and overwrite what they are after.
 */
static inline bool copy_word(char *to, const char *from)
{
	uint64_t word;

	if (unlikely(!shunt_copy_plain(&word, from, 8)))
		return false;
	if (likely(!((uintptr_t)to & 7)))
		__atomic_store_n((uint64_t *)(void *)to, word, __ATOMIC_RELEASE);
	else
		memcpy(to, &word, 8);
	return true;
}

/* Credits without a call. Bytes that go past the caches are there before the arrival is written (copy.h). */
static inline bool bytes_copy(char *to, const char *from, uint32_t bytes, unsigned int flags)
{
	if (bytes == 8)
		return copy_word(to, from);
	if (unlikely(flags & SHUNT_SEND_PAST))
		return shunt_copy_past(to, from, bytes);
	if (unlikely(bytes >= SHUNT_COPY_LARGE && !(flags & SHUNT_SEND_PLAIN)))
		return shunt_copy_string(to, from, bytes);
	return shunt_copy_plain(to, from, bytes);
}

/* False: a source is not there. The peer has not been told of what was copied before it. */
static inline bool sges_gather(char *to, const struct ibv_send_wr *wr)
{
	for (int i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *sge = &wr->sg_list[i];

		if (sge->length && unlikely(!bytes_copy(to, (const char *)(uintptr_t)sge->addr,
							sge->length, wr->send_flags)))
			return false;
		to += sge->length;
	}
	return true;
}

static void scatter(const struct ibv_send_wr *wr, const char *from)
{
	for (int i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *sge = &wr->sg_list[i];

		if (sge->length)
			memcpy((void *)(uintptr_t)sge->addr, from, sge->length);
		from += sge->length;
	}
}

/*
 * May the next arrival be written? Its slot is free once the receive behind it was posted. Acquires what the owner
 * released with `posted` (soft_post_recv): without it, a store here could reach a slot or a buffer that is still read.
 */
static inline bool arrival_is_free(struct soft_qp *qp)
{
	if (unlikely((int64_t)(qp->peer_posted - qp->written) <= 0))
		qp->peer_posted = soft_load_acquire(&qp->peer_queue->posted);
	return likely((int64_t)(qp->peer_posted - qp->written) > 0);
}

/*
 * The stamp goes last, and releases: who sees it sees the payload. Pairs with arrival_is_there() in receive.c. Without
 * the release the peer could poll an arrival whose bytes are still those of before.
 */
static inline void arrival_write(struct soft_qp *qp, const struct ibv_send_wr *wr, uint32_t opcode,
				 uint32_t status, uint64_t bytes)
{
	struct segment_arrival *arrival = &qp->peer_queue->arrival[qp->written & qp->peer_mask];
	uint32_t seq = (uint32_t)(qp->peer_base + ++qp->written);
	uint32_t immediate = opcode & SEGMENT_IMMEDIATE ? wr->imm_data : 0;

	soft_store(&arrival->what, bytes << 32 | immediate);
	soft_store_release(&arrival->stamp, (uint64_t)seq << 32 | status << 16 | opcode);
	qp->rang = true;
	if (unlikely(qp->peer->waiting.count)) {
		if (qp->rang_count < SOFT_RANG)
			qp->rang_for[qp->rang_count] = immediate;
		qp->rang_count += qp->rang_count <= SOFT_RANG;
	}
	if (wr->send_flags & IBV_SEND_SOLICITED || status != IBV_WC_SUCCESS)
		qp->rang_solicited = true;
}

/*
 * The responder fails with us: it reads the fault when it has polled all that came before. Releases those arrivals, and
 * pairs with the acquire in soft_receive_poll(), which comes before it looks for them.
 */
static int wr_refuse(struct soft_qp *qp, enum segment_fault fault, int status)
{
	soft_store_release(&qp->peer_queue->fault, fault);
	qp->rang = true;
	qp->rang_solicited = true;
	qp->rang_count = SOFT_RANG + 1;	/* it concerns all */
	return status;
}

static inline int execute_write(struct soft_qp *qp, const struct ibv_send_wr *wr, uint64_t bytes,
				bool immediate)
{
	char *to;

	if (immediate && unlikely(!arrival_is_free(qp)))
		return SOFT_RNR;
	if (likely(bytes)) {
		if (unlikely(!sources_hold(qp, wr)))
			return IBV_WC_LOC_PROT_ERR;
		to = soft_remote_find(qp, wr->wr.rdma.remote_addr, wr->wr.rdma.rkey, bytes,
				      IBV_ACCESS_REMOTE_WRITE);
		if (unlikely(!to))
			return wr_refuse(qp, SEGMENT_FAULT_ACCESS, IBV_WC_REM_ACCESS_ERR);
		if (unlikely(!sges_gather(to, wr)))
			return SOFT_FAULTED;
	}
	if (immediate)
		arrival_write(qp, wr, SEGMENT_IMMEDIATE | IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_SUCCESS,
			      bytes);
	return IBV_WC_SUCCESS;
}

/* A receive that cannot take the message fails on its side as well as on ours. */
static int send_misfit(struct soft_qp *qp, const struct ibv_send_wr *wr, uint32_t opcode,
		       int theirs, int ours)
{
	arrival_write(qp, wr, opcode, (uint32_t)theirs, 0);
	return ours;
}

static int execute_send(struct soft_qp *qp, const struct ibv_send_wr *wr, uint64_t bytes, bool immediate)
{
	uint32_t opcode = IBV_WC_RECV | (immediate ? SEGMENT_IMMEDIATE : 0);
	uint64_t offset;
	uint32_t room;

	if (unlikely(!arrival_is_free(qp)))
		return SOFT_RNR;
	if (unlikely(!sources_hold(qp, wr)))
		return IBV_WC_LOC_PROT_ERR;
	if (bytes) {
		struct segment_rqe *rqe = segment_rqes(qp->peer_queue, qp->peer_mask + 1);

		rqe += qp->written & qp->peer_mask;
		offset = soft_load(&rqe->offset);
		room = soft_load(&rqe->length);
		if (bytes > room)
			return send_misfit(qp, wr, opcode, IBV_WC_LOC_LEN_ERR, IBV_WC_REM_INV_REQ_ERR);
		if (offset > qp->peer->bytes || bytes > qp->peer->bytes - offset)
			return send_misfit(qp, wr, opcode, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR);
		if (unlikely(!sges_gather(qp->peer->base + offset, wr)))
			return SOFT_FAULTED;
	}
	arrival_write(qp, wr, opcode, IBV_WC_SUCCESS, bytes);
	return IBV_WC_SUCCESS;
}

static int execute_read(struct soft_qp *qp, const struct ibv_send_wr *wr, uint64_t bytes)
{
	const char *from;

	if (!bytes)
		return IBV_WC_SUCCESS;
	if (unlikely(!locals_hold(qp, wr, IBV_ACCESS_LOCAL_WRITE)))
		return IBV_WC_LOC_PROT_ERR;
	from = soft_remote_find(qp, wr->wr.rdma.remote_addr, wr->wr.rdma.rkey, bytes,
				IBV_ACCESS_REMOTE_READ);
	if (unlikely(!from))
		return wr_refuse(qp, SEGMENT_FAULT_ACCESS, IBV_WC_REM_ACCESS_ERR);
	scatter(wr, from);
	return IBV_WC_SUCCESS;
}

static int execute_atomic(struct soft_qp *qp, const struct ibv_send_wr *wr, uint64_t bytes)
{
	uint64_t before = wr->wr.atomic.compare_add;
	uint64_t *at;

	if (bytes != sizeof(before))
		return IBV_WC_LOC_LEN_ERR;
	if (!locals_hold(qp, wr, IBV_ACCESS_LOCAL_WRITE))
		return IBV_WC_LOC_PROT_ERR;
	if (wr->wr.atomic.remote_addr % sizeof(before))
		return wr_refuse(qp, SEGMENT_FAULT_REQUEST, IBV_WC_REM_INV_REQ_ERR);
	at = (uint64_t *)soft_remote_find(qp, wr->wr.atomic.remote_addr, wr->wr.atomic.rkey,
					  sizeof(before), IBV_ACCESS_REMOTE_ATOMIC);
	/* A liar may have registered an address that is not aligned where we see it. */
	if (!at || (uintptr_t)at % sizeof(before))
		return wr_refuse(qp, SEGMENT_FAULT_ACCESS, IBV_WC_REM_ACCESS_ERR);
	if (wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		before = __atomic_fetch_add(at, wr->wr.atomic.compare_add, __ATOMIC_SEQ_CST);
	else
		__atomic_compare_exchange_n(at, &before, wr->wr.atomic.swap, 0, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST);
	scatter(wr, (const char *)&before);
	return IBV_WC_SUCCESS;
}

int soft_execute(struct soft_qp *qp, const struct ibv_send_wr *wr, uint64_t bytes)
{
	if (unlikely(bytes > SOFT_MAX_MESSAGE))
		return IBV_WC_LOC_LEN_ERR;
	switch (wr->opcode) {
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return execute_write(qp, wr, bytes, true);
	case IBV_WR_RDMA_WRITE:
		return execute_write(qp, wr, bytes, false);
	case IBV_WR_SEND:
		return execute_send(qp, wr, bytes, false);
	case IBV_WR_SEND_WITH_IMM:
		return execute_send(qp, wr, bytes, true);
	case IBV_WR_RDMA_READ:
		return execute_read(qp, wr, bytes);
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return execute_atomic(qp, wr, bytes);
	default:
		return IBV_WC_LOC_QP_OP_ERR;
	}
}
