/* SPDX-License-Identifier: MIT */
/* Opcodes, order, accounting (SD-01…05, SD-11). */
#include <errno.h>
#include "tests/soft/rig.h"

static void SD_01_one_table_serves_every_call(void **state)
{
	struct rig *rig = rig_make(NULL);
	void *const *call = (void *const *)rig->a.verbs;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	(void)state;
	for (size_t i = 0; i < sizeof(struct shunt_verbs) / sizeof(*call); i++)
		assert_non_null(call[i]);
	assert_int_equal(rig->a.verbs->query_qp(rig->a.qp, &attr, 0, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_RTS);
	assert_int_equal(init.cap.max_send_wr, rig->a.cap.max_send_wr);
	assert_true(init.cap.max_send_wr >= 64);
	rig_free(rig);
}

static void SD_01_states_follow_the_specification(void **state)
{
	struct rig *rig = rig_make(NULL);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };
	struct ibv_sge sge;
	struct ibv_send_wr wr = rig_write(&rig->a, &rig->b, &sge, 1, IBV_WR_RDMA_WRITE, 8), *bad = NULL;
	struct ibv_recv_wr receive = { 0 }, *bad_receive = NULL;

	(void)state;
	assert_int_equal(rig->a.verbs->modify_qp(rig->a.qp, &attr, IBV_QP_STATE), EINVAL);
	rig_end_state(&rig->a, &rig->options, IBV_QPS_RESET);
	assert_int_equal(ibv_post_recv(rig->a.qp, &receive, &bad_receive), EINVAL);
	assert_ptr_equal(bad_receive, rig_quirk(QUIRK_NO_BAD_WR) ? NULL : &receive);
	assert_int_equal(rig->a.verbs->modify_qp(rig->a.qp, &attr, IBV_QP_STATE), EINVAL);
	rig_end_state(&rig->a, &rig->options, IBV_QPS_INIT);
	assert_int_equal(rig_post(&rig->a, &wr, &bad), EINVAL);
	assert_ptr_equal(bad, rig_quirk(QUIRK_NO_BAD_WR) ? NULL : &wr);
	/* The reset has dropped the peer: there is nobody to be ready to receive from. */
	assert_int_equal(rig->a.verbs->modify_qp(rig->a.qp, &attr, IBV_QP_STATE), EINVAL);
	rig_free(rig);
}

/* Neither less nor more than belongs to it. */
static void SD_01_a_transition_takes_its_attributes(void **state)
{
	struct rig *rig = rig_make(NULL);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .min_rnr_timer = 14, .timeout = 14 };
	struct ibv_qp_init_attr init;
	struct ibv_qp *qp = rig->a.qp;
	int (*modify)(struct ibv_qp *, struct ibv_qp_attr *, int) = rig->a.verbs->modify_qp;

	(void)state;
	assert_int_equal(modify(qp, &attr, IBV_QP_MIN_RNR_TIMER), 0);
	assert_int_equal(modify(qp, &attr, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER), 0);
	assert_int_equal(modify(qp, &attr, IBV_QP_TIMEOUT), EINVAL);
	assert_int_equal(modify(qp, &attr, IBV_QP_STATE | IBV_QP_RETRY_CNT), EINVAL);
	assert_int_equal(rig->a.verbs->query_qp(qp, &attr, IBV_QP_MIN_RNR_TIMER, &init), 0);
	assert_int_equal(attr.min_rnr_timer, 14);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RESET };
	assert_int_equal(modify(qp, &attr, IBV_QP_STATE), 0);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_INIT, .port_num = 1 };
	assert_int_equal(modify(qp, &attr, SHUNT_TO_INIT & ~IBV_QP_PORT), EINVAL);
	assert_int_equal(modify(qp, &attr, SHUNT_TO_INIT | IBV_QP_TIMEOUT), EINVAL);
	assert_int_equal(modify(qp, &attr, SHUNT_TO_INIT), 0);
	assert_int_equal(modify(qp, &attr, IBV_QP_ACCESS_FLAGS), 0);
	assert_int_equal(rig_state(&rig->a), IBV_QPS_INIT);
	rig_free(rig);
}

