/* SPDX-License-Identifier: MIT */
/*
 * A ring of io_uring, made and used by syscall(): no library is needed. Constants that older headers lack are here. Of a
 * program that knows nothing of Shunt.
 */
#ifndef TESTS_CALLS_RING_H
#define TESTS_CALLS_RING_H

#include <linux/io_uring.h>
#include <stdbool.h>
#include <stddef.h>

#define ENTRIES 32	/* of its submission queue */
#define NO_SQARRAY (1U << 16)

struct ring {
	int fd;
	unsigned int *head, *tail, *mask, *array, *cq_head, *cq_tail, *cq_mask;
	char *sqes;
	struct io_uring_cqe *cqes;
	unsigned int stride, waiting;
	void *maps[3];
	size_t bytes[3];
};

extern bool inlined;	/* submit by an instruction */

_Noreturn void fail(const char *what);
/* False: the kernel refuses it, for the reason in errno. */
bool ring_make(struct ring *ring, unsigned int flags);
/* As before close(): the number stays. */
void ring_unmap(struct ring *ring);
/* The next entry, which waits for submit(). */
struct io_uring_sqe *entry(struct ring *ring, int opcode, int fd, const void *addr, unsigned int len);
/* Submits what is waiting, and waits for it. Its results by the order of the entries. */
void submit(struct ring *ring, int *results);
/* One entry alone: its result. */
int one(struct ring *ring);

#endif
