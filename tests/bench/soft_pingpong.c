/* SPDX-License-Identifier: MIT */
/*
 * The cost of the soft device between two processes: a round trip of 8-byte WRITE_WITH_IMM, a one-way stream of
 * 64-byte messages, and 64 KiB writes. Each process runs on a core of its own, or wherever the scheduler puts it.
 *
 *     soft_pingpong [rounds]
 *     soft_pingpong sizes ROUNDS BYTES...	a line for each size up to 65536: bytes, ns for a round trip in which both
 *						read all of it; wherever the scheduler puts them
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "core/device/soft/soft.h"
#include "tests/soft/fds.h"

enum { DEPTH = 4096, RING = 1 << 20, SPINS = 20000 };

struct hello {
	struct soft_address address;
	uint64_t ring;
	uint32_t rkey;
	int has_wake;
};

struct end {
	const struct shunt_verbs *verbs;
	struct ibv_context *context;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_pd *pd;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	char *ring;
	struct hello peer;
	int socket;
	int side;
};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void replenish(struct end *end, int count)
{
	struct ibv_recv_wr wr[64] = { 0 }, *bad;

	while (count) {
		int n = count < 64 ? count : 64;

		for (int i = 0; i < n; i++)
			wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
		if (ibv_post_recv(end->qp, wr, &bad))
			die("post_recv");
		count -= n;
	}
}

static void bring_up(struct end *end)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7,
				    .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };
	struct hello mine = { .ring = (uint64_t)end->ring, .rkey = end->mr->rkey };
	int fds[2];

	end->verbs->modify_qp(end->qp, &attr, SHUNT_TO_INIT);
	replenish(end, DEPTH);
	soft_qp_export(end->qp, &mine.address, fds);
	if (!fds_send(end->socket, &mine, sizeof(mine), fds) ||
	    !fds_receive(end->socket, &end->peer, sizeof(end->peer), fds))
		die("hello");
	if (soft_qp_import(end->qp, &end->peer.address, fds))
		die("import");
	attr.qp_state = IBV_QPS_RTR;
	attr.dest_qp_num = end->peer.address.qp_num;
	end->verbs->modify_qp(end->qp, &attr, SHUNT_TO_RTR);
	attr.qp_state = IBV_QPS_RTS;
	end->verbs->modify_qp(end->qp, &attr, SHUNT_TO_RTS);
}

static void make(struct end *end, int socket, int side)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { DEPTH, DEPTH, 4, 1, 64 } };
	size_t bytes;

	end->socket = socket;
	end->side = side;
	end->context = soft_open(NULL, &end->verbs);
	end->channel = end->verbs->create_comp_channel(end->context);
	end->cq = end->verbs->create_cq(end->context, 2 * DEPTH, NULL, end->channel, 0);
	end->pd = end->verbs->alloc_pd(end->context);
	init.send_cq = init.recv_cq = end->cq;
	end->qp = end->verbs->create_qp(end->pd, &init);
	end->ring = soft_arena(end->pd, &bytes);
	end->mr = end->verbs->register_mr(end->pd, end->ring, RING + 65536,
					  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	memset(end->ring, 1, RING + 65536);
	bring_up(end);
}

/* A slot of the SQ is freed by a signaled WR that was polled: signal one of 256. */
static void post(struct end *end, const void *from, uint32_t bytes, uint32_t offset, uint64_t n)
{
	struct ibv_sge sge = { (uint64_t)from, bytes, end->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
				  .send_flags = bytes <= 64 ? IBV_SEND_INLINE : 0, .imm_data = 7 }, *bad;

	wr.wr.rdma.remote_addr = end->peer.ring + offset;
	wr.wr.rdma.rkey = end->peer.rkey;
	if (n % 256 == 255)
		wr.send_flags |= IBV_SEND_SIGNALED;
	if (ibv_post_send(end->qp, &wr, &bad))
		die("post_send");
}

/* Number of receives that were polled; waits for at least one. Yields where cores are short. */
static int receive(struct end *end)
{
	struct ibv_wc wc[64];
	int got, receives = 0;

	for (int spins = 1;; spins++) {
		got = ibv_poll_cq(end->cq, 64, wc);
		for (int i = 0; i < got; i++) {
			if (wc[i].status)
				exit(2);
			receives += !!(wc[i].opcode & IBV_WC_RECV);
		}
		if (receives)
			return receives;
		if (spins % SPINS == 0)
			sched_yield();
	}
}

static double pingpong(struct end *end, uint64_t rounds)
{
	double start = now();
	uint64_t value = 42;

	for (uint64_t i = 0; i < rounds; i++) {
		if (end->side == 0)
			post(end, &value, 8, (uint32_t)(i * 64) % RING, i);
		replenish(end, receive(end));
		if (end->side == 1)
			post(end, &value, 8, (uint32_t)(i * 64) % RING, i);
	}
	return (now() - start) / (double)rounds;
}