static void SD_01_completion_is_filled(void **state)
{
	struct rig *rig = rig_make(&(struct rig_options){ .receives = 2 });
	struct ibv_wc wc;

	(void)state;
	rig_one(&rig->a, &rig->b, 77, IBV_WR_RDMA_WRITE_WITH_IMM, 100);
	wc = rig_expect(rig->b.recv_cq, 1000, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(wc.byte_len, 100);
	assert_int_equal(wc.imm_data, 77);
	assert_int_equal(wc.qp_num, rig->b.qp->qp_num);
	assert_int_equal(wc.wc_flags & IBV_WC_WITH_IMM, IBV_WC_WITH_IMM);
	assert_int_equal(wc.vendor_err, 0);
	wc = rig_expect(rig->a.send_cq, 77, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RDMA_WRITE);
	assert_int_equal(wc.qp_num, rig->a.qp->qp_num);
	rig_free(rig);
}

static void SD_02_write_places_bytes_and_tells_nobody(void **state)
{
	struct rig *rig = rig_make(&(struct rig_options){ .receives = 1 });

	(void)state;
	memset(rig->a.memory, 'x', 5000);
	rig_one(&rig->a, &rig->b, 1, IBV_WR_RDMA_WRITE, 5000);
	rig_expect(rig->a.send_cq, 1, IBV_WC_SUCCESS);
	rig_expect_none(rig->b.recv_cq);
	assert_memory_equal(rig->a.memory, rig->b.memory, 5000);
	assert_int_equal(rig->b.memory[5000], 0);
	rig_free(rig);
}

static void SD_02_gather_of_sixteen(void **state)
{
	struct rig *rig = rig_make(&(struct rig_options){ .send_sge = 16 });
	struct ibv_sge sge[17];
	struct ibv_send_wr wr = rig_write(&rig->a, &rig->b, sge, 1, IBV_WR_RDMA_WRITE, 1), *bad;

	(void)state;
	for (int i = 0; i < 17; i++) {
		rig->a.memory[100 * i] = (char)('a' + i);
		sge[i] = (struct ibv_sge){ (uint64_t)(uintptr_t)(rig->a.memory + 100 * i), 1,
					   rig->a.mr->lkey };
	}
	wr.num_sge = 17;
	assert_int_equal(rig_post(&rig->a, &wr, &bad), EINVAL);
	wr.num_sge = 16;
	assert_int_equal(rig_post(&rig->a, &wr, &bad), 0);
	rig_expect(rig->a.send_cq, 1, IBV_WC_SUCCESS);
	assert_memory_equal(rig->b.memory, "abcdefghijklmnop", 17);
	rig_free(rig);
}

static void SD_02_send_lands_in_the_posted_buffer(void **state)
{
	struct rig *rig = rig_make(NULL);
	struct ibv_wc wc;

	(void)state;
	strcpy(rig->a.memory, "hello");
	rig_receive(&rig->b, 5, rig->b.memory + 4096, 64);
	rig_receive(&rig->b, 6, rig->b.memory + 8192, 64);
	rig_receive(&rig->b, 7, NULL, 0);
	rig_one(&rig->a, &rig->b, 1, IBV_WR_SEND, 6);
	rig_one(&rig->a, &rig->b, 2, IBV_WR_SEND_WITH_IMM, 6);
	rig_one(&rig->a, &rig->b, 3, IBV_WR_SEND, 0);
	wc = rig_expect(rig->b.recv_cq, 5, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.byte_len, 6);
	assert_int_equal(wc.wc_flags & IBV_WC_WITH_IMM, 0);
	assert_string_equal(rig->b.memory + 4096, "hello");
	wc = rig_expect(rig->b.recv_cq, 6, IBV_WC_SUCCESS);
	assert_int_equal(wc.wc_flags & IBV_WC_WITH_IMM, IBV_WC_WITH_IMM);
	assert_int_equal(wc.imm_data, 2);
	assert_string_equal(rig->b.memory + 8192, "hello");
	assert_int_equal(rig_expect(rig->b.recv_cq, 7, IBV_WC_SUCCESS).byte_len, 0);
	assert_int_equal(rig_expect(rig->a.send_cq, 1, IBV_WC_SUCCESS).opcode, IBV_WC_SEND);
	rig_free(rig);
}

static void SD_02_read_fetches(void **state)
{
	struct rig *rig = rig_make(NULL);

	(void)state;
	strcpy(rig->b.memory, "remote");
	rig_one(&rig->a, &rig->b, 1, IBV_WR_RDMA_READ, 7);
	assert_int_equal(rig_expect(rig->a.send_cq, 1, IBV_WC_SUCCESS).opcode, IBV_WC_RDMA_READ);
	assert_string_equal(rig->a.memory, "remote");
	rig_free(rig);
}

static uint64_t atomic(struct rig *rig, enum ibv_wr_opcode opcode, uint64_t compare_add, uint64_t swap)
{
	struct ibv_sge sge = { (uint64_t)(uintptr_t)rig->a.memory, 8, rig->a.mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 9, .sg_list = &sge, .num_sge = 1, .opcode = opcode,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;
	uint64_t before;

	wr.wr.atomic.remote_addr = (uint64_t)(uintptr_t)rig->b.memory;
	wr.wr.atomic.rkey = rig->b.mr->rkey;
	wr.wr.atomic.compare_add = compare_add;
	wr.wr.atomic.swap = swap;
	assert_int_equal(rig_post(&rig->a, &wr, &bad), 0);
	rig_expect(rig->a.send_cq, 9, IBV_WC_SUCCESS);
	memcpy(&before, rig->a.memory, 8);
	return before;
}

static void SD_02_atomics(void **state)
{
	struct rig *rig = rig_make(NULL);
	uint64_t value;

	(void)state;
	assert_int_equal(atomic(rig, IBV_WR_ATOMIC_FETCH_AND_ADD, 40, 0), 0);
	assert_int_equal(atomic(rig, IBV_WR_ATOMIC_FETCH_AND_ADD, 2, 0), 40);
	assert_int_equal(atomic(rig, IBV_WR_ATOMIC_CMP_AND_SWP, 41, 5), 42);
	assert_int_equal(atomic(rig, IBV_WR_ATOMIC_CMP_AND_SWP, 42, 7), 42);
	memcpy(&value, rig->b.memory, 8);
	assert_int_equal(value, 7);
	rig_free(rig);
}

/* As the owner of a shared page does, whose device has no other way to it (core/device/page_verbs.c). */
static void SD_02_a_queue_pair_may_be_its_own_peer(void **state)
{
	struct rig *rig = rig_make(NULL);
	struct rig_end *end = &rig->a;
	uint64_t *words = (uint64_t *)end->memory;
	struct ibv_sge sge = { (uint64_t)(uintptr_t)&words[0], 8, end->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;

	(void)state;
	rig_end_state(end, &rig->options, IBV_QPS_RESET);
	rig_end_state(end, &rig->options, IBV_QPS_INIT);
	rig_learn(end, end);
	rig_end_state(end, &rig->options, IBV_QPS_RTR);
	rig_end_state(end, &rig->options, IBV_QPS_RTS);
	wr.wr.atomic.remote_addr = (uint64_t)(uintptr_t)&words[1];
	wr.wr.atomic.rkey = end->mr->rkey;
	wr.wr.atomic.compare_add = 5;
	for (uint64_t i = 0; i < 3; i++) {
		wr.wr_id = i;
		assert_int_equal(rig_post(end, &wr, &bad), 0);
		rig_expect(end->send_cq, i, IBV_WC_SUCCESS);
		assert_int_equal(words[0], 5 * i);
	}
	assert_int_equal(words[1], 15);
	rig_free(rig);
}

static void SD_02_zero_length_needs_no_key(void **state)
{
	struct rig *rig = rig_make(&(struct rig_options){ .receives = 1 });
	struct ibv_sge sge;
	struct ibv_send_wr wr = rig_write(&rig->a, &rig->b, &sge, 1, IBV_WR_RDMA_WRITE, 0), *bad;

	(void)state;
	wr.wr.rdma.rkey = 0xdeadbeef;
	assert_int_equal(rig_post(&rig->a, &wr, &bad), 0);
	rig_expect(rig->a.send_cq, 1, IBV_WC_SUCCESS);
	wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	assert_int_equal(rig_post(&rig->a, &wr, &bad), 0);
	assert_int_equal(rig_expect(rig->b.recv_cq, 1000, IBV_WC_SUCCESS).byte_len, 0);
	rig_free(rig);
}

/* Nothing is written, so nothing is refused. */
static void SD_02_zero_length_needs_no_right(void **state)
{
	struct rig *rig = rig_make(&(struct rig_options){ .qp_access = IBV_ACCESS_LOCAL_WRITE });

	(void)state;
	rig_one(&rig->a, &rig->b, 1, IBV_WR_RDMA_WRITE, 0);
	rig_expect(rig->a.send_cq, 1,
		   rig_quirk(QUIRK_ACCESS_IS_REQUEST) ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_SUCCESS);
	rig_free(rig);
}

static void SD_03_order_over_many_laps(void **state)
{
	struct rig *rig = rig_make(&(struct rig_options){ .receives = 64, .separate_cqs = 1 });

	(void)state;
	rig_laps(rig, 1000, rig_expect);
	rig_free(rig);
}

static void SD_04_counters_are_exact(void **state)
{
	struct rig *rig = rig_make(&(struct rig_options){ .receives = 8 });
	const struct soft_counters *a = soft_qp_counters(rig->a.qp), *b = soft_qp_counters(rig->b.qp);
	struct ibv_sge sge[3];
	struct ibv_send_wr wr[3], *bad;
	struct ibv_wc wc[8];

	(void)state;
	for (int i = 0; i < 3; i++) {
		wr[i] = rig_write(&rig->a, &rig->b, &sge[i], (uint64_t)i, IBV_WR_RDMA_WRITE_WITH_IMM, 10);
		wr[i].next = i < 2 ? &wr[i + 1] : NULL;
		wr[i].send_flags = i == 1 ? IBV_SEND_INLINE : i == 2 ? IBV_SEND_SIGNALED : 0;
	}
	assert_int_equal(rig_post(&rig->a, wr, &bad), 0);
	rig_one(&rig->a, &rig->b, 3, IBV_WR_RDMA_WRITE, 5);
	assert_int_equal(a->doorbells, 2);
	assert_int_equal(a->wr, 4);
	assert_int_equal(a->wr_bytes, 35);
	assert_int_equal(a->inline_wr, 1);
	assert_int_equal(a->signaled, 2);
	assert_int_equal(a->wakes, 0);
	assert_int_equal(b->arrivals, 0);
	assert_int_equal(ibv_poll_cq(rig->b.recv_cq, 8, wc), 3);
	assert_int_equal(b->arrivals, 3);
	rig_free(rig);
}

static void SD_13_the_trace_holds_the_last_wrs_in_order(void **state)
{
	struct rig *rig = rig_make(&(struct rig_options){ .receives = 8 });
	struct soft_trace ring[4];
	struct ibv_sge sge[3];
	struct ibv_send_wr wr[3], *bad;

	(void)state;
	soft_qp_trace(rig->a.qp, ring, 4);
	for (int i = 0; i < 3; i++) {
		wr[i] = rig_write(&rig->a, &rig->b, &sge[i], 10 + (uint64_t)i, IBV_WR_RDMA_WRITE_WITH_IMM,
				  (uint32_t)(10 + i));
		wr[i].next = i < 2 ? &wr[i + 1] : NULL;
		wr[i].send_flags = i == 2 ? IBV_SEND_SIGNALED : 0;
	}
	assert_int_equal(rig_post(&rig->a, wr, &bad), 0);
	rig_one(&rig->a, &rig->b, 3, IBV_WR_RDMA_WRITE, 5);
	rig_one(&rig->a, &rig->b, 4, IBV_WR_RDMA_WRITE, 6);
	/* Five WRs in a ring of four: the first has made room for the last. */
	for (int i = 1; i < 3; i++) {
		assert_int_equal(ring[i].wr_id, 10 + i);
		assert_int_equal(ring[i].bytes, 10 + i);
		assert_int_equal(ring[i].opcode, IBV_WR_RDMA_WRITE_WITH_IMM);
		assert_int_equal(ring[i].flags, wr[i].send_flags);
		assert_int_equal(ring[i].doorbell, ring[1].doorbell);
		assert_int_equal(ring[i].qp_num, rig->a.qp->qp_num);
	}
	assert_int_equal(ring[3].bytes, 5);
	assert_int_equal(ring[3].doorbell, ring[1].doorbell + 1);
	assert_int_equal(ring[0].bytes, 6);
	assert_int_equal(ring[0].doorbell, ring[1].doorbell + 2);
	assert_true(ring[3].time <= ring[0].time);
	soft_qp_trace(rig->a.qp, NULL, 0);
	rig_one(&rig->a, &rig->b, 5, IBV_WR_RDMA_WRITE, 7);
	assert_int_equal(ring[1].wr_id, 11);
	rig_free(rig);
}

static void SD_05_slots_are_freed_by_polling_a_signaled_wr(void **state)
{
	struct rig *rig = rig_make(&(struct rig_options){ .send_wr = 4 });
	struct ibv_sge sge;
	struct ibv_send_wr wr = rig_write(&rig->a, &rig->b, &sge, 1, IBV_WR_RDMA_WRITE, 8), *bad = NULL;

	(void)state;
	wr.send_flags = 0;
	assert_int_equal(rig_post(&rig->a, &wr, &bad), 0);
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.wr_id = 2;
	assert_int_equal(rig_post(&rig->a, &wr, &bad), 0);
	wr.send_flags = 0;
	assert_int_equal(rig_post(&rig->a, &wr, &bad), 0);
	assert_int_equal(rig_post(&rig->a, &wr, &bad), 0);
	assert_int_equal(rig_post(&rig->a, &wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr);
	rig_expect(rig->a.send_cq, 2, IBV_WC_SUCCESS);
	/* The two up to the signaled one are free, the two behind it are not. */
	assert_int_equal(rig_post(&rig->a, &wr, &bad), 0);
	assert_int_equal(rig_post(&rig->a, &wr, &bad), 0);
	assert_int_equal(rig_post(&rig->a, &wr, &bad), ENOMEM);
	rig_expect_none(rig->a.send_cq);
	assert_int_equal(rig_post(&rig->a, &wr, &bad), ENOMEM);
	rig_free(rig);
}

static void SD_05_a_chain_is_posted_up_to_the_bad_wr(void **state)
{
	struct rig *rig = rig_make(&(struct rig_options){ .send_wr = 4, .receives = 32 });
	int depth = (int)rig->a.cap.max_send_wr;
	struct ibv_sge sge[32];
	struct ibv_send_wr wr[32], *bad = NULL;

	(void)state;
	assert_in_range(depth, 4, 30);
	for (int i = 0; i < depth + 2; i++) {
		wr[i] = rig_write(&rig->a, &rig->b, &sge[i], (uint64_t)i, IBV_WR_RDMA_WRITE_WITH_IMM, 8);
		wr[i].next = i < depth + 1 ? &wr[i + 1] : NULL;
	}
	assert_int_equal(rig_post(&rig->a, wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr[depth]);
	rig_expect_count(rig->b.recv_cq, depth);
	rig_expect_count(rig->a.send_cq, depth);
	assert_int_equal(rig_post(&rig->a, bad, &bad), 0);
	rig_expect(rig->a.send_cq, (uint64_t)depth, IBV_WC_SUCCESS);
	rig_expect(rig->a.send_cq, (uint64_t)depth + 1, IBV_WC_SUCCESS);
	rig_free(rig);
}

static void SD_05_sq_sig_all_signals_all(void **state)
{
	struct rig *rig = rig_make(&(struct rig_options){ .sq_sig_all = 1 });
	struct ibv_sge sge;
	struct ibv_send_wr wr = rig_write(&rig->a, &rig->b, &sge, 1, IBV_WR_RDMA_WRITE, 8), *bad;

	(void)state;
	wr.send_flags = 0;
	assert_int_equal(rig_post(&rig->a, &wr, &bad), 0);
	rig_expect(rig->a.send_cq, 1, IBV_WC_SUCCESS);
	rig_free(rig);
}

static void SD_11_limits_are_told_and_kept(void **state)
{
	struct soft_attr attr = { .max_qp_wr = 100, .max_cqe = 50, .max_inline = 16, .arena_bytes = 1 << 24 };
	const struct shunt_verbs *verbs;
	struct ibv_context *context = rig_device->open(&attr, &verbs);
	struct ibv_device_attr device;
	struct ibv_pd *pd = verbs->alloc_pd(context);
	struct ibv_cq *cq = verbs->create_cq(context, 50, NULL, NULL, 0);
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq,
					 .cap = { 129, 1, 1, 1, 0 } };
	struct ibv_qp *qp;

	(void)state;
	assert_int_equal(verbs->query_device(context, &device), 0);
	assert_int_equal(device.max_qp_wr, 128);
	assert_int_equal(device.max_cqe, 50);
	assert_int_equal(device.max_sge, 16);
	assert_null(verbs->create_cq(context, 51, NULL, NULL, 0));
	assert_null(verbs->create_qp(pd, &init));
	init.cap = (struct ibv_qp_cap){ 100, 3, 1, 1, 17 };
	assert_null(verbs->create_qp(pd, &init));
	init.cap.max_inline_data = 16;
	qp = verbs->create_qp(pd, &init);
	assert_non_null(qp);
	assert_int_equal(init.cap.max_send_wr, 128);
	assert_int_equal(init.cap.max_recv_wr, 4);
	assert_int_equal(init.cap.max_inline_data, 16);
	assert_int_equal(verbs->destroy_cq(cq), EBUSY);
	assert_int_equal(verbs->dealloc_pd(pd), EBUSY);
	assert_int_equal(verbs->destroy_qp(qp), 0);
	assert_int_equal(verbs->destroy_cq(cq), 0);
	assert_int_equal(verbs->dealloc_pd(pd), 0);
	rig_device->close(context);
}

static void SD_11_what_is_beyond_the_limits_is_refused(void **state)
{
	struct rig *rig = rig_make(NULL);
	const struct shunt_verbs *verbs = rig->a.verbs;
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .send_cq = rig->a.send_cq,
					 .recv_cq = rig->a.recv_cq };
	struct ibv_device_attr device;

	(void)state;
	assert_int_equal(verbs->query_device(rig->a.context, &device), 0);
	assert_null(verbs->create_cq(rig->a.context, device.max_cqe + 1, NULL, NULL, 0));
	init.cap = (struct ibv_qp_cap){ (uint32_t)device.max_qp_wr + 1, 1, 1, 1, 0 };
	assert_null(verbs->create_qp(rig->a.pd, &init));
	init.cap = (struct ibv_qp_cap){ 1, (uint32_t)device.max_qp_wr + 1, 1, 1, 0 };
	assert_null(verbs->create_qp(rig->a.pd, &init));
	init.cap = (struct ibv_qp_cap){ 1, 1, (uint32_t)device.max_sge + 1, 1, 0 };
	assert_null(verbs->create_qp(rig->a.pd, &init));
	assert_int_equal(verbs->destroy_cq(rig->a.send_cq), EBUSY);
	assert_int_equal(verbs->dealloc_pd(rig->a.pd), EBUSY);
	rig_free(rig);
}

static void SD_05_receive_queue_is_finite(void **state)
{
	struct rig *rig = rig_make(&(struct rig_options){ .recv_wr = 4 });
	struct ibv_recv_wr wr = { 0 }, *bad = NULL;

	(void)state;
	rig_receives(&rig->b, (int)rig->b.cap.max_recv_wr);
	assert_int_equal(ibv_post_recv(rig->b.qp, &wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr);
	rig_one(&rig->a, &rig->b, 1, IBV_WR_RDMA_WRITE_WITH_IMM, 0);
	rig_expect(rig->a.send_cq, 1, IBV_WC_SUCCESS);
	/* Arrived, not yet polled. */
	assert_int_equal(ibv_post_recv(rig->b.qp, &wr, &bad), rig_quirk(QUIRK_EARLY_SLOTS) ? 0 : ENOMEM);
	rig_expect(rig->b.recv_cq, 1000, IBV_WC_SUCCESS);
	assert_int_equal(ibv_post_recv(rig->b.qp, &wr, &bad), rig_quirk(QUIRK_EARLY_SLOTS) ? ENOMEM : 0);
	rig_free(rig);
}

RIG_TABLE(basic, cmocka_unit_test(SD_01_one_table_serves_every_call),
	  cmocka_unit_test(SD_01_states_follow_the_specification),
	  cmocka_unit_test(SD_01_a_transition_takes_its_attributes),
	  cmocka_unit_test(SD_01_completion_is_filled),
	  cmocka_unit_test(SD_02_write_places_bytes_and_tells_nobody),
	  cmocka_unit_test(SD_02_gather_of_sixteen),
	  cmocka_unit_test(SD_02_send_lands_in_the_posted_buffer),
	  cmocka_unit_test(SD_02_read_fetches), cmocka_unit_test(SD_02_atomics),
	  cmocka_unit_test(SD_02_a_queue_pair_may_be_its_own_peer),
	  cmocka_unit_test(SD_02_zero_length_needs_no_key),
	  cmocka_unit_test(SD_02_zero_length_needs_no_right),
	  cmocka_unit_test(SD_03_order_over_many_laps), cmocka_unit_test(SD_04_counters_are_exact),
	  cmocka_unit_test(SD_13_the_trace_holds_the_last_wrs_in_order),
	  cmocka_unit_test(SD_05_slots_are_freed_by_polling_a_signaled_wr),
	  cmocka_unit_test(SD_05_a_chain_is_posted_up_to_the_bad_wr),
	  cmocka_unit_test(SD_05_sq_sig_all_signals_all),
	  cmocka_unit_test(SD_05_receive_queue_is_finite), cmocka_unit_test(SD_11_limits_are_told_and_kept),
	  cmocka_unit_test(SD_11_what_is_beyond_the_limits_is_refused));
