/* SPDX-License-Identifier: MIT */
/* The cost model, to the nanosecond: rig_clock is all the time there is (SD-04, RB-27, XR-E5). */
#include <errno.h>
#include <sched.h>
#include "tests/soft/rig.h"

static struct soft_gauges gauges_of(struct rig *rig)
{
	struct soft_gauges gauges;

	soft_read_gauges(rig->a.context, &gauges);
	return gauges;
}

static void SD_04_without_a_model_a_post_executes(void **state)
{
	struct rig *rig = rig_modelled("");

	(void)state;
	rig->a.memory[0] = 'x';
	rig_post_chain(rig, 1, 1, 1);
	assert_int_equal(rig->b.memory[0], 'x');
	assert_int_equal(soft_qp_settled(rig->a.qp), 1);
	rig_expect(rig->a.send_cq, 1, IBV_WC_SUCCESS);
	assert_int_equal(gauges_of(rig).wr_max, 0);
	rig_free(rig);
}

static void SD_04_a_doorbell_is_paid_once_a_chain(void **state)
{
	struct rig *rig = rig_modelled("doorbell=1000");
	uint64_t start = rig_clock;

	(void)state;
	rig_post_chain(rig, 1, 3, 8);
	rig_post_chain(rig, 4, 1, 8);
	rig_expect_at(rig, start, 1000, 1);
	rig_expect(rig->a.send_cq, 2, IBV_WC_SUCCESS);
	rig_expect(rig->a.send_cq, 3, IBV_WC_SUCCESS);
	rig_expect_at(rig, start, 2000, 4);
	assert_int_equal(gauges_of(rig).busy_ns, 2000);
	rig_free(rig);
}

static void SD_04_every_wqe_takes_its_time(void **state)
{
	struct rig *rig = rig_modelled("wqe=10,doorbell=100");
	uint64_t start = rig_clock;

	(void)state;
	rig_post_chain(rig, 1, 3, 8);
	rig_expect_at(rig, start, 110, 1);
	rig_expect_at(rig, start, 120, 2);
	rig_expect_at(rig, start, 130, 3);
	/* An idle device owes nothing: the next one starts when it is posted. */
	start = rig_clock += 5000;
	rig_post_chain(rig, 4, 1, 8);
	rig_expect_at(rig, start, 110, 4);
	assert_int_equal(gauges_of(rig).busy_ns, 240);
	rig_free(rig);
}

static void SD_04_a_registration_takes_its_time(void **state)
{
	struct rig *rig = rig_modelled("mr=1000,page=10");
	uint64_t before = gauges_of(rig).mr_ns;
	struct ibv_mr *mr = rig->a.verbs->register_mr(rig->a.pd, rig->a.memory + 1, 4096, 0);

	(void)state;
	assert_non_null(mr);
	assert_int_equal(gauges_of(rig).mr_ns - before, 1020); /* two pages */
	rig->a.verbs->deregister_mr(mr);
	rig_free(rig);
}

static void SD_04_bytes_take_the_time_of_the_link(void **state)
{
	struct rig *rig = rig_modelled("gbit=56");
	uint64_t start = rig_clock;

	(void)state;
	rig_post_chain(rig, 1, 2, 56 * 1024);
	rig_expect_at(rig, start, 8 * 1024, 1);
	rig_expect_at(rig, start, 2 * 8 * 1024, 2);
	rig_free(rig);
}

static void SD_04_the_delay_is_no_work(void **state)
{
	struct rig *rig = rig_modelled("wqe=10,delay=700");
	uint64_t start = rig_clock;

	(void)state;
	rig_post_chain(rig, 1, 2, 8);
	rig->a.memory[0] = 'x'; /* what is not inline is read when it is due */
	rig_expect_at(rig, start, 710, 1);
	assert_int_equal(rig->b.memory[0], 'x');
	assert_int_equal(gauges_of(rig).wr, 1);
	rig_expect_at(rig, start, 720, 2);
	assert_int_equal(gauges_of(rig).busy_ns, 20);
	rig_free(rig);
}

