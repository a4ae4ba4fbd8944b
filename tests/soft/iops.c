/* SPDX-License-Identifier: MIT */
#include "tests/soft/iops.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/base/config.h"
#include "core/device/soft/soft.h"
#include "core/lane/window.h"

#define must(condition)                                                                   \
	do {                                                                              \
		if (!(condition)) {                                                       \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);   \
			exit(99);                                                         \
		}                                                                         \
	} while (0)

enum { SLOTS = IOPS_DEPTH * IOPS_QPS, BATCH = 32 };

struct end {
	const struct shunt_verbs *verbs;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp[IOPS_QPS];
	uint32_t peer[IOPS_QPS];
	char *memory;
};

struct thread {
	uint64_t ready; /* to post its next write */
	uint32_t outstanding;
};

struct write {
	uint64_t posted, due;
	uint64_t number; /* of its QP's */
	uint32_t thread;
	bool done;
};

/* The sending side of a QP: what a lane of the engine has before it. */
struct lane {
	struct shunt_window window;
	uint64_t sent;
	uint32_t outstanding;
};

struct run {
	struct iops_load load;
	struct soft_attr attr;
	struct end a, b;
	struct thread threads[IOPS_THREADS];
	struct write writes[SLOTS]; /* number n is in slot n % SLOTS */
	struct lane lanes[IOPS_QPS];
	_Atomic uint64_t inflight; /* in all windows */
	uint64_t posted, oldest, completed;
	uint64_t waited; /* of all that completed */
};

static uint64_t clock_ns;

static uint64_t read_clock(void)
{
	return clock_ns;
}

/* --- two ends --- */

static void end_make(struct end *end, const struct run *run)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { IOPS_DEPTH, 1, 1, 1, 0 } };
	size_t room;

	end->context = soft_open(&run->attr, &end->verbs);
	must(end->context);
	end->pd = end->verbs->alloc_pd(end->context);
	end->cq = end->verbs->create_cq(end->context, SLOTS, NULL, NULL, 0);
	must(end->pd && end->cq);
	end->memory = soft_arena(end->pd, &room);
	must(room >= IOPS_BYTES);
	end->mr = end->verbs->register_mr(end->pd, end->memory, IOPS_BYTES,
					  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	must(end->mr);
	init.send_cq = init.recv_cq = end->cq;
	for (uint32_t i = 0; i < run->load.qps; i++) {
		end->qp[i] = end->verbs->create_qp(end->pd, &init);
		must(end->qp[i]);
	}
}

static void end_free(struct end *end, const struct run *run)
{
	for (uint32_t i = 0; i < run->load.qps; i++)
		must(!end->verbs->destroy_qp(end->qp[i]));
	must(!end->verbs->deregister_mr(end->mr));
	must(!end->verbs->destroy_cq(end->cq));
	must(!end->verbs->dealloc_pd(end->pd));
	soft_close(end->context);
}

static void state_set(struct end *end, uint32_t i, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
				    .dest_qp_num = end->peer[i], .timeout = 14, .retry_cnt = 7,
				    .rnr_retry = 7 };
	int mask = state == IBV_QPS_INIT ? SHUNT_TO_INIT : state == IBV_QPS_RTR ? SHUNT_TO_RTR : SHUNT_TO_RTS;

	must(!end->verbs->modify_qp(end->qp[i], &attr, mask));
}

static void learn(struct end *end, struct end *peer, uint32_t i)
{
	struct soft_address address;
	int fds[2];

	must(!soft_qp_export(peer->qp[i], &address, fds));
	must(!soft_qp_import(end->qp[i], &address, fds));
	end->peer[i] = address.qp_num;
}

static void connect_ends(struct run *run)
{
	for (uint32_t i = 0; i < run->load.qps; i++) {
		state_set(&run->a, i, IBV_QPS_INIT);
		state_set(&run->b, i, IBV_QPS_INIT);
		learn(&run->a, &run->b, i);
		learn(&run->b, &run->a, i);
		state_set(&run->a, i, IBV_QPS_RTR);
		state_set(&run->b, i, IBV_QPS_RTR);
		state_set(&run->a, i, IBV_QPS_RTS);
		state_set(&run->b, i, IBV_QPS_RTS);
	}
}

/* --- what happens --- */

/* --- the engine's windows --- */

static void windows_make(struct run *run)
{
	const struct iops_load *load = &run->load;
	struct shunt_config config = { .window_device = load->window,
				       .window_bytes = load->adapts ? load->adapts : 0,
				       .admit = load->adapts ? 1 : 0, /* aimd or static: in the order of `admit`'s words */
				       .frag_bytes = 64 << 10 };

	for (uint32_t i = 0; i < load->qps; i++)
		must(!shunt_window_init(&run->lanes[i].window, &config, IOPS_DEPTH,
					&run->inflight));
}

static void windows_free(struct run *run, struct iops_result *result)
{
	for (uint32_t i = 0; i < run->load.qps; i++) {
		struct shunt_window *window = &run->lanes[i].window;

		if (window->bytes != UINT64_MAX)
			result->window += window->bytes;
		result->cuts += window->cuts;
		shunt_window_fini(window);
	}
}

static struct lane *lane_of(struct run *run, const struct thread *thread)
{
	return &run->lanes[(thread - run->threads) % run->load.qps];
}

static bool admitted(struct run *run, const struct thread *thread)
{
	struct lane *lane = lane_of(run, thread);

	return shunt_window_admit(&lane->window, lane->outstanding, 0, run->load.bytes) ==
	       SHUNT_LIMIT_NONE;
}

