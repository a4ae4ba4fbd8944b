/* SPDX-License-Identifier: MIT */
/*
 * One copy or two between two processes of one host. The receiver reads the sender's buffer itself
 * (process_vm_readv, as an RDMA READ would), or both copy through a ring of shared memory. Nothing
 * of Shunt is in it: no locks, no sleeping, one stream, each process on a core of its own.
 *
 *     one_copy [rounds]		medians, in Gbit/s, by block and ring
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/plain.h"

#define TOTAL (1ul << 30)	/* bytes of a measurement */
#define RING_MAX (4ul << 20)
#define BLOCK_MAX (8ul << 20)
#define PIECE 65536ul		/* what a side moves before it tells the other */

struct shared {
	_Alignas(64) _Atomic size_t head;
	_Alignas(64) _Atomic size_t tail;
	_Alignas(64) double seconds;
	_Alignas(4096) char ring[RING_MAX];
};

static struct shared *shared;
static char *from, *to;	/* the sender's buffer, the receiver's */
static size_t ring;	/* bytes of it in use; 0: one copy */

static void on_core(int core)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(core, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* One block, up to offset `end` of all. */
static void send_block(size_t end, size_t block)
{
	if (!ring) {	/* it lies there; wait until it has been read */
		shared->head = end;
		while (shared->tail < end)
			;
		return;
	}
	for (size_t at = shared->head; at < end; shared->head = at) {
		size_t room, place = at % ring, part;

		while (!(room = ring - (at - shared->tail)))
			;
		part = least(least(room, ring - place), least(end - at, PIECE));
		memcpy(shared->ring + place, from + (block - (end - at)), part);
		at += part;
	}
}

static void receive_block(pid_t sender, size_t end, size_t block)
{
	if (!ring) {
		struct iovec mine = { to, block }, theirs = { from, block };

		while (shared->head < end)
			;
		if (process_vm_readv(sender, &mine, 1, &theirs, 1, 0) != (ssize_t)block) {
			perror("process_vm_readv");
			shared->tail = TOTAL;	/* do not wait for me */
			_exit(1);
		}
		shared->tail = end;
		return;
	}
	for (size_t at = shared->tail; at < end; shared->tail = at) {
		size_t filled, place = at % ring, part;

		while (!(filled = shared->head - at))
			;
		part = least(least(filled, ring - place), least(end - at, PIECE));
		memcpy(to + (block - (end - at)), shared->ring + place, part);
		at += part;
	}
}

/* Gbit/s; 0 where it cannot be done. */
static double measure(size_t block)
{
	pid_t sender = getpid(), receiver;
	int status;

	shared->head = shared->tail = 0;
	receiver = fork();
	if (!receiver) {
		double start;

		on_core(1);
		memset(to, 2, block);
		start = now();
		for (size_t end = block; end <= TOTAL; end += block)
			receive_block(sender, end, block);
		shared->seconds = now() - start;
		_exit(0);
	}
	on_core(0);
	for (size_t end = block; end <= TOTAL; end += block)
		send_block(end, block);
	waitpid(receiver, &status, 0);
	return status ? 0 : TOTAL * 8 / shared->seconds / 1e9;
}

static int ascending(const void *a, const void *b)
{
	return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

int main(int argc, char **argv)
{
	static const size_t rings[] = { 0, 256 << 10, 1 << 20, RING_MAX };
	int rounds = argc > 1 ? atoi(argv[1]) : 5;
	double results[4][64];

	rounds = rounds < 1 ? 1 : rounds > 64 ? 64 : rounds;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	from = mmap(NULL, BLOCK_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	to = mmap(NULL, BLOCK_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED || from == MAP_FAILED || to == MAP_FAILED || sysconf(_SC_NPROCESSORS_ONLN) < 2) {
		fprintf(stderr, "one_copy: needs two cores and 24 MiB\n");
		return 1;
	}
	memset(from, 1, BLOCK_MAX);
	memset(shared->ring, 1, RING_MAX);
	printf("    block   one copy   two, through a ring of\n                          256K        1M        4M   Gbit/s\n");
	for (size_t block = 65536; block <= BLOCK_MAX; block *= 2) {
		for (int round = 0; round < rounds; round++)
			for (int i = 0; i < 4; i++) {
				ring = rings[i];
				results[i][round] = measure(block);
			}
		printf("%8zuK", block >> 10);
		for (int i = 0; i < 4; i++) {
			qsort(results[i], rounds, sizeof(double), ascending);
			printf(" %9.1f", results[i][rounds / 2]);
		}
		printf("\n");
		fflush(stdout);
	}
	return 0;
}
