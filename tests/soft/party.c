/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/soft/party.h"
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/soft/fds.h"

/* When one fails, the other must not wait for it for ever. */
enum { DOZE_MS = 300000, ALARM_S = 900 };
static const uint64_t SETTLED = 1ull << 40;

static void party_make(struct party *party, int socket)
{
	struct hello mine = { 0 };
	int fds[2];

	party->socket = socket;
	party->options = (struct rig_options){ .send_wr = 2 * CREDIT, .recv_wr = CREDIT, .cqe = 256, .timeout = 1,
					       .rnr_retry = 7, .real_time = 1,
					       .access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE };
	party->options.qp_access = party->options.access;
	rig_end_make(&party->end, &party->options);
	rig_end_state(&party->end, &party->options, IBV_QPS_INIT);
	rig_receives(&party->end, CREDIT); /* before the peer may know us: it must not meet RNR */
	must(rig_tell(&party->end, &mine.address, fds) == 0);
	mine.memory = (uint64_t)(uintptr_t)party->end.memory;
	mine.rkey = party->end.mr->rkey;
	must(fds_send(socket, &mine, sizeof(mine), fds));
	must(fds_receive(socket, &party->peer, sizeof(party->peer), fds));
	must(rig_meet(&party->end, &party->peer.address, fds) == 0);
	close(fds[0]);
	close(fds[1]);
	rig_end_state(&party->end, &party->options, IBV_QPS_RTR);
	rig_end_state(&party->end, &party->options, IBV_QPS_RTS);
}

/* The k-th message: its number, at a place of its own. */
void party_say(struct party *party, uint64_t k)
{
	struct ibv_sge sge = { (uint64_t)(uintptr_t)&k, sizeof(k), 0 };
	struct ibv_send_wr wr = { .wr_id = k, .sg_list = &sge, .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .imm_data = (uint32_t)k,
				  .send_flags = IBV_SEND_INLINE | (k % 16 ? 0 : IBV_SEND_SIGNALED) }, *bad;

	wr.wr.rdma.remote_addr = party->peer.memory + k % 4096 * 8;
	wr.wr.rdma.rkey = party->peer.rkey;
	must(ibv_post_send(party->end.qp, &wr, &bad) == 0);
}

/* Consumes what is there; *k counts the messages, each of which must be the next. */
void party_consume(struct party *party, uint64_t *k)
{
	struct ibv_wc wc;
	uint64_t value;

	while (ibv_poll_cq(party->end.recv_cq, 1, &wc) == 1) {
		must(wc.status == IBV_WC_SUCCESS);
		if (!(wc.opcode & IBV_WC_RECV))
			continue;
		memcpy(&value, party->end.memory + *k % 4096 * 8, 8);
		must(wc.imm_data == (uint32_t)*k && value == *k && wc.byte_len == 8);
		rig_receive(&party->end, wc.wr_id, NULL, 0);
		++*k;
	}
}

/* Arms, looks once more, sleeps. Never later than PATIENCE_MS, else a wake-up was lost. */
void party_doze(struct party *party, uint64_t *k, uint64_t until)
{
	struct pollfd pollfd = { .fd = party->end.channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	must(ibv_req_notify_cq(party->end.recv_cq, 0) == 0);
	party_consume(party, k);
	if (*k >= until)
		return;
	must(poll(&pollfd, 1, DOZE_MS) == 1);
	if (!party->end.verbs->get_cq_event(party->end.channel, &cq, &context))
		party->end.verbs->ack_cq_events(cq, 1);
	party_consume(party, k);
}

void party_wait_for(struct party *party, uint64_t *k, uint64_t until)
{
	party_consume(party, k);
	while (*k < until)
		party_doze(party, k, until);
}

/* A real device tells that all is done by the completion of what is last. */
static void settle_real(struct party *party)
{
	struct ibv_send_wr wr = { .wr_id = SETTLED, .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct ibv_wc wc = { 0 };

	must(ibv_post_send(party->end.qp, &wr, &bad) == 0);
	while (wc.wr_id != SETTLED)
		ibv_poll_cq(party->end.send_cq, 1, &wc);
}

void party_settle(struct party *party)
{
	if (rig_device->real) {
		settle_real(party);
		return;
	}
	while (rig_state(&party->end) == IBV_QPS_RTS && !soft_qp_settled(party->end.qp))
		sched_yield();
}

/* Runs one role in a child made before any device, the other here. */
void party_run(role child, role parent)
{
	struct party party = { 0 };
	int sockets[2], status;
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
	pid = fork();
	assert_true(pid >= 0);
	alarm(ALARM_S);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(sockets[0]);
		party_make(&party, sockets[1]);
		child(&party);
		party_settle(&party); /* what is on its way dies with the process */
		_exit(0);
	}
	close(sockets[1]);
	party_make(&party, sockets[0]);
	parent(&party);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	alarm(0);
	rig_end_free(&party.end);
	close(sockets[0]);
}