/*
 * Of those whose window has room, the thread that has waited longest: its write is admitted. NULL: nobody may post before
 * something completes.
 */
static struct thread *next_thread(struct run *run)
{
	bool refused[IOPS_THREADS] = { false };
	struct thread *next;

	if (run->posted == run->load.writes)
		return NULL;
	for (;;) {
		next = NULL;
		for (uint32_t i = 0; i < run->load.threads; i++) {
			struct thread *thread = &run->threads[i];

			if (!refused[i] && thread->outstanding < run->load.depth &&
			    (!next || thread->ready < next->ready))
				next = thread;
		}
		if (!next || admitted(run, next))
			return next;
		refused[next - run->threads] = true;
	}
}

static uint64_t due_now(const struct run *run)
{
	struct soft_gauges gauges;

	soft_read_gauges(run->a.context, &gauges);
	return gauges.due;
}

static void post(struct run *run, struct thread *thread)
{
	uint32_t number = (uint32_t)(thread - run->threads);
	struct lane *lane = lane_of(run, thread);
	uint64_t upto = atomic_load(&lane->window.posted) + run->load.bytes;
	struct ibv_sge sge = { (uint64_t)(uintptr_t)run->a.memory, run->load.bytes, run->a.mr->lkey };
	struct ibv_send_wr wr = { .wr_id = run->posted, .sg_list = &sge, .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED }, *bad;

	if (clock_ns < thread->ready)
		clock_ns = thread->ready;
	wr.wr.rdma.remote_addr = (uint64_t)(uintptr_t)run->b.memory;
	wr.wr.rdma.rkey = run->b.mr->rkey;
	shunt_window_mark(&lane->window, ++lane->sent, upto, clock_ns);
	atomic_store(&lane->window.posted, upto);
	must(!ibv_post_send(run->a.qp[number % run->load.qps], &wr, &bad));
	run->writes[run->posted++ % SLOTS] = (struct write) { clock_ns, due_now(run), lane->sent,
							      number, false };
	lane->outstanding++;
	thread->outstanding++;
	thread->ready = clock_ns + run->load.think;
}

static void completed(struct run *run, const struct ibv_wc *wc)
{
	struct write *write = &run->writes[wc->wr_id % SLOTS];
	struct lane *lane = lane_of(run, &run->threads[write->thread]);

	must(wc->status == IBV_WC_SUCCESS && !write->done && write->due == clock_ns);
	write->done = true;
	run->waited += clock_ns - write->posted;
	run->threads[write->thread].outstanding--;
	lane->outstanding--;
	shunt_window_completed(&lane->window, write->number, clock_ns);
	run->completed++;
}

/* When the next write is due: of several QPs, not always the oldest. UINT64_MAX: none is outstanding. */
static uint64_t next_due(const struct run *run)
{
	uint64_t due = UINT64_MAX;

	for (uint64_t n = run->oldest; n < run->posted; n++) {
		const struct write *write = &run->writes[n % SLOTS];

		if (!write->done && write->due < due)
			due = write->due;
	}
	return due;
}

/* To the time when the next write is due, and no further. */
static void poll(struct run *run, uint64_t due)
{
	struct ibv_wc wc[BATCH];
	int got;

	clock_ns = due;
	while ((got = ibv_poll_cq(run->a.cq, BATCH, wc)) > 0)
		for (int i = 0; i < got; i++)
			completed(run, &wc[i]);
	while (run->oldest < run->posted && run->writes[run->oldest % SLOTS].done)
		run->oldest++;
}

static void step(struct run *run)
{
	struct thread *thread = next_thread(run);
	uint64_t due = next_due(run);

	must(thread || due != UINT64_MAX);
	if (thread && thread->ready < due) {
		post(run, thread);
		return;
	}
	if (thread) /* it is not ready yet */
		shunt_window_return(&lane_of(run, thread)->window, run->load.bytes);
	poll(run, due);
}

static void load_check(const struct iops_load *load)
{
	must(load->threads && load->threads <= IOPS_THREADS);
	must(load->qps && load->qps <= IOPS_QPS);
	must(load->depth && (uint64_t)load->depth * load->threads <= IOPS_DEPTH);
	must(load->bytes && load->bytes <= IOPS_BYTES);
	must(load->writes);
}

struct iops_result iops_run(const struct iops_load *load)
{
	struct run *run = calloc(1, sizeof(*run));
	struct soft_gauges gauges;
	struct iops_result result;
	uint64_t start;

	must(run);
	load_check(load);
	run->load = *load;
	run->attr = (struct soft_attr){ .now = read_clock, .arena_bytes = 16 << 20 };
	must(!soft_model_parse(load->model, &run->attr.model) && run->attr.model.on);
	end_make(&run->a, run);
	end_make(&run->b, run);
	connect_ends(run);
	windows_make(run);
	start = clock_ns += 1;
	for (uint32_t i = 0; i < load->threads; i++) /* not all in step */
		run->threads[i].ready = start + i * load->think / load->threads;
	while (run->completed < load->writes)
		step(run);
	soft_read_gauges(run->a.context, &gauges);
	result = (struct iops_result){
		.per_second = load->writes * 1000000000 / (clock_ns - start),
		.wr_max = gauges.wr_max, .bytes_max = gauges.bytes_max,
		.mean_ns = run->waited / load->writes, .misses = gauges.misses, .pauses = gauges.pauses,
	};
	windows_free(run, &result);
	end_free(&run->a, run);
	end_free(&run->b, run);
	free(run);
	return result;
}
