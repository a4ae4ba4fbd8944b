/* SPDX-License-Identifier: MIT */
/*
 * Submissions to rings of io_uring are looked at before the kernel has them.
 *
 * - An entry that names no descriptor of ours passes.
 * - IORING_OP_EPOLL_CTL for a set and a member that the engine knows is done here, as by epoll_ctl(). In its place the
 *   kernel gets an entry with that result. The program's entry is put back once the kernel has taken it.
 * - IORING_OP_CLOSE ends the number's entry in the table.
 * - Any other entry, or registration, that names a stream sends it back to TCP before, at its exact byte, and for good.
 * - A submission that cannot be understood sends all streams back (shunt_uring_unwatched).
 *
 * An EPOLL_CTL that waits for another entry (a chain, a drain) cannot be done before its time. Then the stream goes back
 * to TCP, and the kernel does it.
 *
 * The kernel takes as many entries as were looked at, and no more: another thread may have added some. Several
 * threads may submit by system calls of their own. Then a lock of the ring is held from the look until the kernel has the
 * entries. Nobody waits for completions under it: the call is made in two halves. liburing's functions do not allow two
 * threads at once.
 */
#ifndef SHUNT_PRELOAD_URING_WATCH_H
#define SHUNT_PRELOAD_URING_WATCH_H

#include "core/fd/uring_file.h"
#include "preload/process.h"

#define SHUNT_URING_CHANGES 16
#define SHUNT_URING_WORDS 4	/* of an entry, from its beginning, that may be changed */

struct shunt_uring_look {
	const struct shunt_uring_sq *sq;
	struct shunt_uring_file *ring;	/* NULL: it is not in the table */
	bool serves;			/* entries may be changed, and are put back */
	uint32_t from, to;		/* positions. A look lowers `to` where there is no room for more changes */
	uint32_t count;
	struct shunt_uring_change {
		uint32_t position;
		uint64_t *at;
		uint64_t before[SHUNT_URING_WORDS], after[SHUNT_URING_WORDS];
	} changes[SHUNT_URING_CHANGES];
};

/* Looks at [from, to). The caller has set `sq`, `ring`, `serves`, `from` and `to`. errno is kept. */
void shunt_uring_look(struct shunt_uring_look *look);
/* Puts back what the kernel has taken. errno is kept. */
void shunt_uring_restore(const struct shunt_uring_look *look);
/* `count` numbers at `numbers` are given to a ring. errno is kept. */
void shunt_uring_look_numbers(const void *numbers, uint32_t count);
/* A ring, or another operation past libc's calls, is about to use the number. errno is kept. */
void shunt_uring_use(int fd);
/* io_uring_enter(2), with errno. */
long shunt_uring_enter(int fd, uint32_t count, uint32_t least, uint32_t flags, const void *argument,
		       size_t bytes);

#endif
