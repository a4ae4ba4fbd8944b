/* SPDX-License-Identifier: MIT */
/* Failures, and their statuses (SD-06, SD-09, SD-10). Time is rig_clock. */
#include <errno.h>
#include "tests/soft/rig.h"

/* How often a WR has met no receive; real devices do not tell. */
static void expect_rnr(struct rig *rig, uint64_t count)
{
	if (!rig_device->real)
		assert_int_equal(soft_qp_counters(rig->a.qp)->rnr, count);
}

static void SD_06_waits_for_ever_for_a_receive(void **state)
{
	struct rig *rig = rig_make(&(struct rig_options){ .rnr_retry = 7 });
	struct ibv_sge sge[2];
	struct ibv_send_wr wr = rig_write(&rig->a, &rig->b, &sge[0], 1, IBV_WR_RDMA_WRITE_WITH_IMM, 6);
	struct ibv_send_wr next = rig_write(&rig->a, &rig->b, &sge[1], 2, IBV_WR_RDMA_WRITE, 6), *bad;

	(void)state;
	strcpy(rig->a.memory, "early");
	wr.send_flags |= IBV_SEND_INLINE;
	wr.next = &next;
	next.wr.rdma.remote_addr += 100;
	assert_int_equal(rig_post(&rig->a, &wr, &bad), 0);
	strcpy(rig->a.memory, "later"); /* inline: already taken; the other one is read when it runs */
	rig_expect_none(rig->a.send_cq);
	expect_rnr(rig, 1);
	rig_clock += 3600ull * 1000000000;
	rig_expect_none(rig->a.send_cq);
	expect_rnr(rig, 2);
	assert_int_equal(rig->b.memory[0], 0);
	assert_int_equal(rig->b.memory[100], 0);
	rig_receives(&rig->b, 1);
	rig_expect(rig->a.send_cq, 1, IBV_WC_SUCCESS);
	rig_expect(rig->a.send_cq, 2, IBV_WC_SUCCESS);
	assert_int_equal(rig_expect(rig->b.recv_cq, 1000, IBV_WC_SUCCESS).byte_len, 6);
	assert_string_equal(rig->b.memory, "early");
	assert_string_equal(rig->b.memory + 100, "later");
	assert_int_equal(rig_state(&rig->a), IBV_QPS_RTS);
	rig_free(rig);
}

