/* SPDX-License-Identifier: MIT */
#include "core/lane/wr.h"
#include "core/lane/lane.h"

#define SLOTS_FREE 2	/* for data that has been admitted already */

/* One that takes no receive of the peer's, and says when it is complete. */
static bool post_apart(struct shunt_lane *lane, struct ibv_send_wr *wr, uint64_t *number)
{
	if (shunt_wr_slots(lane, 0, 0) == SHUNT_LIMIT_SQ)
		return false;
	wr->wr_id = lane->sent + 1;
	wr->send_flags |= IBV_SEND_SIGNALED;
	shunt_wr_signal(lane, lane->sent + 1, lane->window.posted);
	if (!shunt_wr_post(lane, wr, 1))
		return false;
	lane->reads++;
	*number = lane->sent;
	return true;
}

bool shunt_wr_read(struct shunt_lane *lane, struct ibv_sge *to, uint64_t addr, uint32_t rkey, uint64_t *number)
{
	struct ibv_send_wr wr = { .sg_list = to, .num_sge = 1, .opcode = IBV_WR_RDMA_READ,
				  .wr.rdma = { .remote_addr = addr, .rkey = rkey } };

	return post_apart(lane, &wr, number);
}

bool shunt_wr_probe(struct shunt_lane *lane, uint64_t *number)
{
	/* Without bytes the specification has no use for the key (C9-88); nobody knows of each firmware. */
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE,
				  .wr.rdma = { .remote_addr = lane->peer_controls, .rkey = lane->rkey } };

	return post_apart(lane, &wr, number);
}

bool shunt_wr_word(struct shunt_lane *lane, uint64_t word, uint64_t addr, uint32_t rkey,
		   uint64_t *number)
{
	struct ibv_sge from = shunt_wr_word_sge(lane, &word, lane->sent + 1);
	struct ibv_send_wr wr = { .sg_list = &from, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = lane->words ? 0 : IBV_SEND_INLINE,
				  .wr.rdma = { .remote_addr = addr, .rkey = rkey } };

	return post_apart(lane, &wr, number);
}

bool shunt_wr_fetch_add(struct shunt_lane *lane, struct ibv_sge *to, uint64_t add, uint64_t addr,
			uint32_t rkey, uint64_t *number)
{
	struct ibv_send_wr wr = { .sg_list = to, .num_sge = 1, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
				  .wr.atomic = { .remote_addr = addr, .compare_add = add, .rkey = rkey } };

	return post_apart(lane, &wr, number);
}

bool shunt_wr_plain(struct shunt_lane *lane, struct ibv_sge *from, uint64_t addr, uint32_t rkey)
{
	struct ibv_send_wr wr = { .wr_id = lane->sent + 1, .sg_list = from, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
				  .wr.rdma = { .remote_addr = addr, .rkey = rkey } };

	if (shunt_wr_out(lane, SLOTS_FREE) >= shunt_lane_slots(lane))
		return false;
	wr.send_flags = shunt_wr_flags(lane, lane->sent + 1, 0, from->length, false, false);
	if (!shunt_wr_post(lane, &wr, 1))
		return false;
	lane->reads++;
	return true;
}
