/* SPDX-License-Identifier: MIT */
#include "tests/soft/rig.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* On a real device: so long nothing must come; so long something may take to come. */
enum { QUIET_MS = 300 };

uint64_t rig_clock = 1;
const char *rig_model = "";

static uint64_t rig_now(void)
{
	return __atomic_load_n(&rig_clock, __ATOMIC_RELAXED);
}

const struct rig_device *rig_device = &rig_soft;

enum { EVERYTHING = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		    IBV_ACCESS_REMOTE_ATOMIC };

static struct rig_options options_fill(const struct rig_options *asked)
{
	struct rig_options options = asked ? *asked : (struct rig_options){ 0 };

	if (!options.send_wr)
		options.send_wr = 64;
	if (!options.recv_wr)
		options.recv_wr = 64;
	if (!options.cqe)
		options.cqe = 256;
	if (!options.access)
		options.access = EVERYTHING;
	if (!options.qp_access)
		options.qp_access = EVERYTHING;
	if (rig_device->real)
		options.separate_cqs = 1;
	if (!options.timeout)
		options.timeout = 1;
	return options;
}

/* The soft device's are. */
static void set_nonblocking(int fd)
{
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

void rig_end_make(struct rig_end *end, const struct rig_options *options)
{
	struct soft_attr attr = { .now = rig_now, .arena_bytes = 64 << 20,
				  .engine_thread = options->engine_thread,
				  .settled = options->settled, .settled_arg = options->settled_arg };
	const char *model = options->model ? options->model : rig_model;
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .sq_sig_all = options->sq_sig_all,
					 .cap = { options->send_wr, options->recv_wr,
						  options->send_sge ? options->send_sge : 4, 1, 64 } };

	struct ibv_qp_attr qp_attr;

	assert_int_equal(soft_model_parse(model, &attr.model), 0);
	if (attr.model.on && (options->engine_thread || options->real_time)) {
		attr.engine_thread = 1;
		attr.now = NULL;
	}
	end->delay = attr.model.delay;
	end->context = rig_device->open(&attr, &end->verbs);
	assert_non_null(end->context);
	end->channel = end->verbs->create_comp_channel(end->context);
	assert_non_null(end->channel);
	set_nonblocking(end->channel->fd);
	set_nonblocking(end->context->async_fd);
	end->recv_cq = end->verbs->create_cq(end->context, (int)options->cqe, end, end->channel, 0);
	assert_non_null(end->recv_cq);
	end->send_cq = end->recv_cq;
	if (options->separate_cqs)
		end->send_cq =
			end->verbs->create_cq(end->context, (int)options->cqe, end, end->channel, 0);
	end->pd = end->verbs->alloc_pd(end->context);
	assert_non_null(end->pd);
	end->memory = rig_device->memory(end->pd, MEMORY);
	end->mr = end->verbs->register_mr(end->pd, end->memory, MEMORY, options->access);
	assert_non_null(end->mr);
	init.send_cq = end->send_cq;
	init.recv_cq = end->recv_cq;
	end->qp = end->verbs->create_qp(end->pd, &init);
	assert_non_null(end->qp);
	assert_int_equal(end->verbs->query_qp(end->qp, &qp_attr, IBV_QP_CAP, &init), 0);
	end->cap = init.cap;
}

void rig_end_free(struct rig_end *end)
{
	assert_int_equal(end->verbs->destroy_qp(end->qp), 0);
	assert_int_equal(end->verbs->deregister_mr(end->mr), 0);
	if (end->send_cq != end->recv_cq)
		assert_int_equal(end->verbs->destroy_cq(end->send_cq), 0);
	assert_int_equal(end->verbs->destroy_cq(end->recv_cq), 0);
	assert_int_equal(end->verbs->dealloc_pd(end->pd), 0);
	rig_device->release(end->memory);
	assert_int_equal(end->verbs->destroy_comp_channel(end->channel), 0);
	rig_device->close(end->context);
}

