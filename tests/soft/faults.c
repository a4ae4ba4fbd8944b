/* SPDX-License-Identifier: MIT */
/* Faults that a test asks for (SD-12). */
#include <errno.h>
#include "tests/soft/rig.h"

static void SD_12_stall_holds_and_lets_go(void **state)
{
	struct rig *rig = rig_make(&(struct rig_options){ .receives = 4, .send_wr = 2 });
	struct ibv_sge sge;
	struct ibv_send_wr wr = rig_write(&rig->a, &rig->b, &sge, 3, IBV_WR_RDMA_WRITE, 1), *bad;

	(void)state;
	soft_qp_fault(rig->a.qp, SOFT_FAULT_STALL);
	rig_one(&rig->a, &rig->b, 1, IBV_WR_RDMA_WRITE_WITH_IMM, 8);
	rig_one(&rig->a, &rig->b, 2, IBV_WR_RDMA_WRITE_WITH_IMM, 8);
	assert_int_equal(rig_post(&rig->a, &wr, &bad), ENOMEM);
	rig_clock += 1ull << 40;
	rig_expect_none(rig->a.send_cq);
	rig_expect_none(rig->b.recv_cq);
	soft_qp_fault(rig->a.qp, SOFT_FAULT_NONE);
	assert_int_equal(rig_expect(rig->b.recv_cq, 1000, IBV_WC_SUCCESS).imm_data, 1);
	assert_int_equal(rig_expect(rig->b.recv_cq, 1001, IBV_WC_SUCCESS).imm_data, 2);
	rig_expect(rig->a.send_cq, 1, IBV_WC_SUCCESS);
	rig_expect(rig->a.send_cq, 2, IBV_WC_SUCCESS);
	rig_free(rig);
}

static void SD_12_drop_times_out(void **state)
{
	struct rig *rig = rig_make(&(struct rig_options){ .retry_cnt = 2 });

	(void)state;
	rig->a.memory[0] = 'x';
	soft_qp_fault(rig->a.qp, SOFT_FAULT_DROP);
	rig_expect_silence(rig);
	rig_free(rig);
}

static void SD_12_kill_flushes(void **state)
{
	struct rig *rig = rig_make(&(struct rig_options){ .receives = 1 });

	(void)state;
	soft_qp_fault(rig->a.qp, SOFT_FAULT_STALL);
	rig_one(&rig->a, &rig->b, 1, IBV_WR_RDMA_WRITE, 8);
	rig_one(&rig->a, &rig->b, 2, IBV_WR_RDMA_WRITE, 8);
	soft_qp_fault(rig->a.qp, SOFT_FAULT_KILL);
	rig_expect_flushed(rig->a.send_cq, 1);
	rig_expect_flushed(rig->a.send_cq, 2);
	rig_expect_flushed(rig->a.recv_cq, 1000);
	rig_expect_none(rig->a.send_cq);
	rig_free(rig);
}

static void SD_12_post_fails_on_demand(void **state)
{
	struct rig *rig = rig_make(&(struct rig_options){ .receives = 8 });
	struct ibv_sge sge[3];
	struct ibv_send_wr wr[3], *bad = NULL;
	struct ibv_wc wc[8];

	(void)state;
	for (int i = 0; i < 3; i++) {
		wr[i] = rig_write(&rig->a, &rig->b, &sge[i], (uint64_t)i, IBV_WR_RDMA_WRITE_WITH_IMM, 8);
		wr[i].next = i < 2 ? &wr[i + 1] : NULL;
	}
	soft_qp_fail_post(rig->a.qp, 2);
	assert_int_equal(rig_post(&rig->a, wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr[1]);
	assert_int_equal(ibv_poll_cq(rig->b.recv_cq, 8, wc), 1);
	assert_int_equal(rig_post(&rig->a, bad, &bad), 0);
	assert_int_equal(ibv_poll_cq(rig->b.recv_cq, 8, wc), 2);
	rig_free(rig);
}

RIG_TABLE(fault, cmocka_unit_test(SD_12_stall_holds_and_lets_go), cmocka_unit_test(SD_12_drop_times_out),
	  cmocka_unit_test(SD_12_kill_flushes), cmocka_unit_test(SD_12_post_fails_on_demand));
