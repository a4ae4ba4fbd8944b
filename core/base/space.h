/* SPDX-License-Identifier: MIT */
/*
 * Address space of a process that has limited its own (RLIMIT_AS, setrlimit(2)). The limit leaves room beside the
 * program's mappings, and that is the program's. Shunt takes a quarter of it at most, for its service thread and for
 * links. Each link maps an arena of ours and as much of the peer's segment as it may. All numbers are bytes.
 */
#ifndef SHUNT_CORE_BASE_SPACE_H
#define SHUNT_CORE_BASE_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#define SHUNT_SPACE_UNLIMITED UINT64_MAX
#define SHUNT_SPACE_PART 4	/* Shunt takes one in so many */

/* A thread: its stack, and what becomes of it in the allocator of libc. */
#define SHUNT_SPACE_THREAD (512ull << 10)
/* glibc reserves 128 MiB for the first malloc() of a thread, aligns, and keeps 64 of them (HEAP_MAX_SIZE, arena.c). */
#define SHUNT_SPACE_HEAP (128ull << 20)

/* The least of a link: our segment with a small arena, and of a peer's its queues, its control lines and some rings. */
#define SHUNT_SPACE_FRONT (1280ull << 10)	/* of a segment, before its arena; rounded up */
#define SHUNT_SPACE_ARENA (3584ull << 10)
#define SHUNT_SPACE_MAPS (10752ull << 10)
#define SHUNT_SPACE_LINK (SHUNT_SPACE_FRONT + SHUNT_SPACE_ARENA + SHUNT_SPACE_MAPS)

struct shunt_space {
	uint64_t limit;		/* the soft limit, or SHUNT_SPACE_UNLIMITED */
	uint64_t present;	/* mapped now */
};

/* The share of a link. */
struct shunt_space_share {
	uint64_t arena;		/* size of our arena; of limited ones a multiple of 64 KiB */
	uint64_t maps;		/* of the peer's segment at most, a multiple of 64 KiB; 0: all of it */
};

/* The program has limited its address space (RLIMIT_AS, setrlimit(2)): what a link maps is missing for it. */
bool shunt_space_is_limited(void);
/*
 * How it is with this process. Where /proc does not say what is mapped, as in a chroot, a limited process has nothing
 * left. Makes a descriptor for an instant, if there is a limit. Any thread, with cancellation held off; errno may change.
 */
struct shunt_space shunt_space_read(void);
/* Bytes that Shunt may still take after it has taken `taken` of what is present. */
uint64_t shunt_space_spare(const struct shunt_space *space, uint64_t taken);
/* The service thread's part of `spare`: SHUNT_SPACE_THREAD if it may have no heap of its own. 0: there is no room
 * for it and a link. */
uint64_t shunt_space_thread(uint64_t spare);
/* Shares out to a link half of `spare`, or its least; `arena` is the size wanted. False: it is not enough. */
bool shunt_space_link(uint64_t spare, uint64_t arena, struct shunt_space_share *share);

#endif