/*
 * How long to try: what a test asks for is in virtual time. In real time a packet and its answer
 * take up to milliseconds in a guest. A test that means nobody answers says so by retry_cnt.
 */
static void attr_patience(const struct rig_options *options, struct ibv_qp_attr *attr)
{
	attr->timeout = options->timeout;
	attr->retry_cnt = options->retry_cnt;
	if (rig_device->real && attr->timeout < 14)
		attr->timeout = 14;
	if (rig_device->real && !attr->retry_cnt)
		attr->retry_cnt = 6; /* 7 is for ever with rxe */
	if (options->no_timeout)
		attr->timeout = 0;
}

static int mask_of(enum ibv_qp_state state)
{
	switch (state) {
	case IBV_QPS_INIT:
		return SHUNT_TO_INIT;
	case IBV_QPS_RTR:
		return SHUNT_TO_RTR;
	case IBV_QPS_RTS:
		return SHUNT_TO_RTS;
	default:
		return IBV_QP_STATE;
	}
}

void rig_end_state(struct rig_end *end, const struct rig_options *options, enum ibv_qp_state state)
{
	static uint32_t next_psn;
	struct ibv_qp_attr attr = { .qp_state = state,
				    .qp_access_flags = (unsigned int)options->qp_access,
				    .path_mtu = IBV_MTU_1024,
				    .dest_qp_num = end->peer.qp_num,
				    .rq_psn = end->peer.psn,
				    .max_rd_atomic = 16,
				    .max_dest_rd_atomic = 16,
				    .port_num = 1,
				    .rnr_retry = options->rnr_retry,
				    .min_rnr_timer = options->min_rnr_timer };

	if (state == IBV_QPS_INIT)
		end->psn = next_psn = (next_psn + 0x1000) & 0xffffff;
	attr.sq_psn = end->psn;
	attr_patience(options, &attr);
	rig_device->path(end, &attr);
	assert_int_equal(end->verbs->modify_qp(end->qp, &attr, mask_of(state)), 0);
	assert_int_equal(end->qp->state, state);
}

int rig_tell(struct rig_end *end, struct rig_address *address, int fds[2])
{
	memset(address, 0, sizeof(*address));
	address->qp_num = end->qp->qp_num;
	address->psn = end->psn;
	return rig_device->tell(end, address, fds);
}

int rig_meet(struct rig_end *end, const struct rig_address *address, const int fds[2])
{
	end->peer = *address;
	return rig_device->meet(end, fds);
}

void rig_learn(struct rig_end *end, struct rig_end *peer)
{
	struct rig_address address;
	int fds[2];

	assert_int_equal(rig_tell(peer, &address, fds), 0);
	assert_int_equal(rig_meet(end, &address, fds), 0);
}

void rig_connect(struct rig *rig)
{
	struct rig_options *options = &rig->options;

	rig_end_state(&rig->a, options, IBV_QPS_INIT);
	rig_end_state(&rig->b, options, IBV_QPS_INIT);
	rig_learn(&rig->a, &rig->b);
	rig_learn(&rig->b, &rig->a);
	rig_receives(&rig->a, options->receives);
	rig_receives(&rig->b, options->receives);
	rig_end_state(&rig->a, options, IBV_QPS_RTR);
	rig_end_state(&rig->b, options, IBV_QPS_RTR);
	rig_end_state(&rig->a, options, IBV_QPS_RTS);
	rig_end_state(&rig->b, options, IBV_QPS_RTS);
}

struct rig *rig_make(const struct rig_options *options)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	assert_non_null(rig);
	rig->options = options_fill(options);
	rig_end_make(&rig->a, &rig->options);
	rig_end_make(&rig->b, &rig->options);
	rig_connect(rig);
	return rig;
}

void rig_free(struct rig *rig)
{
	rig_end_free(&rig->a);
	rig_end_free(&rig->b);
	free(rig);
}

