/* SPDX-License-Identifier: MIT */
/* Arming and posting at the same moment, in two processes on two cores (SD-07). */
#define _GNU_SOURCE
#include <sched.h>
#include "tests/soft/party.h"

/* Spread so that about half of the looks find the message: the two sides meet in the middle. */
enum { LITMUS = 100000, LINES = 24, JIT = 200 };

static void pause_short(uint64_t round)
{
	uint64_t steps = (round * 2654435761u >> 7) % JIT;

	for (volatile uint64_t i = 0; i < steps; i++)
		;
}

/* Unsignaled WRs keep their slots until a signaled one behind them was polled. */
static void recycle(struct party *party, uint64_t round)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct ibv_wc wc;

	if (round % 32)
		return;
	must(ibv_post_send(party->end.qp, &wr, &bad) == 0);
	must(ibv_poll_cq(party->end.send_cq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
}

enum { SIGNAL_AT = 65536 };

/* A word in the peer's memory, by a plain WRITE that raises nothing. */
static void signal_peer(struct party *party, uint64_t value)
{
	struct ibv_sge sge = { (uint64_t)(uintptr_t)&value, sizeof(value), 0 };
	struct ibv_send_wr wr = { .wr_id = 16, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_INLINE }, *bad;

	wr.wr.rdma.remote_addr = party->peer.memory + SIGNAL_AT;
	wr.wr.rdma.rkey = party->peer.rkey;
	must(ibv_post_send(party->end.qp, &wr, &bad) == 0);
}

static void await_signal(struct party *party, uint64_t value)
{
	uint64_t *word = (uint64_t *)(party->end.memory + SIGNAL_AT);

	for (int spins = 1; __atomic_load_n(word, __ATOMIC_ACQUIRE) != value; spins++)
		if (spins % 4096 == 0)
			sched_yield();
}

/*
 * A message whose payload goes to lines that the peer has just dirtied. The poster's stores, the
 * arrival behind them, stay in its store buffer for long, while it looks at the peer's arming.
 */
static void say_slowly(struct party *party, uint64_t round)
{
	static char payload[LINES * 64];
	struct ibv_sge sge = { (uint64_t)(uintptr_t)payload, sizeof(payload), 0 };
	struct ibv_send_wr wr = { .wr_id = round, .sg_list = &sge, .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .imm_data = (uint32_t)round,
				  .send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED }, *bad;

	wr.wr.rdma.remote_addr = party->peer.memory;
	wr.wr.rdma.rkey = party->peer.rkey;
	must(ibv_post_send(party->end.qp, &wr, &bad) == 0);
}

/* Two processes on one core take turns, and race for nothing. With one core there is no race. */
static void pin(int which)
{
	cpu_set_t allowed, one;

	CPU_ZERO(&one);
	must(sched_getaffinity(0, sizeof(allowed), &allowed) == 0);
	for (int cpu = 0; cpu < CPU_SETSIZE && which >= 0; cpu++)
		if (CPU_ISSET(cpu, &allowed) && !which--)
			CPU_SET(cpu, &one);
	if (CPU_COUNT(&one))
		must(sched_setaffinity(0, sizeof(one), &one) == 0);
}

static void litmus_post(struct party *party)
{
	uint64_t k = 0;

	pin(1);
	for (uint64_t round = 1; round <= LITMUS; round++) {
		await_signal(party, round);
		say_slowly(party, round);
		party_consume(party, &k);
		signal_peer(party, round);
	}
}

/* Empties this core's store buffer. */
static void drain_stores(void)
{
	uint32_t word = 0;

	__atomic_exchange_n(&word, 1, __ATOMIC_SEQ_CST);
}

/*
 * Arms and looks once, while the other process posts. Either the look finds the message, or there
 * is an event by the time the post has returned. Nothing sleeps, so nothing has to time out.
 */
static void litmus_arm(struct party *party)
{
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;

	pin(0);
	for (uint64_t round = 1; round <= LITMUS; round++) {
		memset(party->end.memory, (int)round, LINES * 64);
		drain_stores(); /* or the signal queues behind it, beyond the pause */
		signal_peer(party, round);
		pause_short(round);
		must(ibv_req_notify_cq(party->end.recv_cq, 0) == 0);
		if (!ibv_poll_cq(party->end.recv_cq, 1, &wc)) {
			await_signal(party, round);
			must(rig_readable(party->end.channel->fd));
			must(ibv_poll_cq(party->end.recv_cq, 1, &wc) == 1);
		}
		await_signal(party, round);
		must(wc.imm_data == (uint32_t)round);
		rig_receive(&party->end, wc.wr_id, NULL, 0);
		party->end.verbs->get_cq_event(party->end.channel, &cq, &context);
		recycle(party, round);
	}
}

static void SD_07_arming_and_posting_at_once(void **state)
{
	cpu_set_t before;

	(void)state;
	/*
	 * The race is the poster's fence between an arrival and its look at the arming. The
	 * device's thread looks once after all that was due: the signal may be seen before the
	 * event.
	 */
	if (*rig_model)
		skip();
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	party_run(litmus_post, litmus_arm);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

RIG_TABLE(race, cmocka_unit_test(SD_07_arming_and_posting_at_once));