/* Both copy what comes, as a program's receive does. */
static double pingpong_of(struct end *end, uint32_t bytes, uint64_t rounds)
{
	static char to[65536];
	char *from = end->ring + RING;
	double start = now();

	for (uint64_t i = 0; i < rounds; i++) {
		uint32_t offset = (uint32_t)(i * 65536) % RING;

		if (end->side == 0)
			post(end, from, bytes, offset, i);
		replenish(end, receive(end));
		memcpy(to, end->ring + offset, bytes);
		if (end->side == 1)
			post(end, from, bytes, offset, i);
	}
	return (now() - start) / (double)rounds;
}

/* Side 0 sends; side 1 answers every half queue with one message, which is the credit. */
static double stream(struct end *end, uint32_t bytes, uint64_t count)
{
	uint64_t credit = DEPTH / 4, half = credit / 2, returned = 0;
	char *from = end->ring + RING;
	double start = now();
	volatile char sink = 0;

	for (uint64_t i = 0; i < count; end->side ? 0 : i++) {
		if (end->side == 0) {
			if (i >= credit) {
				int got = receive(end);

				replenish(end, got);
				credit += (uint64_t)got * half;
			}
			post(end, from, bytes, (uint32_t)(i * bytes) % RING, i);
			continue;
		}
		int got = receive(end);

		for (int k = 0; k < got; k++, i++)
			for (uint32_t b = 0; b < bytes; b += 64)
				sink = sink + end->ring[(i * bytes + b) % RING];
		replenish(end, got);
		while (i - returned >= half) {
			returned += half;
			post(end, from, 8, 0, returned / half);
		}
	}
	/* The last credits say that everything was read. */
	while (end->side == 0 && credit < count + DEPTH / 4) {
		int got = receive(end);

		replenish(end, got);
		credit += (uint64_t)got * half;
	}
	return (now() - start) / (double)count;
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* The cost of a post while nobody looks: the queue is filled, then drained by the other side. */
static double lone_post(struct end *end)
{
	double start;
	uint64_t value = 1;
	char byte = 0;

	if (end->side == 1) {
		(void)!read(end->socket, &byte, 1);
		for (int left = DEPTH / 2; left > 0;) {
			int got = receive(end);

			replenish(end, got);
			left -= got;
		}
		return 0;
	}
	start = now();
	for (uint64_t i = 0; i < DEPTH / 2; i++)
		post(end, &value, 8, (uint32_t)(i * 64) % RING, i);
	start = now() - start;
	(void)!write(end->socket, &byte, 1);
	return start / (DEPTH / 2);
}

static void run(int socket, int side, int pinned, uint64_t rounds)
{
	struct end end = { 0 };
	double lone, trip, message, bulk;

	if (pinned)
		pin(side);
	make(&end, socket, side);
	pingpong(&end, rounds / 10 + 1);
	lone = lone_post(&end);
	trip = pingpong(&end, rounds);
	message = stream(&end, 64, rounds / 1024 * 4096);
	bulk = stream(&end, 65536, (rounds / 16384 + 1) * 1024);
	if (side == 0)
		printf("%s: post %.1f ns, round trip of 8 bytes %.0f ns, 64-byte message %.1f ns "
		       "(%.1f M/s), 64 KiB writes %.1f GB/s\n",
		       pinned ? "pinned" : "unpinned", lone, trip, message, 1e3 / message, 65536 / bulk);
	fflush(stdout);
	_exit(0);
}

static void run_sizes(int socket, int side, uint64_t rounds, char **sizes)
{
	struct end end = { 0 };

	make(&end, socket, side);
	pingpong(&end, 1000);
	for (; *sizes; sizes++) {
		uint32_t bytes = (uint32_t)strtoul(*sizes, NULL, 0);
		double trip;

		if (!bytes || bytes > 65536)
			exit(2);
		trip = pingpong_of(&end, bytes, rounds);
		if (side == 0)
			printf("%u %.0f\n", bytes, trip);
	}
	fflush(stdout);
	_exit(0);
}

/* sizes: NULL for the figures of one size each. */
static int pair(int pinned, uint64_t rounds, char **sizes)
{
	int sockets[2], status, failed = 0;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets))
		die("socketpair");
	for (int side = 0; side < 2; side++)
		if (!fork()) {
			if (sizes)
				run_sizes(sockets[side], side, rounds, sizes);
			run(sockets[side], side, pinned, rounds);
		}
	for (int side = 0; side < 2; side++) {
		wait(&status);
		failed |= status;
	}
	close(sockets[0]);
	close(sockets[1]);
	return failed;
}

int main(int argc, char **argv)
{
	uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 0) : 1000000;

	if (argc > 3 && !strcmp(argv[1], "sizes"))
		return pair(0, strtoull(argv[2], NULL, 0), argv + 3) ? 1 : 0;
	return pair(1, rounds, NULL) | pair(0, rounds, NULL) ? 1 : 0;
}
