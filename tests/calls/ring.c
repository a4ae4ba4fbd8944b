/* SPDX-License-Identifier: MIT */
#include "ring.h"
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>


void fail(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	fflush(stdout);
	exit(1);
}

bool inlined;

static long ring_enter(struct ring *ring, unsigned int count, unsigned int least,
		       unsigned int flags)
{
#ifdef __x86_64__
	register long r10 __asm__("r10") = flags;
	register long r8 __asm__("r8") = 0;
	register long r9 __asm__("r9") = 0;
	long result;

	if (inlined) {
		__asm__ volatile("syscall"
				 : "=a"(result)
				 : "a"(__NR_io_uring_enter), "D"((long)ring->fd), "S"((long)count),
				   "d"((long)least), "r"(r10), "r"(r8), "r"(r9)
				 : "rcx", "r11", "memory");
		return result;
	}
#endif
	return syscall(__NR_io_uring_enter, ring->fd, count, least, flags, NULL, 0);
}

bool ring_make(struct ring *ring, unsigned int flags)
{
	struct io_uring_params p = { .flags = flags };
	char *sq, *cq;

	ring->fd = (int)syscall(__NR_io_uring_setup, ENTRIES, &p);
	if (ring->fd < 0)
		return false;
	ring->stride = 64U << !!(flags & (1U << 10));
	sq = mmap(NULL, p.sq_off.array + p.sq_entries * 4, PROT_READ | PROT_WRITE, MAP_SHARED,
		  ring->fd, IORING_OFF_SQ_RING);
	cq = mmap(NULL, p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe),
		  PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, IORING_OFF_CQ_RING);
	ring->sqes = mmap(NULL, p.sq_entries * ring->stride, PROT_READ | PROT_WRITE, MAP_SHARED,
			  ring->fd, IORING_OFF_SQES);
	if (sq == MAP_FAILED || cq == MAP_FAILED || ring->sqes == MAP_FAILED)
		fail("mmap");
	ring->head = (unsigned int *)(sq + p.sq_off.head);
	ring->tail = (unsigned int *)(sq + p.sq_off.tail);
	ring->mask = (unsigned int *)(sq + p.sq_off.ring_mask);
	ring->array = flags & NO_SQARRAY ? NULL : (unsigned int *)(sq + p.sq_off.array);
	ring->cq_head = (unsigned int *)(cq + p.cq_off.head);
	ring->cq_tail = (unsigned int *)(cq + p.cq_off.tail);
	ring->cq_mask = (unsigned int *)(cq + p.cq_off.ring_mask);
	ring->cqes = (struct io_uring_cqe *)(cq + p.cq_off.cqes);
	ring->maps[0] = sq;
	ring->bytes[0] = p.sq_off.array + p.sq_entries * 4;
	ring->maps[1] = cq;
	ring->bytes[1] = p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe);
	ring->maps[2] = ring->sqes;
	ring->bytes[2] = p.sq_entries * ring->stride;
	ring->waiting = 0;
	/* cppcheck-suppress memleak ; the ring keeps its mappings */
	return true;
}

struct io_uring_sqe *entry(struct ring *ring, int opcode, int fd, const void *addr,
				  unsigned int len)
{
	unsigned int position = *ring->tail + ring->waiting, index = position & *ring->mask;
	struct io_uring_sqe *sqe;

	if (ring->array) {	/* not by position, so that the array matters */
		index = *ring->mask - index;
		ring->array[position & *ring->mask] = index;
	}
	sqe = (struct io_uring_sqe *)(ring->sqes + (size_t)index * ring->stride);
	memset(sqe, 0, ring->stride);
	sqe->opcode = (uint8_t)opcode;
	sqe->fd = fd;
	sqe->addr = (uintptr_t)addr;
	sqe->len = len;
	sqe->user_data = ring->waiting++;
	return sqe;
}

void submit(struct ring *ring, int *results)
{
	unsigned int count = ring->waiting, seen = 0;
	long taken;

	__atomic_store_n(ring->tail, *ring->tail + count, __ATOMIC_RELEASE);
	ring->waiting = 0;
	taken = ring_enter(ring, count, count, IORING_ENTER_GETEVENTS);
	if (taken != count)
		fail("io_uring_enter");
	while (seen < count) {
		unsigned int head = *ring->cq_head;

		if (head == __atomic_load_n(ring->cq_tail, __ATOMIC_ACQUIRE)) {
			if (syscall(__NR_io_uring_enter, ring->fd, 0, 1, IORING_ENTER_GETEVENTS,
				    NULL, 0) < 0)
				fail("io_uring_enter");
			continue;
		}
		results[ring->cqes[head & *ring->cq_mask].user_data] =
			ring->cqes[head & *ring->cq_mask].res;
		__atomic_store_n(ring->cq_head, head + 1, __ATOMIC_RELEASE);
		seen++;
	}
}

int one(struct ring *ring)
{
	int result = 0;

	submit(ring, &result);
	return result;
}

void ring_unmap(struct ring *ring)
{
	for (int i = 0; i < 3; i++)
		munmap(ring->maps[i], ring->bytes[i]);
}
