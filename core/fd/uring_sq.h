/* SPDX-License-Identifier: MIT */
/*
 * A submission queue of io_uring(7), as the program's memory has it: which entries name descriptors.
 *
 * The memory is hostile. The program may write to it meanwhile, or have unmapped it. So each entry is copied once, by
 * copies that survive a fault (core/base/copy.h), and only the copy is judged. Indexes are masked or refused as the
 * kernel does it.
 *
 * An entry that names no number of the table passes at the cost of two loads. preload/uring_watch.c decides about the
 * others.
 */
#ifndef SHUNT_CORE_FD_URING_SQ_H
#define SHUNT_CORE_FD_URING_SQ_H

#include <stdbool.h>
#include <stdint.h>
#include "core/base/copy.h"
#include "core/fd/file.h"

/* struct io_uring_sqe as far as it matters here, with names for all systems. Headers of some are too old for it. */
struct shunt_sqe {
	uint8_t opcode, flags;
	uint16_t ioprio;
	int32_t fd;
	uint64_t off, addr;
	uint32_t len, op_flags;
	uint64_t user_data;
	uint16_t buffer, personality;
	int32_t other;	/* splice_fd_in, file_index */
	uint64_t rest[2];
};

/* flags: IOSQE_* */
enum {
	SHUNT_SQE_FIXED = 1 << 0,
	SHUNT_SQE_DRAIN = 1 << 1,
	SHUNT_SQE_LINK = 1 << 2,
	SHUNT_SQE_HARDLINK = 1 << 3,
	SHUNT_SQE_BUFFER = 1 << 5,
};

enum { SHUNT_SQE_NOP, SHUNT_SQE_EPOLL_CTL = 29 };	/* opcodes that are written, too */

enum shunt_sqe_kind {
	SHUNT_SQE_PASSES,	/* names no descriptor that could be ours */
	SHUNT_SQE_USES,		/* `fd` */
	SHUNT_SQE_READS,	/* the same, and sends nothing there */
	SHUNT_SQE_POLLS,	/* `fd`: one that is polled, or an epoll set whose events are asked for */
	SHUNT_SQE_CLOSES,	/* `fd` */
	SHUNT_SQE_SPLICES,	/* `fd` and `other` */
	SHUNT_SQE_REGISTERS,	/* `len` numbers at `addr` */
	SHUNT_SQE_SENDS,	/* `fd`, and perhaps numbers in the message at `addr` */
	SHUNT_SQE_CONTROLS,	/* `fd` is an epoll set, `off` a member */
	SHUNT_SQE_UNKNOWN,	/* an operation newer than this table */
	SHUNT_SQE_LOST,		/* the queue's memory is not there */
};

struct shunt_uring_sq {
	const uint32_t *head, *tail;	/* the program writes *tail, the kernel *head */
	const uint32_t *array;		/* indexes of entries, by position; NULL: entries are used by position */
	unsigned char *entries;
	uint32_t count;			/* of entries: a power of two, not 0 */
	uint32_t stride;		/* bytes from entry to entry */
	bool mixed;			/* some operations have two entries */
};

struct shunt_uring_walk {
	const struct shunt_uring_sq *sq;
	uint32_t at, end;	/* positions: the next to look at, and the one behind the last */
	bool linked;		/* the entry before `at` is linked to that one */
	/* The entry that was found: its position, where it lies, a copy, and whether it may wait for another one. */
	uint32_t position;
	struct shunt_sqe *where;
	struct shunt_sqe sqe;
	bool chained;
};

/* Which of its numbers an operation names. */
enum shunt_sqe_kind shunt_uring_sq_kind(uint8_t opcode);
/* *value, or false: the memory is not there. */
static inline bool shunt_uring_sq_load(const uint32_t *at, uint32_t *value)
{
	return shunt_copy_4(value, at);
}
/* Entries [from, to), at most a whole queue, all pass. False: perhaps not all. As a walk that finds none, and quicker. */
bool shunt_uring_sq_passes(const struct shunt_uring_sq *sq, uint32_t from, uint32_t to,
			   struct shunt_files *files);
/* Begins with entries [from, to), at most a whole queue. `sq` stays while the walk lasts. */
void shunt_uring_sq_begin(struct shunt_uring_walk *walk, const struct shunt_uring_sq *sq,
			  uint32_t from, uint32_t to);
/* The next entry that is to be looked at, SHUNT_SQE_PASSES at the end. `files`: an entry whose number has no slot passes. */
enum shunt_sqe_kind shunt_uring_sq_next(struct shunt_uring_walk *walk, struct shunt_files *files);

#endif