static void SD_06_finite_retries_end_in_error(void **state)
{
	struct rig *rig = rig_make(&(struct rig_options){ .rnr_retry = 2, .min_rnr_timer = 1 });

	(void)state;
	rig_one(&rig->a, &rig->b, 1, IBV_WR_SEND, 0);
	rig_one(&rig->a, &rig->b, 2, IBV_WR_RDMA_WRITE, 8);
	for (int retry = 0; retry < 2; retry++) {
		rig_clock += 10000;
		rig_expect_not_yet(rig->a.send_cq);
	}
	rig_clock += 9999;
	rig_expect_not_yet(rig->a.send_cq);
	rig_clock += 1;
	rig_expect(rig->a.send_cq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	rig_expect_flushed(rig->a.send_cq, 2);
	expect_rnr(rig, 3);
	assert_int_equal(rig_state(&rig->a), IBV_QPS_ERR);
	rig_free(rig);
}

static void SD_09_peer_gone_times_out(void **state)
{
	struct rig *rig = rig_make(&(struct rig_options){ .retry_cnt = 2 });

	(void)state;
	rig->a.memory[0] = 'x';
	rig_peer_vanishes(rig);
	rig_expect_silence(rig);
	rig_one(&rig->a, &rig->b, 3, IBV_WR_SEND, 0);
	rig_expect_flushed(rig->a.send_cq, 3);
	rig_receive(&rig->a, 4, NULL, 0);
	if (rig_quirk(QUIRK_NO_LATE_FLUSH))
		rig_expect_none(rig->a.recv_cq);
	else
		rig_expect_flushed(rig->a.recv_cq, 4);
	rig_free(rig);
}

static void SD_09_peer_in_error_times_out(void **state)
{
	struct rig *rig = rig_make(&(struct rig_options){ .retry_cnt = 2, .receives = 1 });

	(void)state;
	rig->a.memory[0] = 'x';
	rig_end_state(&rig->b, &rig->options, IBV_QPS_ERR);
	rig_expect_flushed(rig->b.recv_cq, 1000);
	rig_one(&rig->a, &rig->b, 1, IBV_WR_RDMA_WRITE, 8);
	rig_clock += 3 * 8192;
	rig_expect(rig->a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
	rig_expect_flushed(rig->a.recv_cq, 1000);
	rig_free(rig);
}

static void SD_09_seven_retries_end_too(void **state)
{
	struct rig *rig = rig_make(&(struct rig_options){ .retry_cnt = 7 });

	(void)state;
	rig_peer_vanishes(rig);
	rig_one(&rig->a, &rig->b, 1, IBV_WR_RDMA_WRITE, 8);
	rig_clock += 8 * 8192 - 1;
	rig_expect_not_yet(rig->a.send_cq);
	rig_clock += 1;
	if (rig_quirk(QUIRK_SEVEN_IS_FOREVER)) {
		struct ibv_wc wc;

		assert_int_equal(rig_poll(rig->a.send_cq, &wc, 2000), 0); /* eight times 67 ms are over */
		assert_int_equal(rig_state(&rig->a), IBV_QPS_RTS);
	} else {
		rig_expect(rig->a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
	}
	rig_free(rig);
}

static void SD_09_timeout_zero_never_ends(void **state)
{
	struct rig *rig = rig_make(&(struct rig_options){ .no_timeout = 1, .retry_cnt = 1 });

	(void)state;
	rig_peer_vanishes(rig);
	rig_one(&rig->a, &rig->b, 1, IBV_WR_RDMA_WRITE, 8);
	rig_clock += 1ull << 50;
	rig_expect_none(rig->a.send_cq);
	rig_end_state(&rig->a, &rig->options, IBV_QPS_ERR);
	rig_expect_flushed(rig->a.send_cq, 1);
	rig_free(rig);
}

static void SD_09_arrivals_before_the_error_are_delivered(void **state)
{
	struct rig *rig = rig_make(&(struct rig_options){ .receives = 3 });

	(void)state;
	rig_one(&rig->a, &rig->b, 1, IBV_WR_RDMA_WRITE_WITH_IMM, 8);
	rig_expect(rig->a.send_cq, 1, IBV_WC_SUCCESS);
	rig_end_state(&rig->b, &rig->options, IBV_QPS_ERR);
	rig_expect(rig->b.recv_cq, 1000, IBV_WC_SUCCESS);
	rig_expect_flushed(rig->b.recv_cq, 1001);
	rig_expect_flushed(rig->b.recv_cq, 1002);
	rig_expect_none(rig->b.recv_cq);
	rig_free(rig);
}

static void SD_09_reset_starts_anew(void **state)
{
	struct rig *rig = rig_make(&(struct rig_options){ .receives = 4, .retry_cnt = 0 });

	(void)state;
	for (int lap = 0; lap < 3; lap++) {
		rig_one(&rig->a, &rig->b, 1, IBV_WR_RDMA_WRITE_WITH_IMM, 8);
		rig_one(&rig->a, &rig->b, 2, IBV_WR_RDMA_WRITE_WITH_IMM, 8);
		rig_expect(rig->b.recv_cq, 1000, IBV_WC_SUCCESS);
		rig_end_state(&rig->b, &rig->options, IBV_QPS_ERR);
		rig_end_state(&rig->b, &rig->options, IBV_QPS_RESET);
		rig_expect_none(rig->b.recv_cq); /* neither arrivals nor flushes survive */
		/* The other end still points at the former generation: nobody answers it. */
		rig_end_state(&rig->b, &rig->options, IBV_QPS_INIT);
		rig_receive(&rig->b, 5, NULL, 0);
		rig_learn(&rig->b, &rig->a);
		rig_end_state(&rig->b, &rig->options, IBV_QPS_RTR);
		rig_expect(rig->a.send_cq, 1, IBV_WC_SUCCESS);
		rig_expect(rig->a.send_cq, 2, IBV_WC_SUCCESS);
		rig_one(&rig->a, &rig->b, 3, IBV_WR_RDMA_WRITE_WITH_IMM, 8);
		rig_expect_none(rig->b.recv_cq);
		rig_clock += 8192;
		rig_expect(rig->a.send_cq, 3, IBV_WC_RETRY_EXC_ERR);
		rig_end_state(&rig->a, &rig->options, IBV_QPS_RESET);
		rig_end_state(&rig->b, &rig->options, IBV_QPS_RESET);
		rig_connect(rig);
	}
	rig_free(rig);
}

static void SD_09_reset_forgets_completions(void **state)
{
	struct rig *rig = rig_make(&(struct rig_options){ .receives = 1 });

	(void)state;
	rig_one(&rig->a, &rig->b, 1, IBV_WR_RDMA_WRITE_WITH_IMM, 8);
	rig_expect(rig->a.send_cq, 1, IBV_WC_SUCCESS);
	rig_end_state(&rig->b, &rig->options, IBV_QPS_RESET);
	if (rig_quirk(QUIRK_RESET_KEEPS_CQ))
		rig_expect(rig->b.recv_cq, 1000, IBV_WC_SUCCESS);
	rig_expect_none(rig->b.recv_cq);
	rig_free(rig);
}

/* Through all states and back, with WRs that go astray in between. */
static void SD_09_reset_and_again(void **state)
{
	struct rig *rig = rig_make(&(struct rig_options){ .receives = 4, .retry_cnt = 1 });

	(void)state;
	for (int lap = 0; lap < 3; lap++) {
		rig_one(&rig->a, &rig->b, 1, IBV_WR_RDMA_WRITE_WITH_IMM, 8);
		rig_expect(rig->a.send_cq, 1, IBV_WC_SUCCESS);
		rig_expect(rig->b.recv_cq, 1000, IBV_WC_SUCCESS);
		rig_end_state(&rig->b, &rig->options, IBV_QPS_ERR);
		for (uint64_t i = 1; i < 4; i++)
			rig_expect_flushed(rig->b.recv_cq, 1000 + i);
		rig_one(&rig->a, &rig->b, 2, IBV_WR_RDMA_WRITE, 8);
		rig_clock += 2 * 8192;
		rig_expect(rig->a.send_cq, 2, IBV_WC_RETRY_EXC_ERR);
		for (uint64_t i = 0; i < 4; i++)
			rig_expect_flushed(rig->a.recv_cq, 1000 + i);
		rig_end_state(&rig->a, &rig->options, IBV_QPS_RESET);
		rig_end_state(&rig->b, &rig->options, IBV_QPS_RESET);
		rig_connect(rig);
	}
	rig_free(rig);
}

enum { READ = IBV_ACCESS_REMOTE_READ, WRITE = IBV_ACCESS_REMOTE_WRITE, LOCAL = IBV_ACCESS_LOCAL_WRITE };

struct violation {
	int access, qp_access; /* of the memory and of the QPs; 0: everything */
	enum ibv_wr_opcode opcode;
	int64_t shift; /* of the remote address */
	uint32_t rkey_flip, lkey_flip;
	enum ibv_wc_status status;
	enum ibv_event_type event;
};

static const struct violation violations[] = {
	{ LOCAL | READ, 0, IBV_WR_RDMA_WRITE, 0, 0, 0, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR },
	{ LOCAL | WRITE, 0, IBV_WR_RDMA_READ, 0, 0, 0, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR },
	{ LOCAL | WRITE, 0, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 0, 0, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR },
	{ 0, LOCAL | READ, IBV_WR_RDMA_WRITE, 0, 0, 0, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR },
	{ 0, LOCAL | WRITE, IBV_WR_RDMA_READ, 0, 0, 0, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR },
	{ 0, LOCAL | WRITE, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 0, 0, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR },
	{ 0, 0, IBV_WR_RDMA_WRITE, MEMORY - 7, 0, 0, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR },
	{ 0, 0, IBV_WR_RDMA_WRITE, -1, 0, 0, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR },
	{ 0, 0, IBV_WR_RDMA_WRITE_WITH_IMM, 1ll << 62, 0, 0, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR },
	{ 0, 0, IBV_WR_RDMA_WRITE, 0, 1 << 12, 0, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR },
	{ 0, 0, IBV_WR_RDMA_WRITE, 0, 1, 0, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR },
	{ 0, 0, IBV_WR_RDMA_WRITE, 0, 0, 1, IBV_WC_LOC_PROT_ERR, 0 },
	{ 0, 0, IBV_WR_SEND, 0, 0, 1, IBV_WC_LOC_PROT_ERR, 0 },
};

static enum ibv_wc_status status_of(const struct violation *v)
{
	if (v->qp_access && rig_quirk(QUIRK_ACCESS_IS_REQUEST))
		return IBV_WC_REM_INV_REQ_ERR;
	if (v->status == IBV_WC_LOC_PROT_ERR && rig_quirk(QUIRK_LKEY_IS_OPERATION))
		return IBV_WC_LOC_QP_OP_ERR;
	return v->status;
}

/* The status of the receive at the other end. */
static enum ibv_wc_status receive_status_of(const struct violation *v)
{
	return v->opcode == IBV_WR_RDMA_WRITE_WITH_IMM && rig_quirk(QUIRK_RECEIVE_IN_HAND) ?
	       v->status : IBV_WC_WR_FLUSH_ERR;
}

static void violate(const struct violation *v)
{
	struct rig *rig = rig_make(
		&(struct rig_options){ .receives = 2, .access = v->access, .qp_access = v->qp_access });
	struct ibv_sge sge;
	struct ibv_send_wr wr = rig_write(&rig->a, &rig->b, &sge, 1, v->opcode, 8), *bad;

	memset(rig->a.memory, 'x', 8);
	wr.wr.rdma.remote_addr += (uint64_t)v->shift;
	wr.wr.rdma.rkey ^= v->rkey_flip;
	if (v->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || v->opcode == IBV_WR_ATOMIC_CMP_AND_SWP)
		wr.wr.atomic.rkey = rig->b.mr->rkey;
	sge.lkey ^= v->lkey_flip;
	rig_one(&rig->a, &rig->b, 0, IBV_WR_SEND, 0);
	rig_expect(rig->a.send_cq, 0, IBV_WC_SUCCESS);
	assert_int_equal(rig_post(&rig->a, &wr, &bad), 0);
	rig_expect(rig->a.send_cq, 1, status_of(v));
	rig_expect_flushed(rig->a.recv_cq, 1000);
	assert_int_equal(rig_state(&rig->a), IBV_QPS_ERR);
	rig_expect(rig->b.recv_cq, 1000, IBV_WC_SUCCESS); /* what came before it */
	for (int i = 0; i < MEMORY; i++)
		assert_int_equal(rig->b.memory[i], 0);
	if (v->event) {
		rig_expect(rig->b.recv_cq, 1001, receive_status_of(v));
		if (rig_quirk(QUIRK_NO_QP_EVENTS))
			assert_false(rig_readable(rig->b.context->async_fd));
		else
			rig_expect_async(&rig->b, v->event);
		assert_int_equal(rig_state(&rig->b), IBV_QPS_ERR);
	} else {
		rig_expect_none(rig->b.recv_cq);
		assert_int_equal(rig_state(&rig->b), IBV_QPS_RTS);
	}
	rig_free(rig);
}

static void SD_10_violations_fail_both_ends(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(violations) / sizeof(violations[0]); i++)
		violate(&violations[i]);
}

static void SD_10_an_atomic_is_aligned(void **state)
{
	struct rig *rig = rig_make(&(struct rig_options){ .receives = 1 });
	struct ibv_sge sge;
	struct ibv_send_wr wr = rig_write(&rig->a, &rig->b, &sge, 1, IBV_WR_ATOMIC_CMP_AND_SWP, 8), *bad;

	(void)state;
	wr.wr.atomic.remote_addr = (uint64_t)(uintptr_t)rig->b.memory + 4;
	wr.wr.atomic.rkey = rig->b.mr->rkey;
	if (rig_quirk(QUIRK_ALIGNED_POSTS)) {
		assert_int_equal(rig_post(&rig->a, &wr, &bad), EINVAL);
		rig_free(rig);
		return;
	}
	assert_int_equal(rig_post(&rig->a, &wr, &bad), 0);
	rig_expect(rig->a.send_cq, 1, IBV_WC_REM_INV_REQ_ERR);
	rig_expect_flushed(rig->b.recv_cq, 1000);
	rig_expect_async(&rig->b, IBV_EVENT_QP_REQ_ERR);
	assert_int_equal(rig_state(&rig->b), IBV_QPS_ERR);
	rig_free(rig);
}

static void SD_10_deregistered_is_gone_at_once(void **state)
{
	struct rig *rig = rig_make(NULL);
	struct ibv_mr *mr;
	struct ibv_sge sge;
	struct ibv_send_wr wr, *bad;

	(void)state;
	mr = rig->b.verbs->register_mr(rig->b.pd, rig->b.memory, 64, LOCAL | WRITE | READ);
	wr = rig_write(&rig->a, &rig->b, &sge, 1, IBV_WR_RDMA_WRITE, 8);
	wr.wr.rdma.rkey = mr->rkey;
	assert_int_equal(rig_post(&rig->a, &wr, &bad), 0);
	rig_expect(rig->a.send_cq, 1, IBV_WC_SUCCESS);
	assert_int_equal(rig->b.verbs->deregister_mr(mr), 0);
	assert_int_equal(rig_post(&rig->a, &wr, &bad), 0);
	rig_expect(rig->a.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
	rig_free(rig);
}

/* More of them than a QP remembers, used by turns: each key reaches its own region, as long as it is one. */
static void SD_10_many_regions_by_turns(void **state)
{
	enum { REGIONS = 40, EACH = MEMORY / REGIONS & ~63 };
	struct rig *rig = rig_make(NULL);
	struct ibv_mr *mr[REGIONS];
	struct ibv_sge sge;
	struct ibv_send_wr wr = rig_write(&rig->a, &rig->b, &sge, 1, IBV_WR_RDMA_WRITE, 8), *bad;

	(void)state;
	for (int i = 0; i < REGIONS; i++) {
		mr[i] = rig->b.verbs->register_mr(rig->b.pd, rig->b.memory + i * EACH, EACH, LOCAL | WRITE);
		assert_non_null(mr[i]);
	}
	for (uint64_t n = 1; n <= 4 * REGIONS; n++) {
		struct ibv_mr *to = mr[n * 7 % REGIONS];

		memcpy(rig->a.memory, &n, 8);
		wr.wr.rdma.rkey = to->rkey;
		wr.wr.rdma.remote_addr = (uint64_t)(uintptr_t)to->addr;
		assert_int_equal(rig_post(&rig->a, &wr, &bad), 0);
		rig_expect(rig->a.send_cq, 1, IBV_WC_SUCCESS);
		assert_memory_equal(to->addr, &n, 8);
	}
	wr.wr.rdma.rkey = mr[1]->rkey;
	wr.wr.rdma.remote_addr = (uint64_t)(uintptr_t)mr[0]->addr;
	assert_int_equal(rig_post(&rig->a, &wr, &bad), 0);
	rig_expect(rig->a.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
	for (int i = 0; i < REGIONS; i++)
		assert_int_equal(rig->b.verbs->deregister_mr(mr[i]), 0);
	rig_free(rig);
}

static void SD_10_a_look_is_bounded_like_a_read(void **state)
{
	struct rig *rig = rig_make(NULL);
	struct ibv_mr *mr = rig->b.verbs->register_mr(rig->b.pd, rig->b.memory, 64, LOCAL | WRITE | READ);
	uint64_t address = (uint64_t)(uintptr_t)rig->b.memory;
	uint32_t rkey = mr->rkey;

	(void)state;
	assert_non_null(soft_qp_peek(rig->a.qp, address, rkey, 64));
	assert_null(soft_qp_peek(rig->a.qp, address, rkey, 65));
	assert_int_equal(rig->b.verbs->deregister_mr(mr), 0);
	assert_null(soft_qp_peek(rig->a.qp, address, rkey, 1));
	rig_free(rig);
}

static void SD_10_only_the_arena_is_reachable(void **state)
{
	struct rig *rig = rig_make(NULL);
	static char outside[64];
	struct ibv_sge sge;
	struct ibv_send_wr wr, *bad;
	struct ibv_mr *mr = rig->b.verbs->register_mr(rig->b.pd, outside, sizeof(outside), LOCAL | WRITE);

	(void)state;
	assert_non_null(mr);
	wr = rig_write(&rig->b, &rig->a, &sge, 1, IBV_WR_RDMA_WRITE, 8);
	sge = (struct ibv_sge){ (uint64_t)(uintptr_t)outside, 8, mr->lkey };
	assert_int_equal(rig_post(&rig->b, &wr, &bad), 0);
	rig_expect(rig->b.send_cq, 1, IBV_WC_SUCCESS);
	wr = rig_write(&rig->a, &rig->b, &sge, 1, IBV_WR_RDMA_WRITE, 8);
	wr.wr.rdma.remote_addr = (uint64_t)(uintptr_t)outside;
	wr.wr.rdma.rkey = mr->rkey;
	assert_int_equal(rig_post(&rig->a, &wr, &bad), 0);
	rig_expect(rig->a.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(rig->b.verbs->deregister_mr(mr), 0);
	rig_free(rig);
}

static void SD_10_inline_ignores_the_lkey(void **state)
{
	struct rig *rig = rig_make(NULL);
	struct ibv_sge sge;
	struct ibv_send_wr wr = rig_write(&rig->a, &rig->b, &sge, 1, IBV_WR_RDMA_WRITE, 3), *bad;

	(void)state;
	sge = (struct ibv_sge){ (uint64_t)(uintptr_t)"ok", 3, 0 };
	wr.send_flags |= IBV_SEND_INLINE;
	assert_int_equal(rig_post(&rig->a, &wr, &bad), 0);
	rig_expect(rig->a.send_cq, 1, IBV_WC_SUCCESS);
	assert_string_equal(rig->b.memory, "ok");
	rig_free(rig);
}

static void SD_10_send_longer_than_the_receive(void **state)
{
	struct rig *rig = rig_make(NULL);

	(void)state;
	rig_receive(&rig->b, 5, rig->b.memory, 4);
	rig_receive(&rig->b, 6, rig->b.memory, 4);
	rig_one(&rig->a, &rig->b, 1, IBV_WR_SEND, 5);
	rig_expect(rig->a.send_cq, 1,
		   rig_quirk(QUIRK_ANY_RECEIVE_ERROR) ? IBV_WC_REM_OP_ERR : IBV_WC_REM_INV_REQ_ERR);
	rig_expect(rig->b.recv_cq, 5,
		   rig_quirk(QUIRK_ANY_RECEIVE_ERROR) ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_LOC_LEN_ERR);
	rig_expect_flushed(rig->b.recv_cq, 6);
	assert_int_equal(rig_state(&rig->b), IBV_QPS_ERR);
	rig_free(rig);
}

static void SD_10_receive_with_a_bad_lkey(void **state)
{
	struct rig *rig = rig_make(NULL);
	struct ibv_sge sge = { (uint64_t)(uintptr_t)rig->b.memory, 64, rig->b.mr->lkey ^ 1 };
	struct ibv_recv_wr wr = { .wr_id = 5, .sg_list = &sge, .num_sge = 1 }, *bad;

	(void)state;
	assert_int_equal(ibv_post_recv(rig->b.qp, &wr, &bad), 0);
	rig_one(&rig->a, &rig->b, 1, IBV_WR_SEND, 5);
	rig_expect(rig->a.send_cq, 1, IBV_WC_REM_OP_ERR);
	rig_expect(rig->b.recv_cq, 5,
		   rig_quirk(QUIRK_ANY_RECEIVE_ERROR) ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_LOC_PROT_ERR);
	rig_free(rig);
}

RIG_TABLE(error, cmocka_unit_test(SD_06_waits_for_ever_for_a_receive),
	  cmocka_unit_test(SD_06_finite_retries_end_in_error), cmocka_unit_test(SD_09_peer_gone_times_out),
	  cmocka_unit_test(SD_09_peer_in_error_times_out), cmocka_unit_test(SD_09_seven_retries_end_too),
	  cmocka_unit_test(SD_09_timeout_zero_never_ends),
	  cmocka_unit_test(SD_09_arrivals_before_the_error_are_delivered),
	  cmocka_unit_test(SD_09_reset_starts_anew), cmocka_unit_test(SD_09_reset_forgets_completions),
	  cmocka_unit_test(SD_09_reset_and_again),
	  cmocka_unit_test(SD_10_violations_fail_both_ends),
	  cmocka_unit_test(SD_10_an_atomic_is_aligned), cmocka_unit_test(SD_10_deregistered_is_gone_at_once),
	  cmocka_unit_test(SD_10_many_regions_by_turns),
	  cmocka_unit_test(SD_10_a_look_is_bounded_like_a_read),
	  cmocka_unit_test(SD_10_only_the_arena_is_reachable),
	  cmocka_unit_test(SD_10_inline_ignores_the_lkey),
	  cmocka_unit_test(SD_10_send_longer_than_the_receive),
	  cmocka_unit_test(SD_10_receive_with_a_bad_lkey));