static void RB_27_wrs_beyond_the_cache_pay_their_share(void **state)
{
	struct rig *rig = rig_modelled("wqe=10,cache=4,miss=400");
	/* 400 * 1/5, 2/6, 3/7 and 4/8 for the four that find the cache full */
	static const uint64_t due[] = { 10, 20, 30, 40, 130, 273, 454, 664 };
	uint64_t start = rig_clock;

	(void)state;
	rig_post_chain(rig, 1, 8, 8);
	assert_int_equal(gauges_of(rig).misses, 4);
	for (uint64_t i = 0; i < 8; i++)
		rig_expect_at(rig, start, due[i], i + 1);
	start = rig_clock;
	rig_post_chain(rig, 9, 4, 8);
	for (uint64_t i = 0; i < 4; i++)
		rig_expect_at(rig, start, 10 * (i + 1), i + 9);
	assert_int_equal(gauges_of(rig).misses, 4);
	assert_int_equal(gauges_of(rig).wr_max, 8);
	assert_int_equal(gauges_of(rig).busy_ns, 704);
	rig_free(rig);
}

/* WRs that are due but were not polled for are not outstanding when the next one is posted. */
static void RB_27_what_is_due_leaves_the_cache(void **state)
{
	struct rig *rig = rig_modelled("wqe=10,cache=1,miss=400");
	uint64_t start = rig_clock;

	(void)state;
	rig_post_chain(rig, 1, 1, 8);
	rig_clock += 10;
	rig_post_chain(rig, 2, 1, 8);
	assert_int_equal(gauges_of(rig).misses, 0);
	rig_expect(rig->a.send_cq, 1, IBV_WC_SUCCESS);
	rig_expect_at(rig, start, 20, 2);
	rig_free(rig);
}

/* Another QP of a's context that writes to b. */
static struct ibv_qp *second_qp(struct rig *rig)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .send_cq = rig->a.send_cq,
					 .recv_cq = rig->a.recv_cq, .cap = { 8, 8, 1, 1, 0 } };
	struct rig_end end = rig->a;

	end.qp = end.verbs->create_qp(end.pd, &init);
	assert_non_null(end.qp);
	rig_end_state(&end, &rig->options, IBV_QPS_INIT);
	rig_learn(&end, &rig->b);
	rig_end_state(&end, &rig->options, IBV_QPS_RTR);
	rig_end_state(&end, &rig->options, IBV_QPS_RTS);
	return end.qp;
}

static void RB_27_the_qps_of_a_device_share_it(void **state)
{
	struct rig *rig = rig_modelled("wqe=10,cache=1,miss=400");
	struct ibv_qp *first = rig->a.qp, *second = second_qp(rig);
	uint64_t start = rig_clock;

	(void)state;
	rig_post_chain(rig, 1, 1, 8);
	rig->a.qp = second;
	rig_post_chain(rig, 2, 1, 8); /* two outstanding, room for one: half a miss, and it waits its turn */
	rig->a.qp = first;
	rig_expect_at(rig, start, 10, 1);
	rig_expect_at(rig, start, 220, 2);
	assert_int_equal(rig->a.verbs->destroy_qp(second), 0);
	rig_free(rig);
}

static void XR_E5_bytes_beyond_the_queue_pause_the_sender(void **state)
{
	struct rig *rig = rig_modelled("wqe=10,queue=4K,pause=1000");
	uint64_t start = rig_clock;

	(void)state;
	rig_post_chain(rig, 1, 2, 2048);
	rig_post_chain(rig, 3, 1, 1);
	rig_expect_at(rig, start, 10, 1);
	rig_expect_at(rig, start, 20, 2);
	assert_int_equal(gauges_of(rig).bytes, 1);
	rig_expect_at(rig, start, 1030, 3);
	assert_int_equal(gauges_of(rig).bytes_max, 4097);
	assert_int_equal(gauges_of(rig).pauses, 1);
	assert_int_equal(gauges_of(rig).bytes, 0);
	rig_free(rig);
}

