/* Two real processes that share nothing but a Unix socket (SD-15), and the arm race between them. */
#define _GNU_SOURCE
#include "tests/soft/rig.h"
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_MS = 20000, CREDIT = 64 };

struct hello {
	struct soft_address address;
	uint64_t memory;
	uint32_t rkey;
};

struct party {
	struct rig_end end;
	struct rig_options options;
	struct hello peer;
	int socket;
	uint64_t posted;
};

/* In the child, where cmocka must not run, a failure is an exit. */
#define must(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			_exit(99); \
		} \
	} while (0)

static void hello_send(int socket, const struct hello *hello, const int fds[2])
{
	char control[CMSG_SPACE(2 * sizeof(int))] = { 0 };
	struct iovec iov = { (void *)(uintptr_t)hello, sizeof(*hello) };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
				  .msg_controllen = sizeof(control) };
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(2 * sizeof(int));
	memcpy(CMSG_DATA(header), fds, 2 * sizeof(int));
	must(sendmsg(socket, &message, 0) == sizeof(*hello));
}

static void hello_receive(int socket, struct hello *hello, int fds[2])
{
	char control[CMSG_SPACE(2 * sizeof(int))];
	struct iovec iov = { hello, sizeof(*hello) };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
				  .msg_controllen = sizeof(control) };

	must(recvmsg(socket, &message, MSG_WAITALL | MSG_CMSG_CLOEXEC) == sizeof(*hello));
	memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&message)), 2 * sizeof(int));
}

static void party_make(struct party *party, int socket)
{
	struct hello mine = { 0 };
	int fds[2];

	party->socket = socket;
	party->options = (struct rig_options){ .send_wr = 64, .recv_wr = CREDIT, .cqe = 256, .timeout = 1,
					       .rnr_retry = 7,
					       .access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE };
	rig_end_make(&party->end, &party->options);
	rig_end_state(&party->end, &party->options, IBV_QPS_INIT);
	rig_receives(&party->end, CREDIT); /* before the peer may know us: it must not meet RNR */
	must(soft_qp_export(party->end.qp, &mine.address, fds) == 0);
	mine.memory = (uint64_t)(uintptr_t)party->end.memory;
	mine.rkey = party->end.mr->rkey;
	hello_send(socket, &mine, fds);
	hello_receive(socket, &party->peer, fds);
	must(soft_qp_import(party->end.qp, &party->peer.address, fds) == 0);
	close(fds[0]);
	close(fds[1]);
	rig_end_state(&party->end, &party->options, IBV_QPS_RTR);
	rig_end_state(&party->end, &party->options, IBV_QPS_RTS);
}

/* The k-th message: its number, at a place of its own. */
static void say(struct party *party, uint64_t k)
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
static void consume(struct party *party, uint64_t *k)
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
static void doze(struct party *party, uint64_t *k, uint64_t until)
{
	struct pollfd pollfd = { .fd = party->end.channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	must(ibv_req_notify_cq(party->end.recv_cq, 0) == 0);
	consume(party, k);
	if (*k >= until)
		return;
	must(poll(&pollfd, 1, PATIENCE_MS) == 1);
	party->end.verbs->get_cq_event(party->end.channel, &cq, &context);
	consume(party, k);
}

static void wait_for(struct party *party, uint64_t *k, uint64_t until)
{
	consume(party, k);
	while (*k < until)
		doze(party, k, until);
}

typedef void (*role)(struct party *party);

/* Runs one role in a child made before any device, the other here. */
static void in_two_processes(role child, role parent)
{
	struct party party = { 0 };
	int sockets[2], status;
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		close(sockets[0]);
		party_make(&party, sockets[1]);
		child(&party);
		_exit(0);
	}
	close(sockets[1]);
	party_make(&party, sockets[0]);
	parent(&party);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	rig_end_free(&party.end);
	close(sockets[0]);
}

enum { STREAM = 50000, ROUNDS = 5000 };

