/* SPDX-License-Identifier: MIT */
/* Engine mode (SD-14), and many threads on one QP and one CQ; run under ThreadSanitizer too. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include "tests/soft/rig.h"

enum { THREADS = 3, PER_THREAD = 4000, TOTAL = THREADS * PER_THREAD };

static void SD_14_the_engine_executes_in_order(void **state)
{
	struct rig *rig = rig_make(
		&(struct rig_options){ .engine_thread = 1, .receives = 64, .separate_cqs = 1, .rnr_retry = 7 });

	(void)state;
	rig_laps(rig, 500, rig_await);
	rig_free(rig);
}

static void SD_14_the_engine_retries_by_itself(void **state)
{
	struct rig *rig = rig_make(&(struct rig_options){ .engine_thread = 1, .rnr_retry = 7 });

	(void)state;
	rig_one(&rig->a, &rig->b, 1, IBV_WR_RDMA_WRITE_WITH_IMM, 8);
	while (!__atomic_load_n(&soft_qp_counters(rig->a.qp)->rnr, __ATOMIC_RELAXED))
		sched_yield();
	rig_expect_none(rig->a.send_cq);
	rig_receives(&rig->b, 1);
	rig_await(rig->b.recv_cq, 1000, IBV_WC_SUCCESS); /* though nobody polls a */
	rig_await(rig->a.send_cq, 1, IBV_WC_SUCCESS);
	rig_free(rig);
}

struct crew {
	struct rig *rig;
	uint32_t received, sent; /* atomics */
	uint32_t failed;
	uint8_t seen[TOTAL];
};

static void crew_take(struct crew *crew, const struct ibv_wc *wc)
{
	struct ibv_recv_wr wr = { .wr_id = wc->wr_id }, *bad;

	if (wc->status != IBV_WC_SUCCESS)
		__atomic_store_n(&crew->failed, 1, __ATOMIC_RELAXED);
	if (!(wc->opcode & IBV_WC_RECV)) {
		__atomic_fetch_add(&crew->sent, 1, __ATOMIC_RELAXED);
		return;
	}
	if (wc->imm_data >= TOTAL || __atomic_fetch_add(&crew->seen[wc->imm_data], 1, __ATOMIC_RELAXED) ||
	    ibv_post_recv(crew->rig->b.qp, &wr, &bad))
		__atomic_store_n(&crew->failed, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&crew->received, 1, __ATOMIC_RELAXED);
}

static int crew_poll(struct crew *crew, struct ibv_cq *cq)
{
	struct ibv_wc wc[4];
	int got = ibv_poll_cq(cq, 4, wc);

	for (int i = 0; i < got; i++)
		crew_take(crew, &wc[i]);
	return got;
}

struct sailor {
	struct crew *crew;
	uint32_t number;
};

/* Posts when there is room, polls its own side otherwise: SQ slots come back through any thread. */
static void *post_many(void *arg)
{
	struct sailor *sailor = arg;
	struct rig *rig = sailor->crew->rig;
	struct ibv_sge sge;
	struct ibv_send_wr wr, *bad;

	for (uint32_t i = 0; i < PER_THREAD; i++) {
		wr = rig_write(&rig->a, &rig->b, &sge, i, IBV_WR_RDMA_WRITE_WITH_IMM, 8);
		wr.imm_data = sailor->number * PER_THREAD + i;
		while (ibv_post_send(rig->a.qp, &wr, &bad))
			if (!crew_poll(sailor->crew, rig->a.send_cq))
				sched_yield();
	}
	return NULL;
}

static void *poll_many(void *arg)
{
	struct sailor *sailor = arg;
	struct crew *crew = sailor->crew;

	while (__atomic_load_n(&crew->received, __ATOMIC_RELAXED) < TOTAL &&
	       !__atomic_load_n(&crew->failed, __ATOMIC_RELAXED))
		if (!(crew_poll(crew, crew->rig->b.recv_cq) + crew_poll(crew, crew->rig->a.send_cq)))
			sched_yield();
	return NULL;
}

static void sail(int engine_thread)
{
	struct crew *crew = calloc(1, sizeof(*crew));
	struct sailor sailors[2 * THREADS];
	pthread_t threads[2 * THREADS];

	crew->rig = rig_make(&(struct rig_options){
		.receives = 64, .rnr_retry = 7, .min_rnr_timer = 1, .engine_thread = engine_thread,
		.real_time = 1 });
	for (uint32_t i = 0; i < 2 * THREADS; i++) {
		sailors[i] = (struct sailor){ crew, i % THREADS };
		assert_int_equal(pthread_create(&threads[i], NULL, i < THREADS ? post_many : poll_many,
						&sailors[i]), 0);
	}
	for (int i = 0; i < 2 * THREADS; i++)
		pthread_join(threads[i], NULL);
	while (crew_poll(crew, crew->rig->a.send_cq) || (rig_device->real && crew->sent < TOTAL))
		;
	assert_int_equal(crew->failed, 0);
	assert_int_equal(crew->received, TOTAL);
	if (!engine_thread && !*rig_model)
		assert_int_equal(crew->sent, TOTAL);
	for (int i = 0; i < TOTAL; i++)
		assert_int_equal(crew->seen[i], 1);
	rig_free(crew->rig);
	free(crew);
}

static void SD_14_many_threads_inline(void **state)
{
	(void)state;
	sail(0);
}

static void SD_14_many_threads_with_the_engine(void **state)
{
	(void)state;
	sail(1);
}

/* QPs come and go on CQs that another thread polls and arms. */
static void *poll_until_told(void *arg)
{
	struct sailor *sailor = arg;
	struct rig *rig = sailor->crew->rig;
	struct ibv_wc wc;

	while (!__atomic_load_n(&sailor->crew->failed, __ATOMIC_RELAXED)) {
		ibv_poll_cq(rig->a.recv_cq, 1, &wc);
		ibv_req_notify_cq(rig->a.recv_cq, 0);
		sched_yield();
	}
	return NULL;
}

static void SD_14_qps_come_and_go_under_a_poller(void **state)
{
	struct crew *crew = calloc(1, sizeof(*crew));
	struct sailor sailor = { crew, 0 };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 8, 8, 1, 1, 0 } };
	pthread_t thread;

	(void)state;
	crew->rig = rig_make(NULL);
	init.send_cq = init.recv_cq = crew->rig->a.recv_cq;
	assert_int_equal(pthread_create(&thread, NULL, poll_until_told, &sailor), 0);
	for (int i = 0; i < 300; i++) {
		struct rig_end end = crew->rig->a;

		end.qp = end.verbs->create_qp(end.pd, &init);
		assert_non_null(end.qp);
		rig_end_state(&end, &crew->rig->options, IBV_QPS_INIT);
		rig_learn(&end, &crew->rig->b);
		rig_end_state(&end, &crew->rig->options, IBV_QPS_RTR);
		if (i % 3 == 0)
			rig_end_state(&end, &crew->rig->options, IBV_QPS_RESET);
		assert_int_equal(end.verbs->destroy_qp(end.qp), 0);
	}
	__atomic_store_n(&crew->failed, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	rig_free(crew->rig);
	free(crew);
}

RIG_TABLE(thread, cmocka_unit_test(SD_14_the_engine_executes_in_order),
	  cmocka_unit_test(SD_14_the_engine_retries_by_itself), cmocka_unit_test(SD_14_many_threads_inline),
	  cmocka_unit_test(SD_14_many_threads_with_the_engine),
	  cmocka_unit_test(SD_14_qps_come_and_go_under_a_poller));
