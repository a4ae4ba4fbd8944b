/* SPDX-License-Identifier: MIT */
/* The layer that makes WRITE_WITH_IMM of a WRITE and a SEND, over two soft devices. */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/device/device.h"
#include "core/lane/fault_device.h"
#include "core/device/imm.h"
#include "core/device/soft/soft.h"
#include "core/engine.h"
#include "core/lane/roster.h"

enum { MEMORY = 1 << 20, MANY = 40, TRACED = 256 };

struct end {
	struct shunt_engine *engine;
	struct shunt_device *device;
	struct shunt_link link;
	struct shunt_lane lane;
	struct shunt_verbs table;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	char *memory;
};

static struct end a, b;
static struct soft_trace traced[TRACED];
static int mapped; /* notes that are mapped now */
static bool deny_map;
static uint64_t clock_ns = 1;

static uint64_t test_now(void)
{
	return clock_ns;
}

/* --- the soft device: a SEND lands in the arena alone --- */

static void *map_in_arena(struct ibv_pd *pd, size_t bytes)
{
	size_t room;
	char *arena = soft_arena(pd, &room);

	if (deny_map || MEMORY + bytes > room) {
		errno = ENOMEM;
		return NULL;
	}
	mapped++;
	return arena + MEMORY;
}

static void unmap(void *at, size_t bytes)
{
	assert_non_null(at);
	assert_true(bytes > 0);
	mapped--;
}

static struct ibv_qp *make_qp(struct end *end, void *context, uint32_t sends, uint32_t receives)
{
	struct ibv_qp_init_attr init = { .qp_context = context,
					 .send_cq = end->cq,
					 .recv_cq = end->cq,
					 .qp_type = IBV_QPT_RC,
					 .cap = { .max_send_wr = sends,
						  .max_recv_wr = receives,
						  .max_send_sge = 4,
						  .max_recv_sge = 1 } };
	struct ibv_qp *qp = end->table.create_qp(end->pd, &init);

	if (qp && context) {
		assert_true(init.cap.max_send_wr >= sends);
		assert_true(init.cap.max_inline_data >= SHUNT_IMM_NOTE_BYTES);
	}
	return qp;
}

static void make_end(struct end *end, uint32_t sends, uint32_t receives)
{
	static struct shunt_sys sys = { .now = test_now };
	const struct soft_attr attr = { .now = test_now, .arena_bytes = 16 << 20 };
	const struct shunt_verbs *verbs;
	struct ibv_device_attr limits;

	memset(end, 0, sizeof(*end));
	end->engine = calloc(1, sizeof(*end->engine));
	end->device = &end->engine->group.devices[SHUNT_SOFT];
	end->device->loop = &end->engine->loop;
	end->device->group = &end->engine->group;
	end->device->fault = &end->engine->fault;
	end->engine->loop.manual = true;
	shunt_lock_rank(&end->engine->group.lock, SHUNT_RANK_GROUP);
	shunt_engine_surround(end->engine, &sys);
	end->device->context = soft_open(&attr, &verbs);
	assert_non_null(end->device->context);
	end->table = *verbs;
	end->device->verbs = &end->table;
	assert_int_equal(shunt_imm_attach(end->device, &end->table), 0);
	end->device->imm.map = map_in_arena;
	end->device->imm.unmap = unmap;
	assert_int_equal(end->table.query_device(end->device->context, &limits), 0);
	shunt_imm_limit(end->device, &limits);
	end->device->limits = limits;
	end->device->open = true;
	end->cq = end->table.create_cq(end->device->context, (int)(sends + receives), end->device,
				       NULL, 0);
	assert_non_null(end->cq);
	end->pd = end->table.alloc_pd(end->device->context);
	end->memory = soft_arena(end->pd, &(size_t) { 0 });
	end->mr = end->table.register_mr(end->pd, end->memory, MEMORY,
					 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
						 IBV_ACCESS_REMOTE_READ);
	end->link.engine = end->engine;
	end->lane.group = &end->engine->group;
	end->link.device = end->device;
	end->lane.link = &end->link;
	end->lane.qp = make_qp(end, &end->lane, sends, receives);
	assert_non_null(end->lane.qp);
	assert_non_null(end->lane.imm);
	shunt_roster_add(&end->engine->group, &end->lane);
}