void rig_receive(struct rig_end *end, uint64_t wr_id, void *buffer, uint32_t bytes)
{
	struct ibv_sge sge = { (uint64_t)(uintptr_t)buffer, bytes, end->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = buffer ? 1 : 0 }, *bad;

	assert_int_equal(ibv_post_recv(end->qp, &wr, &bad), 0);
}

void rig_receives(struct rig_end *end, int count)
{
	for (int i = 0; i < count; i++)
		rig_receive(end, 1000 + (uint64_t)i, NULL, 0);
}

/* With a model and a clock of ours: what is posted becomes due. */
static void pass_time(struct rig_end *end)
{
	struct soft_gauges gauges;

	if (!*rig_model)
		return;
	soft_read_gauges(end->context, &gauges);
	if (rig_clock < gauges.busy_until + end->delay)
		rig_clock = gauges.busy_until + end->delay;
	ibv_poll_cq(end->send_cq, 0, NULL);
}

int rig_post(struct rig_end *end, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	int err = ibv_post_send(end->qp, wr, bad);

	pass_time(end);
	return err;
}

struct ibv_send_wr rig_write(struct rig_end *from, struct rig_end *to, struct ibv_sge *sge, uint64_t wr_id,
			     enum ibv_wr_opcode opcode, uint32_t bytes)
{
	struct ibv_send_wr wr = { .wr_id = wr_id, .sg_list = sge, .num_sge = bytes ? 1 : 0,
				  .opcode = opcode, .send_flags = IBV_SEND_SIGNALED,
				  .imm_data = (uint32_t)wr_id };

	*sge = (struct ibv_sge){ (uint64_t)(uintptr_t)from->memory, bytes, from->mr->lkey };
	wr.wr.rdma.remote_addr = (uint64_t)(uintptr_t)to->memory;
	wr.wr.rdma.rkey = to->mr->rkey;
	return wr;
}

void rig_one(struct rig_end *from, struct rig_end *to, uint64_t wr_id, enum ibv_wr_opcode opcode,
	     uint32_t bytes)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = rig_write(from, to, &sge, wr_id, opcode, bytes), *bad;

	assert_int_equal(rig_post(from, &wr, &bad), 0);
}

/* Which of many it was that did not come. */
static struct ibv_wc check(int got, struct ibv_wc wc, uint64_t wr_id, enum ibv_wc_status status)
{
	if (got != 1 || wc.wr_id != wr_id || wc.status != status)
		print_error("expected the completion of %llu with status %d, got %d: %llu with %d\n",
			    (unsigned long long)wr_id, (int)status, got, (unsigned long long)wc.wr_id,
			    (int)wc.status);
	assert_int_equal(got, 1);
	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.status, status);
	return wc;
}

static uint64_t real_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* One completion, where the device is real waiting for it. */
int rig_poll(struct ibv_cq *cq, struct ibv_wc *wc, uint64_t ms)
{
	uint64_t end = real_ms() + ms;
	int got;

	memset(wc, 0xee, sizeof(*wc));
	while (!(got = ibv_poll_cq(cq, 1, wc)) && rig_device->real && real_ms() < end)
		sched_yield();
	return got;
}

struct ibv_wc rig_expect(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc;
	int got = rig_poll(cq, &wc, PATIENCE_MS);

	return check(got, wc, wr_id, status);
}

struct ibv_wc rig_await(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc;
	int got;

	memset(&wc, 0xee, sizeof(wc));
	while (!(got = ibv_poll_cq(cq, 1, &wc)))
		sched_yield();
	return check(got, wc, wr_id, status);
}

void rig_expect_none(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	assert_int_equal(rig_poll(cq, &wc, QUIET_MS), 0);
}

void rig_expect_not_yet(struct ibv_cq *cq)
{
	if (!rig_device->real)
		rig_expect_none(cq);
}