static void SD_03_the_arrival_is_not_early(void **state)
{
	struct rig *rig = rig_modelled("delay=50");
	struct ibv_sge sge;
	struct ibv_send_wr wr = rig_write(&rig->a, &rig->b, &sge, 7, IBV_WR_RDMA_WRITE_WITH_IMM, 1), *bad;

	(void)state;
	wr.send_flags |= IBV_SEND_INLINE;
	rig->a.memory[0] = 'x';
	assert_int_equal(ibv_post_send(rig->a.qp, &wr, &bad), 0);
	rig->a.memory[0] = 'y'; /* inline: taken when it was posted */
	assert_int_equal(soft_qp_settled(rig->a.qp), 0);
	rig_clock += 49;
	rig_expect_none(rig->a.send_cq);
	rig_expect_none(rig->b.recv_cq);
	assert_int_equal(rig->b.memory[0], 0);
	rig_clock++;
	rig_expect(rig->a.send_cq, 7, IBV_WC_SUCCESS);
	assert_int_equal(rig_expect(rig->b.recv_cq, 1000, IBV_WC_SUCCESS).imm_data, 7);
	assert_int_equal(rig->b.memory[0], 'x');
	assert_int_equal(soft_qp_settled(rig->a.qp), 1);
	rig_free(rig);
}

static void SD_04_counters_do_not_wait_for_the_device(void **state)
{
	struct rig *rig = rig_modelled("delay=1000");
	const struct soft_counters *counters = soft_qp_counters(rig->a.qp);
	struct soft_trace ring[4];

	(void)state;
	soft_qp_trace(rig->a.qp, ring, 4);
	rig_post_chain(rig, 1, 3, 10);
	assert_int_equal(counters->doorbells, 1);
	assert_int_equal(counters->wr, 3);
	assert_int_equal(counters->wr_bytes, 30);
	assert_int_equal(counters->signaled, 3);
	for (uint64_t i = 0; i < 3; i++) {
		assert_int_equal(ring[i].wr_id, i + 1);
		assert_int_equal(ring[i].time, rig_clock);
	}
	rig_free(rig); /* destroyed with all three on their way */
}

static void SD_05_what_post_send_refuses_costs_nothing(void **state)
{
	struct rig *rig = rig_modelled("doorbell=100");
	struct ibv_sge sge;
	struct ibv_send_wr wr = rig_write(&rig->a, &rig->b, &sge, 1, IBV_WR_RDMA_WRITE, 8), *bad;

	(void)state;
	soft_qp_fail_post(rig->a.qp, 1);
	assert_int_equal(ibv_post_send(rig->a.qp, &wr, &bad), ENOMEM);
	assert_int_equal(gauges_of(rig).busy_ns, 0);
	assert_int_equal(gauges_of(rig).wr, 0);
	rig_free(rig);
}

static void SD_06_rnr_is_met_when_due(void **state)
{
	struct rig *rig = rig_make(&(struct rig_options){ .model = "delay=100", .rnr_retry = 7 });
	const struct soft_counters *counters = soft_qp_counters(rig->a.qp);
	struct ibv_sge sge;
	struct ibv_send_wr wr = rig_write(&rig->a, &rig->b, &sge, 1, IBV_WR_RDMA_WRITE_WITH_IMM, 8), *bad;

	(void)state;
	assert_int_equal(ibv_post_send(rig->a.qp, &wr, &bad), 0);
	rig_expect_none(rig->a.send_cq);
	assert_int_equal(counters->rnr, 0);
	rig_clock += 100;
	rig_expect_none(rig->a.send_cq);
	assert_int_equal(counters->rnr, 1);
	assert_int_equal(gauges_of(rig).wr, 1); /* it is still the device's */
	rig_receives(&rig->b, 1);
	rig_expect(rig->a.send_cq, 1, IBV_WC_SUCCESS);
	assert_int_equal(gauges_of(rig).wr, 0);
	rig_free(rig);
}