/* Every half CREDIT of messages is answered by one, so that receives never run out. */
static void stream_out(struct party *party)
{
	uint64_t answers = 0;

	for (uint64_t k = 0; k < STREAM; k++) {
		if (k >= CREDIT && k % (CREDIT / 2) == 0)
			wait_for(party, &answers, k / (CREDIT / 2) - 1);
		say(party, k);
	}
	wait_for(party, &answers, STREAM / (CREDIT / 2));
	must(soft_qp_counters(party->end.qp)->rnr == 0);
}

static void stream_in(struct party *party)
{
	uint64_t k = 0, answered = 0;

	while (k < STREAM) {
		wait_for(party, &k, k + 1);
		for (; answered < k / (CREDIT / 2); answered++)
			say(party, answered);
	}
	must(soft_qp_counters(party->end.qp)->arrivals == STREAM);
}

static void SD_15_messages_between_processes(void **state)
{
	(void)state;
	in_two_processes(stream_out, stream_in);
	in_two_processes(stream_in, stream_out);
}

static void pause_some(uint64_t round)
{
	for (volatile uint64_t i = 0; i < round * 2654435761u % 1021; i++)
		;
}

/* Spread so that about half of the looks find the message: the two sides meet in the middle. */
static void pause_short(uint64_t round)
{
	uint64_t steps = (round * 2654435761u >> 7) % 100;

	for (volatile uint64_t i = 0; i < steps; i++)
		;
}

/* Each end arms just when the other answers: a missed event would leave both asleep. */
static void duel_first(struct party *party)
{
	uint64_t k = 0;

	for (uint64_t round = 0; round < ROUNDS; round++) {
		pause_some(round);
		say(party, round);
		while (k <= round)
			doze(party, &k, round + 1);
	}
}

static void duel_second(struct party *party)
{
	uint64_t k = 0;

	for (uint64_t round = 0; round < ROUNDS; round++) {
		while (k <= round)
			doze(party, &k, round + 1);
		pause_some(round + 7);
		say(party, round);
	}
}

static void SD_07_no_event_is_missed_in_the_arm_race(void **state)
{
	(void)state;
	in_two_processes(duel_first, duel_second);
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

enum { SIGNAL_AT = 65536, LITMUS = 100000, LINES = 24 };

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
 * A message whose payload goes to lines that the peer has just dirtied: the poster's stores, the
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
		consume(party, &k);
		signal_peer(party, round);
	}
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
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	in_two_processes(litmus_post, litmus_arm);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

static void await_close(struct party *party)
{
	char byte;

	must(read(party->socket, &byte, 1) == 0);
}

static void die_early(struct party *party)
{
	uint64_t k = 0;

	wait_for(party, &k, 1);
}

static void survive(struct party *party)
{
	struct rig_end *end = &party->end;
	uint64_t k = 1;

	say(party, 0);
	await_close(party);
	rig_await(end->send_cq, 0, IBV_WC_SUCCESS);
	for (; k < 20; k++) /* into the pages of a process that is no more */
		say(party, k);
	rig_await(end->send_cq, 16, IBV_WC_SUCCESS);
	soft_qp_peer_gone(end->qp);
	say(party, 32);
	rig_expect_none(end->send_cq);
	rig_clock += 8192;
	rig_expect(end->send_cq, 32, IBV_WC_RETRY_EXC_ERR);
	for (uint64_t i = 0; i < CREDIT; i++)
		rig_expect(end->recv_cq, 1000 + i, IBV_WC_WR_FLUSH_ERR);
}

static void SD_15_death_of_the_peer(void **state)
{
	(void)state;
	in_two_processes(die_early, survive);
}

RIG_TABLE(process, cmocka_unit_test(SD_15_messages_between_processes),
	  cmocka_unit_test(SD_15_death_of_the_peer),
	  cmocka_unit_test(SD_07_arming_and_posting_at_once),
	  cmocka_unit_test(SD_07_no_event_is_missed_in_the_arm_race));
