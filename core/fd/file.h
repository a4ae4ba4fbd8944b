/* SPDX-License-Identifier: MIT */
/*
 * The descriptors of this process: one table, indexed by number.
 *
 * A slot is NULL for everything that is not Shunt's business; a call on such a descriptor costs one
 * look at the table. Otherwise it points at a struct that begins with a shunt_file and whose kind
 * says which. Entries are type-stable: the memory of a stream is only ever reused for streams. So a
 * thread that holds a stale pointer may take its lock and look again.
 *
 * A program whose threads close a connection and use it, too, must not meet one of ours at that number. It would send
 * into our descriptor, and where that is the socket of a claim, to its own peer. So the number of a closed stream or
 * epoll set is marked in the table (SHUNT_FILE_CLOSED). The next call on it waits until no thread makes a descriptor.
 * If nothing is open there then, the call is told EBADF. Else the number is the program's: the mark says so
 * (SHUNT_FILE_OTHER), and further calls cost no more until close or fclose ends that file, too. A closedir, which
 * closes inside libc, goes unnoticed.
 */
#ifndef SHUNT_CORE_FD_FILE_H
#define SHUNT_CORE_FD_FILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum shunt_file_kind {
	SHUNT_FILE_STREAM = 1,	/* a TCP socket: struct shunt_stream */
	SHUNT_FILE_EPOLL,	/* an epoll descriptor: struct shunt_epset */
	SHUNT_FILE_RING,	/* a ring of io_uring: struct shunt_uring_file (uring_file.h) */
	SHUNT_FILE_PRIVATE,	/* Shunt's own descriptor: for the program it does not exist */
	/* The program has closed the number: what is open there may be Shunt's, on its way up (own_fds.c). */
	SHUNT_FILE_CLOSED,
	SHUNT_FILE_YOUNG,	/* a TCP socket without a stream: struct shunt_young (young.h) */
};

struct shunt_file {
	enum shunt_file_kind kind;
};

#define SHUNT_HELPERS 64	/* libibverbs alone loads some twenty */
#define SHUNT_FILES_MAX 1048576	/* descriptors from this number on stay the kernel's */
#define SHUNT_FILES_RUN 64	/* numbers of which one bit tells whether a slot was ever used */
#define SHUNT_FILES_WORDS (SHUNT_FILES_MAX / SHUNT_FILES_RUN / 64)

struct shunt_files {
	size_t limit;				/* descriptors below this number have a slot */
	_Atomic unsigned int making;		/* threads that are making descriptors of our own (own_fds.c) */
	_Atomic unsigned int made;		/* how often somebody has begun to */
	_Atomic unsigned int closing;		/* threads that are closing what they do not know */
	struct shunt_file closed;		/* in the slots of all numbers of this kind */
	/* Code of others that works for us, and so may use our descriptors: libraries of a device. Written before
	 * the count. */
	struct { const char *from, *to; } helpers[SHUNT_HELPERS];
	_Atomic unsigned int helper_count;
	/* A bit for each run of numbers, set for good with its first slot. Our own descriptors are far above the
	 * program's: a sweep, as each fork makes several, would else read thousands of slots of nothing. */
	_Atomic uint64_t used[SHUNT_FILES_WORDS];
	_Atomic(struct shunt_file *) slot[];
};

static inline struct shunt_file *shunt_files_get(struct shunt_files *files, int fd)
{
	if ((size_t)(unsigned int)fd >= files->limit)
		return NULL;
	return atomic_load_explicit(&files->slot[fd], memory_order_acquire);
}

static inline bool shunt_files_closed(struct shunt_files *files, int fd)
{
	return shunt_files_get(files, fd) == &files->closed;
}

/* Before the slot is filled, so that a sweep that begins later looks at it. */
static inline void shunt_files_use(struct shunt_files *files, int fd)
{
	size_t run = (size_t)fd / SHUNT_FILES_RUN;
	uint64_t bit = 1ull << run % 64;

	if (!(atomic_load_explicit(&files->used[run / 64], memory_order_relaxed) & bit))
		atomic_fetch_or(&files->used[run / 64], bit);
}

static inline void shunt_files_set(struct shunt_files *files, int fd, struct shunt_file *file)
{
	if ((size_t)(unsigned int)fd >= files->limit)
		return;
	if (file)
		shunt_files_use(files, fd);
	atomic_store_explicit(&files->slot[fd], file, memory_order_release);
}

static inline void shunt_files_close(struct shunt_files *files, int fd)
{
	shunt_files_set(files, fd, &files->closed);
}

/* The lowest number from fd on whose slot is not NULL; -1: none. */
int shunt_files_next(struct shunt_files *files, int fd);

#define shunt_files_each(files, fd) \
	for (int fd = shunt_files_next(files, 0); fd >= 0; fd = shunt_files_next(files, fd + 1))

#endif