void rig_expect_count(struct ibv_cq *cq, int count)
{
	struct ibv_wc wc;

	while (count--)
		assert_int_equal(rig_poll(cq, &wc, PATIENCE_MS), 1);
	rig_expect_none(cq);
}

bool rig_readable(int fd)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };

	return poll(&pollfd, 1, rig_device->real ? QUIET_MS : 0) == 1;
}

void rig_expect_async(struct rig_end *end, enum ibv_event_type type)
{
	struct ibv_async_event event;

	assert_true(rig_readable(end->context->async_fd));
	assert_int_equal(end->verbs->get_async_event(end->context, &event), 0);
	assert_int_equal(event.event_type, type);
	end->verbs->ack_async_event(&event);
}

enum ibv_qp_state rig_state(struct rig_end *end)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(end->verbs->query_qp(end->qp, &attr, IBV_QP_STATE, &init), 0);
	return attr.qp_state;
}

void rig_expect_flushed(struct ibv_cq *cq, uint64_t wr_id)
{
	rig_expect(cq, wr_id, IBV_WC_WR_FLUSH_ERR);
}

void rig_peer_vanishes(struct rig *rig)
{
	if (rig_device->real)
		rig_end_state(&rig->b, &rig->options, IBV_QPS_RESET);
	else
		soft_qp_peer_gone(rig->a.qp);
}

void rig_expect_silence(struct rig *rig)
{
	uint64_t tried;

	rig_receives(&rig->a, 2);
	rig_one(&rig->a, &rig->b, 1, IBV_WR_RDMA_WRITE, 8);
	tried = rig_clock;
	rig_one(&rig->a, &rig->b, 2, IBV_WR_RDMA_WRITE_WITH_IMM, 8);
	rig_clock = tried + 3 * 8192 - 1;
	rig_expect_not_yet(rig->a.send_cq);
	rig_clock += 1;
	rig_expect(rig->a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
	rig_expect_flushed(rig->a.send_cq, 2);
	rig_expect_flushed(rig->a.recv_cq, 1000);
	rig_expect_flushed(rig->a.recv_cq, 1001);
	assert_int_equal(rig_state(&rig->a), IBV_QPS_ERR);
	assert_int_equal(rig->b.memory[0], 0);
}

void rig_laps(struct rig *rig, uint64_t count,
	      struct ibv_wc (*taken)(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status))
{
	for (uint64_t i = 0; i < count; i++) {
		memcpy(rig->a.memory, &i, 8);
		rig_one(&rig->a, &rig->b, i, IBV_WR_RDMA_WRITE_WITH_IMM, 8);
		assert_int_equal(taken(rig->b.recv_cq, 1000 + i % 64, IBV_WC_SUCCESS).imm_data, i);
		assert_memory_equal(rig->b.memory, &i, 8);
		rig_receive(&rig->b, 1000 + i % 64, NULL, 0);
		taken(rig->a.send_cq, i, IBV_WC_SUCCESS);
	}
}

struct rig *rig_modelled(const char *model)
{
	return rig_make(&(struct rig_options){ .model = model, .receives = 64, .rnr_retry = 7 });
}

void rig_post_chain(struct rig *rig, uint64_t first, int count, uint32_t bytes)
{
	struct ibv_sge sge[32];
	struct ibv_send_wr wr[32], *bad;

	for (int i = 0; i < count; i++) {
		wr[i] = rig_write(&rig->a, &rig->b, &sge[i], first + (uint64_t)i,
				  IBV_WR_RDMA_WRITE, bytes);
		wr[i].next = i + 1 < count ? &wr[i + 1] : NULL;
	}
	assert_int_equal(ibv_post_send(rig->a.qp, wr, &bad), 0);
}

void rig_expect_at(struct rig *rig, uint64_t start, uint64_t ns, uint64_t wr_id)
{
	rig_clock = start + ns - 1;
	rig_expect_none(rig->a.send_cq);
	rig_clock++;
	rig_expect(rig->a.send_cq, wr_id, IBV_WC_SUCCESS);
}