static void SD_09_the_pipeline_is_flushed_in_order(void **state)
{
	struct rig *rig = rig_modelled("delay=1000");

	(void)state;
	rig_post_chain(rig, 1, 3, 10);
	soft_qp_fault(rig->a.qp, SOFT_FAULT_KILL);
	for (uint64_t i = 1; i <= 3; i++)
		rig_expect_flushed(rig->a.send_cq, i);
	rig_post_chain(rig, 4, 1, 10);
	rig_expect_flushed(rig->a.send_cq, 4);
	assert_int_equal(gauges_of(rig).wr, 0);
	assert_int_equal(gauges_of(rig).bytes, 0);
	assert_int_equal(rig->b.memory[0], 0);
	rig_free(rig);
}

static void SD_09_a_reset_empties_the_pipeline(void **state)
{
	struct rig *rig = rig_modelled("delay=1000");

	(void)state;
	rig_post_chain(rig, 1, 3, 10);
	rig_end_state(&rig->a, &rig->options, IBV_QPS_RESET);
	assert_int_equal(gauges_of(rig).wr, 0);
	assert_int_equal(gauges_of(rig).bytes, 0);
	rig_clock += 1000;
	rig_expect_none(rig->a.send_cq);
	rig_free(rig);
}

static void SD_10_a_violation_fails_when_due(void **state)
{
	struct rig *rig = rig_modelled("delay=1000");
	struct ibv_sge sge;
	struct ibv_send_wr wr = rig_write(&rig->a, &rig->b, &sge, 1, IBV_WR_RDMA_WRITE, 8), *bad;

	(void)state;
	wr.wr.rdma.rkey ^= 1u << 31;
	assert_int_equal(ibv_post_send(rig->a.qp, &wr, &bad), 0);
	rig_post_chain(rig, 2, 1, 8);
	rig_clock += 999;
	rig_expect_none(rig->a.send_cq);
	rig_clock++;
	rig_expect(rig->a.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
	rig_expect_flushed(rig->a.send_cq, 2);
	assert_int_equal(gauges_of(rig).wr, 0);
	rig_free(rig);
}

static void note(void *arg)
{
	__atomic_store_n((int *)arg, 1, __ATOMIC_RELEASE);
}

/* Nobody polls, and nobody is armed: the thread keeps the time, and says when there is nothing left. */
static void SD_14_the_thread_keeps_the_times(void **state)
{
	int told = 0;
	struct rig *rig = rig_make(&(struct rig_options){
		.model = "doorbell=1000,delay=200000", .real_time = 1, .settled = note, .settled_arg = &told });

	(void)state;
	for (uint64_t i = 1; i <= 50; i++) {
		char *last = &rig->b.memory[0];

		rig->a.memory[0] = (char)i;
		rig_post_chain(rig, i, 1, 1);
		if (soft_qp_settled(rig->a.qp))
			continue;
		while (!__atomic_load_n(&told, __ATOMIC_ACQUIRE))
			sched_yield();
		told = 0;
		assert_int_equal(__atomic_load_n(last, __ATOMIC_RELAXED), (char)i);
	}
	for (uint64_t i = 1; i <= 50; i++)
		rig_expect(rig->a.send_cq, i, IBV_WC_SUCCESS);
	assert_int_equal(gauges_of(rig).wr, 0);
	rig_free(rig);
}

static void parse(const char *text, struct soft_model *model)
{
	assert_int_equal(soft_model_parse(text, model), 0);
}

static void SD_04_models_are_read(void **state)
{
	struct soft_model model, preset;

	(void)state;
	parse("", &model);
	assert_int_equal(model.on, 0);
	parse("sink=100,sinkfile=/tmp/a=b,qp=1", &model);
	assert_int_equal(model.sink, 100);
	assert_int_equal(model.qp, 1);
	assert_string_equal(model.sinkfile, "/tmp/a=b");
	parse("connectx3", &preset);
	assert_int_equal(preset.on, 1);
	assert_string_equal(preset.sinkfile, "");
	assert_int_equal(preset.gbit, 56);
	parse("connectx3,cache=7,miss=0", &model);
	assert_int_equal(model.cache, 7);
	assert_int_equal(model.miss, 0);
	assert_int_equal(model.wqe, preset.wqe);
	parse("queue=2M,pause=1000000000,queue=3K", &model);
	assert_int_equal(model.on, 1);
	assert_int_equal(model.queue, 3 << 10);
	assert_int_equal(model.pause, 1000000000);
	assert_int_equal(model.doorbell, 0);
}

static void SD_04_what_is_no_model_is_refused(void **state)
{
	static const char *const bad[] = {
		",",
		"connectx",
		"connectx33",
		"connectx3,",
		",connectx3",
		"wqe",
		"wqe=",
		"=1",
		"wqe=1,",
		"wqe=1,,miss=1",
		"wqe=-1",
		"wqe=+1",
		"wqe= 1",
		" wqe=1",
		"wqe=1 ",
		"wqe=0x1",
		"wqe=1.5",
		"WQE=1",
		"wqe=1000000001",
		"wqe=18446744073709551617",
		"wqe=99999999999999999999999",
		"wqe=1K",
		"queue=K",
		"queue=1T",
		"queue=1KK",
		"queue=65G",
		"queue=99999999999999999G",
		"wqe=1,connectx3",
		"wqe=1;miss=2",
		"on=1",
		"connectx3=1",
		"wqe==1",
		"wqe=1\n",
		"sinkfile=",
		"sinkfile=here",
		"sinkfile=/a,b",
		"sinkfile",
		"sink=/a",
	};
	struct soft_model model, before;

	(void)state;
	memset(&before, 0x5a, sizeof(before));
	model = before;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (soft_model_parse(bad[i], &model) != -EINVAL)
			fail_msg("'%s' was taken", bad[i]);
		assert_memory_equal(&model, &before, sizeof(model));
	}
}

