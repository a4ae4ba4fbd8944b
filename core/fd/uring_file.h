/* SPDX-License-Identifier: MIT */
/*
 * A ring of io_uring(7) that the program has made, in its slot of the table. So close(), dup2() and their like end the
 * entry as any other.
 */
#ifndef SHUNT_CORE_FD_URING_FILE_H
#define SHUNT_CORE_FD_URING_FILE_H

#include <sys/types.h>
#include "core/fd/uring_sq.h"

struct shunt_uring_file {
	struct shunt_file file;
	_Atomic bool used;		/* the entry is taken */
	_Atomic bool many;		/* more than one thread submits, by system calls of its own */
	uint32_t flags;			/* IORING_SETUP_*; written before the entry is in the table, as by the next */
	uint32_t head_at, tail_at, array_at;	/* offsets in the queue's memory, bytes */
	struct shunt_uring_sq sq;	/* its queue, once `ready`; `count` is written as `flags` is */
	_Atomic bool ready;
	_Atomic pid_t maker;		/* the process that has made it; 0: it has forked since, and others may submit, too */
	/* The program's mappings; NULL: not yet. Any thread. */
	_Atomic(unsigned char *) queue, entries, completions;
	_Atomic uint32_t seen;		/* the position behind the last that was looked at */
	_Atomic(void *) submitter;	/* the first thread that has submitted, by its thread pointer */
	_Atomic pid_t lock;		/* 0, or the process of the thread that holds it: a fork leaves it stale */
	/* While `many` is false: the submitter's process and step (preload/uring_watch.c). A fork leaves it stale. */
	_Atomic uint32_t step;
};

/* Its queue. NULL: it is not known where that lies. */
static inline const struct shunt_uring_sq *shunt_uring_file_sq(const struct shunt_uring_file *ring)
{
	return atomic_load_explicit(&ring->ready, memory_order_acquire) ? &ring->sq : NULL;
}
/* A mapping is known now: describes the queue if both are. */
void shunt_uring_file_describe(struct shunt_uring_file *ring);
/* A mapping that begins at this address is one of a ring in the table. Any thread. */
bool shunt_uring_file_knows(struct shunt_files *files, uintptr_t at);
/*
 * The kernel has taken entries that nobody had looked at: somebody submits by instructions of his own, or a thread of the
 * kernel does. `head`: where it stands. Any thread.
 */
bool shunt_uring_file_escaped(const struct shunt_uring_file *ring, uint32_t head);
/* Does so for all rings of the process. */
bool shunt_uring_file_any_escaped(struct shunt_files *files, pid_t pid);
/* In the parent, after a fork: its rings are the child's, too. */
void shunt_uring_file_share(struct shunt_files *files);

#endif