static void modify(struct end *end, struct ibv_qp_attr attr, int mask)
{
	attr.port_num = 1;
	attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	attr.min_rnr_timer = 12;
	attr.timeout = 14;
	attr.retry_cnt = 6;
	attr.rnr_retry = 7;
	assert_int_equal(end->table.modify_qp(end->lane.qp, &attr, mask), 0);
}

static void meet(struct end *end, struct end *peer)
{
	struct soft_address address;
	int fds[2];

	assert_int_equal(soft_qp_export(peer->lane.qp, &address, fds), 0);
	assert_int_equal(soft_qp_import(end->lane.qp, &address, fds), 0);
	modify(end,
	       (struct ibv_qp_attr) { .qp_state = IBV_QPS_RTR,
				      .dest_qp_num = peer->lane.qp->qp_num },
	       SHUNT_TO_RTR);
	modify(end, (struct ibv_qp_attr) { .qp_state = IBV_QPS_RTS }, SHUNT_TO_RTS);
	end->lane.peer_controls = (uintptr_t)peer->memory;
	end->lane.rkey = peer->mr->rkey;
}

static void receives(struct end *end, int count)
{
	struct ibv_recv_wr wr[256], *bad;

	for (int i = 0; i < count; i++)
		wr[i] = (struct ibv_recv_wr) { .wr_id = (uintptr_t)&end->lane,
					       .next = i + 1 < count ? &wr[i + 1] : NULL };
	assert_int_equal(ibv_post_recv(end->lane.qp, wr, &bad), 0);
}

static void make_pair(uint32_t sends, uint32_t depth)
{
	make_end(&a, sends, depth);
	make_end(&b, sends, depth);
	modify(&a, (struct ibv_qp_attr) { .qp_state = IBV_QPS_INIT }, SHUNT_TO_INIT);
	modify(&b, (struct ibv_qp_attr) { .qp_state = IBV_QPS_INIT }, SHUNT_TO_INIT);
	meet(&a, &b);
	meet(&b, &a);
	receives(&b, (int)depth);
}

static void free_end(struct end *end)
{
	shunt_fault_device_detach(end->device);
	assert_int_equal(end->table.destroy_qp(end->lane.qp), 0);
	assert_null(end->lane.imm);
	assert_int_equal(end->table.deregister_mr(end->mr), 0);
	assert_int_equal(end->table.destroy_cq(end->cq), 0);
	assert_int_equal(end->table.dealloc_pd(end->pd), 0);
	soft_close(end->device->context);
	free(end->engine->fault.pool);
	free(end->engine);
}

static void free_pair(void)
{
	free_end(&a);
	free_end(&b);
	assert_int_equal(mapped, 0);
}

/* --- work requests from a to b --- */

static struct ibv_send_wr work(struct ibv_sge *sge, uint64_t number, enum ibv_wr_opcode opcode,
			       uint32_t bytes, int flags)
{
	*sge = (struct ibv_sge) { (uintptr_t)a.memory + 64 * number, bytes, a.mr->lkey };
	return (struct ibv_send_wr) { .wr_id = number,
				      .sg_list = sge,
				      .num_sge = 1,
				      .opcode = opcode,
				      .send_flags = (unsigned int)flags,
				      .imm_data = htonl(0x5000 + (uint32_t)number),
				      .wr.rdma = { (uintptr_t)b.memory + 64 * number,
						   b.mr->rkey } };
}

static void chain(struct ibv_send_wr *wr, int count)
{
	for (int i = 0; i < count; i++)
		wr[i].next = i + 1 < count ? &wr[i + 1] : NULL;
}

static int one_message(uint64_t number, uint32_t bytes, int flags)
{
	struct ibv_sge sge;
	struct ibv_send_wr *bad, wr = work(&sge, number, IBV_WR_RDMA_WRITE_WITH_IMM, bytes, flags);

	return ibv_post_send(a.lane.qp, &wr, &bad);
}

/* As the engine polls: under group.lock. */
static int polled(struct end *end, int most, struct ibv_wc *wc)
{
	int got;

	shunt_lock_take(&end->engine->group.lock);
	got = ibv_poll_cq(end->cq, most, wc);
	shunt_lock_leave(&end->engine->group.lock);
	return got;
}