RIG_TABLE(model, cmocka_unit_test(SD_04_without_a_model_a_post_executes),
	  cmocka_unit_test(SD_04_a_doorbell_is_paid_once_a_chain),
	  cmocka_unit_test(SD_04_every_wqe_takes_its_time),
	  cmocka_unit_test(SD_04_a_registration_takes_its_time),
	  cmocka_unit_test(SD_04_bytes_take_the_time_of_the_link),
	  cmocka_unit_test(SD_04_the_delay_is_no_work),
	  cmocka_unit_test(RB_27_wrs_beyond_the_cache_pay_their_share),
	  cmocka_unit_test(RB_27_what_is_due_leaves_the_cache),
	  cmocka_unit_test(RB_27_the_qps_of_a_device_share_it),
	  cmocka_unit_test(XR_E5_bytes_beyond_the_queue_pause_the_sender),
	  cmocka_unit_test(SD_03_the_arrival_is_not_early),
	  cmocka_unit_test(SD_04_counters_do_not_wait_for_the_device),
	  cmocka_unit_test(SD_05_what_post_send_refuses_costs_nothing),
	  cmocka_unit_test(SD_06_rnr_is_met_when_due),
	  cmocka_unit_test(SD_09_the_pipeline_is_flushed_in_order),
	  cmocka_unit_test(SD_09_a_reset_empties_the_pipeline),
	  cmocka_unit_test(SD_10_a_violation_fails_when_due),
	  cmocka_unit_test(SD_14_the_thread_keeps_the_times), cmocka_unit_test(SD_04_models_are_read),
	  cmocka_unit_test(SD_04_what_is_no_model_is_refused));
