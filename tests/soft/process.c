/* SPDX-License-Identifier: MIT */
/* Two real processes that share nothing but a Unix socket (SD-15), one of them asleep, or dead. */
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/soft/party.h"

/* In a guest everything is a hundred times slower. */
#define STREAM (rig_device->real ? 6400u : 50000u)
#define ROUNDS (rig_device->real ? 500u : 5000u)

/* Every half CREDIT of messages is answered by one, so that receives never run out. */
static void stream_out(struct party *party)
{
	uint64_t answers = 0;

	for (uint64_t k = 0; k < STREAM; k++) {
		if (k >= CREDIT && k % (CREDIT / 2) == 0)
			party_wait_for(party, &answers, k / (CREDIT / 2) - 1);
		party_say(party, k);
	}
	party_wait_for(party, &answers, STREAM / (CREDIT / 2));
	must(rig_device->real || soft_qp_counters(party->end.qp)->rnr == 0);
}

static void stream_in(struct party *party)
{
	uint64_t k = 0, answered = 0;

	while (k < STREAM) {
		party_wait_for(party, &k, k + 1);
		for (; answered < k / (CREDIT / 2); answered++)
			party_say(party, answered);
	}
	must(rig_device->real || soft_qp_counters(party->end.qp)->arrivals == STREAM);
}

static void SD_15_messages_between_processes(void **state)
{
	(void)state;
	party_run(stream_out, stream_in);
	party_run(stream_in, stream_out);
}

static void pause_some(uint64_t round)
{
	for (volatile uint64_t i = 0; i < round * 2654435761u % 1021; i++)
		;
}

/* Each end arms just when the other answers: a missed event would leave both asleep. */
static void duel_first(struct party *party)
{
	uint64_t k = 0;

	for (uint64_t round = 0; round < ROUNDS; round++) {
		pause_some(round);
		party_say(party, round);
		while (k <= round)
			party_doze(party, &k, round + 1);
	}
}

static void duel_second(struct party *party)
{
	uint64_t k = 0;

	for (uint64_t round = 0; round < ROUNDS; round++) {
		while (k <= round)
			party_doze(party, &k, round + 1);
		pause_some(round + 7);
		party_say(party, round);
	}
}

static void SD_07_no_event_is_missed_in_the_arm_race(void **state)
{
	(void)state;
	party_run(duel_first, duel_second);
}

static void await_close(struct party *party)
{
	char byte;

	must(read(party->socket, &byte, 1) == 0);
}

static void die_early(struct party *party)
{
	uint64_t k = 0;

	party_wait_for(party, &k, 1);
}

static void survive(struct party *party)
{
	struct rig_end *end = &party->end;
	uint64_t k = 1, received = 0;
	bool failed = false;
	struct ibv_wc wc;

	party_say(party, 0);
	await_close(party);
	rig_await(end->send_cq, 0, IBV_WC_SUCCESS);
	for (; k < 20; k++) /* into the pages of a process that is no more */
		party_say(party, k);
	rig_await(end->send_cq, 16, IBV_WC_SUCCESS);
	party_settle(party);
	soft_qp_peer_gone(end->qp);
	party_say(party, 32);
	if (!*rig_model) /* in real time 8192 ns may be over by now */
		rig_expect_none(end->send_cq);
	rig_clock += 8192;
	/* One CQ for both: receives may be flushed before the send that failed is told. */
	while (!failed || received < CREDIT) {
		while (!ibv_poll_cq(end->send_cq, 1, &wc))
			sched_yield();
		if (wc.wr_id < 1000) {
			must(!failed && wc.wr_id == 32 && wc.status == IBV_WC_RETRY_EXC_ERR);
			failed = true;
			continue;
		}
		must(wc.wr_id == 1000 + received++ && wc.status == IBV_WC_WR_FLUSH_ERR);
	}
}

/* The socket is closed before the QP is. */
static void await_death(void)
{
	siginfo_t info;

	must(waitid(P_ALL, 0, &info, WEXITED | WNOWAIT) == 0);
}

/* Sends fail in order, and receives; there is one CQ for both. */
static void survive_real(struct party *party)
{
	struct rig_end *end = &party->end;
	uint64_t sent = 1, received = 0;
	struct ibv_wc wc;

	party_say(party, 0);
	await_death();
	rig_expect(end->send_cq, 0, IBV_WC_SUCCESS);
	for (uint64_t k = 1; k < 20; k++)
		party_say(party, k);
	while (sent < 20 || received < CREDIT) {
		must(rig_poll(end->send_cq, &wc, PATIENCE_MS) == 1);
		must(wc.status == (sent == 1 ? IBV_WC_RETRY_EXC_ERR : IBV_WC_WR_FLUSH_ERR));
		if (wc.wr_id >= 1000)
			must(wc.wr_id == 1000 + received++);
		else
			must(wc.wr_id == sent++);
	}
	must(rig_state(end) == IBV_QPS_ERR);
}

static void SD_15_death_of_the_peer(void **state)
{
	(void)state;
	party_run(die_early, rig_device->real ? survive_real : survive);
}

RIG_TABLE(process, cmocka_unit_test(SD_15_messages_between_processes),
	  cmocka_unit_test(SD_15_death_of_the_peer),
	  cmocka_unit_test(SD_07_no_event_is_missed_in_the_arm_race));