static void expect_message(uint64_t number, uint32_t bytes)
{
	struct ibv_wc wc;

	assert_int_equal(polled(&b, 1, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_true(wc.wc_flags & IBV_WC_WITH_IMM);
	assert_ptr_equal((void *)(uintptr_t)wc.wr_id, &b.lane);
	assert_int_equal(wc.qp_num, b.lane.qp->qp_num);
	assert_int_equal(ntohl(wc.imm_data), 0x5000 + number);
	assert_int_equal(wc.byte_len, bytes);
	assert_memory_equal(b.memory + 64 * number, a.memory + 64 * number, bytes);
}

static void expect_none(struct end *end)
{
	struct ibv_wc wc;

	assert_int_equal(polled(end, 1, &wc), 0);
}

static void expect_sent(uint64_t number, enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc;

	assert_int_equal(polled(&a, 1, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, opcode);
	assert_int_equal(wc.wr_id, number);
}

/* --- tests --- */

static void the_limits_are_what_is_left(void **state)
{
	struct ibv_device_attr whole, left;
	struct shunt_device bare = { 0 };

	(void)state;
	make_pair(16, 16);
	assert_int_equal(a.table.query_device(a.device->context, &whole), 0);
	left = whole;
	shunt_imm_limit(&bare, &left);
	assert_memory_equal(&left, &whole, sizeof(left));
	shunt_imm_limit(a.device, &left);
	assert_int_equal(left.max_qp_wr, whole.max_qp_wr / 3);
	assert_int_equal(left.max_cqe, whole.max_cqe / 3);
	assert_int_equal(left.atomic_cap, IBV_ATOMIC_NONE);
	assert_int_equal(shunt_imm_attach(a.device, &a.table), -EINVAL);
	free_pair();
}

static void expect_traced(int i, uint64_t number, enum ibv_wr_opcode opcode, uint32_t bytes,
			  int flags)
{
	assert_int_equal(traced[i].wr_id, number);
	assert_int_equal(traced[i].opcode, opcode);
	assert_int_equal(traced[i].bytes, bytes);
	assert_int_equal(traced[i].flags, flags);
	assert_int_equal(traced[i].doorbell, traced[0].doorbell);
}

static void a_message_is_a_write_and_a_send(void **state)
{
	struct ibv_sge sge[5], sges[5];
	struct ibv_send_wr wr[5], before[5], *bad = NULL;

	(void)state;
	make_pair(16, 16);
	soft_qp_trace(a.lane.qp, traced, TRACED);
	strcpy(a.memory + 64, "a message");
	wr[0] = work(&sge[0], 1, IBV_WR_RDMA_WRITE_WITH_IMM, 9,
		     IBV_SEND_INLINE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | SHUNT_SEND_PLAIN);
	wr[1] = work(&sge[1], 2, IBV_WR_RDMA_WRITE, 40, SHUNT_SEND_PAST);
	wr[2] = work(&sge[2], 3, IBV_WR_RDMA_WRITE_WITH_IMM, 0, IBV_SEND_SIGNALED);
	wr[3] = work(&sge[3], 4, IBV_WR_RDMA_READ, 8, IBV_SEND_SIGNALED);
	wr[4] = work(&sge[4], 5, IBV_WR_RDMA_WRITE_WITH_IMM, 64, 0);
	chain(wr, 5);
	memcpy(before, wr, sizeof(wr));
	memcpy(sges, sge, sizeof(sge));
	assert_int_equal(ibv_post_send(a.lane.qp, wr, &bad), 0);
	assert_memory_equal(wr, before, sizeof(wr));
	assert_memory_equal(sge, sges, sizeof(sge));
	expect_traced(0, 1, IBV_WR_RDMA_WRITE, 9, IBV_SEND_INLINE | SHUNT_SEND_PLAIN);
	expect_traced(1, 1, IBV_WR_SEND, 8, IBV_SEND_INLINE | IBV_SEND_SOLICITED);
	expect_traced(2, 1, IBV_WR_RDMA_READ, 8, IBV_SEND_SIGNALED);
	expect_traced(3, 2, IBV_WR_RDMA_WRITE, 40, SHUNT_SEND_PAST);
	expect_traced(4, 3, IBV_WR_SEND, 8, IBV_SEND_INLINE);
	expect_traced(5, 3, IBV_WR_RDMA_READ, 8, IBV_SEND_SIGNALED);
	expect_traced(6, 4, IBV_WR_RDMA_READ, 8, IBV_SEND_SIGNALED);
	expect_traced(7, 5, IBV_WR_RDMA_WRITE, 64, 0);
	expect_traced(8, 5, IBV_WR_SEND, 8, IBV_SEND_INLINE);
	assert_int_equal(soft_qp_counters(a.lane.qp)->wr, 9);
	expect_message(1, 9);
	expect_message(3, 0);
	expect_message(5, 64);
	expect_none(&b);
	expect_sent(1, IBV_WC_RDMA_READ);
	expect_sent(3, IBV_WC_RDMA_READ);
	expect_sent(4, IBV_WC_RDMA_READ);
	expect_none(&a);
	free_pair();
}

/* Every third is no message, every fourth has no bytes. */
static enum ibv_wr_opcode opcode_of(int i)
{
	return i % 3 == 2 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_WRITE_WITH_IMM;
}

static uint32_t bytes_of(int i)
{
	return i % 4 == 3 ? 0 : 1 + (uint32_t)i;
}

static void make_mixed(struct ibv_send_wr *wr, struct ibv_sge *sge)
{
	for (int i = 0; i < MANY; i++)
		wr[i] = work(&sge[i], (uint64_t)i, opcode_of(i), bytes_of(i), 0);
	chain(wr, MANY);
}

/* The caller's WR that the device's n-th is of; MANY: there are not so many. */
static int owner_of(unsigned int nth)
{
	int i = 0;

	for (; i < MANY; i++) {
		unsigned int takes = opcode_of(i) == IBV_WR_RDMA_WRITE_WITH_IMM && bytes_of(i) ? 2 :
												 1;

		if (nth <= takes)
			break;
		nth -= takes;
	}
	return i;
}

/* The device refuses its n-th WR: the caller learns which of its own that is, and none is lost or comes twice. */
static void a_refusal_names_the_callers(void **state)
{
	struct ibv_send_wr wr[MANY], before[MANY], *bad;
	struct ibv_sge sge[MANY];
	unsigned int nth = 1;

	(void)state;
	for (; owner_of(nth) < MANY; nth++) {
		make_pair(64, 64);
		make_mixed(wr, sge);
		memcpy(before, wr, sizeof(wr));
		soft_qp_fail_post(a.lane.qp, nth);
		bad = NULL;
		assert_int_equal(ibv_post_send(a.lane.qp, wr, &bad), ENOMEM);
		assert_int_equal(bad - wr, owner_of(nth));
		assert_memory_equal(wr, before, sizeof(wr));
		assert_int_equal(ibv_post_send(a.lane.qp, bad, &bad), 0);
		for (int i = 0; i < MANY; i++)
			if (opcode_of(i) == IBV_WR_RDMA_WRITE_WITH_IMM)
				expect_message((uint64_t)i, bytes_of(i));
		expect_none(&b);
		free_pair();
	}
	assert_true(nth > MANY);
}

/* A device that refuses and does not say what. */
static int refuse(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	(void)qp, (void)wr;
	*bad = NULL;
	return EINVAL;
}

static int refuse_receives(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	(void)qp, (void)wr, (void)bad;
	return EINVAL;
}

static void a_refusal_without_a_name_is_of_all(void **state)
{
	struct ibv_send_wr wr[MANY], *bad = NULL;
	struct ibv_recv_wr receive = { .wr_id = 1 }, *bad_receive = NULL;
	struct ibv_sge sge[MANY];
	struct shunt_imm_calls calls;

	(void)state;
	make_pair(64, 64);
	calls = a.device->imm;
	make_mixed(wr, sge);
	a.device->imm.post_send = refuse;
	a.device->imm.post_recv = refuse_receives;
	assert_int_equal(ibv_post_send(a.lane.qp, wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr[0]);
	assert_int_equal(ibv_post_recv(a.lane.qp, &receive, &bad_receive), EINVAL);
	assert_ptr_equal(bad_receive, &receive);
	a.device->imm = calls;
	free_pair();
}

static void the_queue_is_full_behind_the_write(void **state)
{
	struct ibv_send_wr wr[14], *bad = NULL;
	struct ibv_sge sge[14];

	(void)state;
	make_pair(4, 8);
	/* Of sixteen slots: three for each of four, and those that the device adds. */
	for (int i = 0; i < 14; i++)
		wr[i] = work(&sge[i], (uint64_t)i, IBV_WR_RDMA_WRITE, 8,
			     i == 13 ? IBV_SEND_SIGNALED : 0);
	chain(wr, 14);
	assert_int_equal(ibv_post_send(a.lane.qp, wr, &bad), 0);
	memset(a.memory + 64 * 9, 'x', 10);
	assert_int_equal(one_message(9, 10, IBV_SEND_SIGNALED), ENOMEM);
	assert_int_equal(one_message(9, 10, IBV_SEND_SIGNALED), ENOMEM);
	expect_none(&b);
	expect_sent(13, IBV_WC_RDMA_READ);
	memset(a.memory + 64 * 9, 'y', 10);
	assert_int_equal(one_message(9, 10, IBV_SEND_SIGNALED), 0);
	expect_message(9, 10);
	expect_none(&b);
	expect_sent(9, IBV_WC_RDMA_READ);
	free_pair();
}

/* A message whose READ is refused has gone: it must not go twice, and nobody would hear that it has arrived. */
static void a_refused_acknowledgment_ends_the_queue_pair(void **state)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	(void)state;
	make_pair(8, 8);
	soft_qp_fail_post(a.lane.qp, 3);
	assert_int_equal(one_message(1, 10, IBV_SEND_SIGNALED), 0);
	expect_message(1, 10);
	assert_int_equal(a.table.query_qp(a.lane.qp, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_ERR);
	free_pair();
}

/* As many as the lane's send queue holds fit, whatever their kind. */
static void a_full_queue_of_messages_fits(void **state)
{
	(void)state;
	make_pair(32, 64);
	for (int lap = 0; lap < 5; lap++) {
		for (uint64_t i = 1; i <= 32; i++)
			assert_int_equal(one_message(i, 8, i == 32 ? IBV_SEND_SIGNALED : 0), 0);
		expect_sent(32, IBV_WC_RDMA_READ);
		for (uint64_t i = 1; i <= 32; i++)
			expect_message(i, 8);
		receives(&b, 32);
	}
	free_pair();
}

static void notes_go_round(void **state)
{
	int out = 8;

	(void)state;
	make_pair(8, 8);
	for (uint64_t i = 0; i < 1000; i++) {
		if (!out || i % 7 == 5) {
			receives(&b, 8 - out);
			out = 8;
		}
		memset(a.memory + 64 * i, (int)i, 8);
		assert_int_equal(one_message(i, (uint32_t)(i % 60), IBV_SEND_SIGNALED), 0);
		expect_message(i, (uint32_t)(i % 60));
		expect_sent(i, IBV_WC_RDMA_READ);
		out--;
	}
	free_pair();
}

/* Several wait when the peer polls, and the receives behind them are posted in turn. */
static void notes_wait_for_their_poll(void **state)
{
	(void)state;
	make_pair(64, 32);
	for (uint64_t i = 0, next = 0; i < 300; i += 20) {
		for (uint64_t j = i; j < i + 20; j++)
			assert_int_equal(one_message(j, (uint32_t)(j % 50), IBV_SEND_SIGNALED), 0);
		for (; next < i + 20; next++) {
			expect_message(next, (uint32_t)(next % 50));
			expect_sent(next, IBV_WC_RDMA_READ);
		}
		receives(&b, 20);
	}
	free_pair();
}

static void a_receive_that_is_refused_has_no_note(void **state)
{
	struct ibv_recv_wr wr[40], *bad = NULL;

	(void)state;
	make_pair(64, 32);
	for (uint64_t i = 0; i < 20; i++) {
		assert_int_equal(one_message(i, 8, IBV_SEND_SIGNALED), 0);
		expect_message(i, 8);
		expect_sent(i, IBV_WC_RDMA_READ);
	}
	for (int i = 0; i < 40; i++)
		wr[i] = (struct ibv_recv_wr) { .wr_id = (uintptr_t)&b.lane,
					       .next = i < 39 ? &wr[i + 1] : NULL };
	assert_int_equal(ibv_post_recv(b.lane.qp, wr, &bad), ENOMEM);
	assert_int_equal(bad - wr, 20);
	for (uint64_t i = 0; i < 96; i++) {
		assert_int_equal(one_message(i, 8, IBV_SEND_SIGNALED), 0);
		expect_message(i, 8);
		expect_sent(i, IBV_WC_RDMA_READ);
		if (i % 32 == 31)
			receives(&b, 32);
	}
	free_pair();
}

static void send_raw(uint32_t bytes)
{
	struct ibv_sge sge;
	struct ibv_send_wr *bad, wr = work(&sge, 1, IBV_WR_SEND, bytes, 0);

	assert_int_equal(a.device->imm.post_send(a.lane.qp, &wr, &bad), 0);
}

/* The lane fails, and what is behind the lie does not count. */
static void a_send_that_is_no_note(void **state)
{
	struct ibv_wc wc[4];

	(void)state;
	for (uint32_t bytes = 0; bytes < SHUNT_IMM_NOTE_BYTES; bytes++) {
		make_pair(16, 16);
		assert_int_equal(one_message(1, 8, 0), 0);
		send_raw(bytes);
		assert_int_equal(one_message(2, 8, 0), 0);
		expect_message(1, 8);
		assert_int_equal(polled(&b, 4, wc), 2);
		assert_int_equal(wc[0].status, IBV_WC_GENERAL_ERR);
		assert_ptr_equal((void *)(uintptr_t)wc[0].wr_id, &b.lane);
		assert_int_equal(wc[1].status, IBV_WC_WR_FLUSH_ERR);
		assert_ptr_equal((void *)(uintptr_t)wc[1].wr_id, &b.lane);
		free_pair();
	}
	make_pair(16, 16);
	send_raw(SHUNT_IMM_NOTE_BYTES + 1);
	assert_int_equal(polled(&b, 1, wc), 1);
	assert_int_equal(wc[0].status, IBV_WC_LOC_LEN_ERR);
	free_pair();
}

static int flushed(struct end *end, int *receives_of)
{
	struct ibv_wc wc[16];
	int count = 0, got;

	*receives_of = 0;
	while ((got = polled(end, 16, wc)) > 0)
		for (int i = 0; i < got; i++, count++) {
			assert_int_equal(wc[i].status, IBV_WC_WR_FLUSH_ERR);
			*receives_of += wc[i].wr_id == (uintptr_t)&end->lane;
		}
	return count;
}

/* The CQ has been asked for an entry of each slot of the lane's queues, no more. */
static void a_full_queue_that_is_flushed_fits(void **state)
{
	static const uint32_t depths[][2] = { { 64, 16 }, { 16, 64 }, { 32, 32 }, { 128, 1 } };
	struct ibv_async_event event;

	(void)state;
	for (size_t at = 0; at < sizeof(depths) / sizeof(depths[0]); at++) {
		uint32_t sends = depths[at][0], depth = depths[at][1];
		int received;

		make_pair(sends, depth);
		receives(&a, (int)depth);
		soft_qp_fault(a.lane.qp, SOFT_FAULT_STALL);
		for (uint64_t i = 0; i < sends; i++)
			assert_int_equal(one_message(i, 8, 0), 0);
		soft_qp_fault(a.lane.qp, SOFT_FAULT_KILL);
		assert_int_equal(flushed(&a, &received), 2 * sends + depth);
		assert_int_equal(received, depth);
		assert_int_equal(a.table.get_async_event(a.device->context, &event), -1);
		free_pair();
	}
}

static void faults(const char *rules)
{
	char error[128] = "";

	if (shunt_fault_device_set(&a.engine->group, rules, error, sizeof(error)))
		fail_msg("%s: %s", rules, error);
}

/* The filter is in front of the layer, and a fault strikes whole messages. */
static void the_filter_of_faults_stays_in_front(void **state)
{
	struct ibv_context_ops *ops, layer;
	struct ibv_send_wr wr[MANY], *bad = NULL;
	struct ibv_sge sge[MANY];
	struct ibv_wc wc;

	(void)state;
	make_pair(64, 64);
	ops = &a.device->context->ops;
	layer = *ops;
	faults("corrupt:what=imm,nth=2");
	assert_ptr_not_equal(ops->post_send, layer.post_send);
	assert_ptr_equal(a.device->post_send, layer.post_send);
	assert_int_equal(one_message(1, 8, 0), 0);
	expect_message(1, 8);
	assert_int_equal(one_message(2, 8, IBV_SEND_SIGNALED), 0);
	expect_sent(2, IBV_WC_RDMA_READ);
	assert_int_equal(polled(&b, 1, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_not_equal(ntohl(wc.imm_data), 0x5002);
	assert_int_equal(wc.byte_len, 8);
	faults("post:nth=5");
	make_mixed(wr, sge);
	assert_int_equal(ibv_post_send(a.lane.qp, wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr[4]);
	assert_int_equal(ibv_post_send(a.lane.qp, bad, &bad), 0);
	for (int i = 0; i < MANY; i++)
		if (opcode_of(i) == IBV_WR_RDMA_WRITE_WITH_IMM)
			expect_message((uint64_t)i, bytes_of(i));
	expect_none(&b);
	faults("");
	shunt_fault_device_detach(a.device);
	assert_ptr_equal(ops->post_send, layer.post_send);
	assert_ptr_equal(ops->poll_cq, layer.poll_cq);
	assert_int_equal(one_message(3, 8, IBV_SEND_SIGNALED), 0);
	expect_message(3, 8);
	expect_sent(3, IBV_WC_RDMA_READ);
	free_pair();
}

static void what_cannot_be_made_is_undone(void **state)
{
	struct ibv_qp *none;
	struct shunt_lane other = { .link = &a.link };

	(void)state;
	make_pair(16, 16);
	assert_int_equal(mapped, 2);
	deny_map = true;
	errno = 0;
	assert_null(make_qp(&a, &other, 16, 16));
	assert_int_equal(errno, ENOMEM);
	deny_map = false;
	errno = 0;
	assert_null(make_qp(&a, &other, 16, 1 << 20)); /* the device has no such queues */
	assert_int_equal(errno, EINVAL);
	assert_null(other.imm);
	assert_int_equal(mapped, 2);
	none = make_qp(&a, NULL, 16, 16); /* of no lane */
	assert_non_null(none);
	assert_int_equal(mapped, 2);
	assert_int_equal(a.table.destroy_qp(none), 0);
	free_pair();
}

static void notes_have_pages_of_their_own(void **state)
{
	struct ibv_context context = { .ops.post_send = refuse };
	struct shunt_device device = { .context = &context };
	struct shunt_verbs table = { 0 };
	char *at;

	(void)state;
	assert_int_equal(shunt_imm_attach(&device, &table), 0);
	at = device.imm.map(NULL, 100);
	assert_non_null(at);
	assert_int_equal((uintptr_t)at % 4096, 0);
	device.imm.unmap(at, 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_limits_are_what_is_left),
		cmocka_unit_test(a_message_is_a_write_and_a_send),
		cmocka_unit_test(a_refusal_names_the_callers),
		cmocka_unit_test(a_refusal_without_a_name_is_of_all),
		cmocka_unit_test(a_refused_acknowledgment_ends_the_queue_pair),
		cmocka_unit_test(the_queue_is_full_behind_the_write),
		cmocka_unit_test(a_full_queue_of_messages_fits),
		cmocka_unit_test(notes_go_round),
		cmocka_unit_test(notes_wait_for_their_poll),
		cmocka_unit_test(a_receive_that_is_refused_has_no_note),
		cmocka_unit_test(a_send_that_is_no_note),
		cmocka_unit_test(a_full_queue_that_is_flushed_fits),
		cmocka_unit_test(the_filter_of_faults_stays_in_front),
		cmocka_unit_test(what_cannot_be_made_is_undone),
		cmocka_unit_test(notes_have_pages_of_their_own),
	};

	return cmocka_run_group_tests_name("imm", tests, NULL, NULL);
}
