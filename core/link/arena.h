/* SPDX-License-Identifier: MIT */
/*
 * The arena of a link: address space, backed on touch, that RDMA reaches. It begins with the control lines, which are
 * a memory region of their own for as long as the link lives. Behind them come blocks of equal size (`mr`), out
 * of which rings are carved, and stages if the device reads from them. Parts of a block are powers of two from 4 KiB.
 * A block is registered as a memory region when no other has room. It is let go, with its pages, when it has been
 * empty for a while (XR-14).
 *
 * Memory that is given back may be handed out again at once. So a ring is given back when its peer can no longer
 * write there. A stage is given back when no reads from it are under way. Meanwhile AddressSanitizer, where there is
 * one, reports who touches it by the engine's mapping: what a block has that is not handed out is poisoned.
 *
 * - A page on each side of it may not be touched, and the same holds of a peer's segment here (core/base/guard.c).
 *   There is such a page behind the soft device's queues, and one behind the control lines. So a byte beyond either
 *   is a SIGSEGV of the program that errs, and no neighbour's byte. With the two mappings a link has ten areas in
 *   /proc/PID/maps. A remote overrun is refused by the key (a_wrong_key_ends_the_link). In a build with
 *   AddressSanitizer what a block has and no ring has is poisoned (core/base/poison.h).
 * - It is mapped with MADV_DONTDUMP. A core dump of the program has neither a gigabyte of rings nor the payload of
 *   its peers.
 * - It is mapped with MADV_DONTFORK: a child has no use for its parent's links, and by writing would take pages from
 *   an RDMA device. A child may also have less address space than they take, as vsftpd's sessions do.
 * - There is one arena memfd a link: 1 GiB of address space, backed on touch. So a side has one descriptor and one
 *   mapping. With the soft device growing costs no system call.
 * - Rings are mapped once, and a message is cut where the ring wraps. A wrap costs one more work request a turn of
 *   the ring. Two views of every ring would be four mappings a connection, and vm.max_map_count is 65530: about
 *   16,000 connections, and four system calls an upgrade.
 * - With `pages` an arena begins at a multiple of 2 MiB, so a block has whole huge pages, and gives them back whole.
 *   Explicit ones are taken when a block is registered. Control lines have none, because a guard page follows them.
 *   A block is registered as a whole, so rdma-core's madvise() at a fork needs no RDMAV_HUGEPAGES_SAFE.
 * - Blocks are larger than `mr` where the device would not have enough regions for the arena. They are smaller
 *   where less than two of them would fit.
 */
#ifndef SHUNT_CORE_LINK_ARENA_H
#define SHUNT_CORE_LINK_ARENA_H

#include <stdint.h>
#include "core/base/lock.h"
#include "core/base/verbs.h"

struct shunt_steps;

#define SHUNT_ARENA_MIN_LOG 12
#define SHUNT_ARENA_MAX_LOG 26
#define SHUNT_ARENA_BLOCKS 2	/* in a small arena blocks are smaller, so that it is not lost on one stream */
#define SHUNT_ARENA_BLOCKS_CONFINED 8	/* in one that has few rings because address space is limited, here or at the peer */

/* Memory and limits of an arena. */
struct shunt_arena_memory {
	struct shunt_steps *steps;	/* registrations are timed as these; NULL: they are not */
	const struct shunt_verbs *verbs;
	struct ibv_pd *pd;
	/* Gives pages of a block back to the system. */
	int (*discard)(struct ibv_pd *pd, void *address, size_t bytes);
	uint8_t *base;		/* page aligned */
	size_t bytes;
	uint64_t reserved;	/* of them, at the beginning: the control lines */
	bool guarded;		/* the page behind the control lines may not be touched (core/base/guard.h) */
	bool huge;		/* blocks get explicit huge pages if there are any; of anonymous memory alone */
	uint64_t block_bytes;	/* a power of two from 4 KiB to 64 MiB */
	uint32_t blocks;	/* at least so many, smaller ones if need be; 0: SHUNT_ARENA_BLOCKS */
	uint32_t regions;	/* most memory regions that the domain can have */
};

struct shunt_arena_block {
	struct ibv_mr *mr;	/* NULL: not registered */
	uint8_t *tree;		/* of the buddies: see arena.c */
	uint32_t taken;		/* bytes */
	bool stale;		/* was empty at the last look */
	bool huge;		/* has explicit huge pages */
};

struct shunt_arena {
	/*
	 * Innermost: only locks of the device are taken inside. It registers under it, so that two who need a block
	 * get one; a waiter meanwhile sets up a stream or changes its ring.
	 */
	struct shunt_lock lock;
	struct shunt_arena_memory memory;
	struct ibv_mr *lines;	/* the control lines */
	uint32_t block_log;	/* `mr`, made to fit the arena and the device */
	uint32_t first, count;	/* blocks count from the beginning of the arena; those before `first` are lines */
	struct shunt_arena_block *blocks;
	uint32_t strays;	/* times that something was given back which was not out: the engine errs */
	_Atomic uint32_t regions;	/* registered now, and how many bytes; read by the statistics */
	_Atomic uint64_t registered;
};

/* 0 or -errno; either way fini is allowed, as it is for zeroes. */
int shunt_arena_init(struct shunt_arena *arena, const struct shunt_arena_memory *memory);
/*
 * The peer reaches only the first `bytes` of it: nothing is carved from what lies behind. Before anything was taken.
 * 0; or -errno, and the arena is as it was: -ENOSPC where no block would be left.
 */
int shunt_arena_bound(struct shunt_arena *arena, uint64_t bytes);
/* Deregisters everything: the QP that reaches it is gone. */
void shunt_arena_fini(struct shunt_arena *arena);
/* The largest ring there can be. */
uint64_t shunt_arena_most(const struct shunt_arena *arena);
/* Offset of `bytes` (a power of two), and the region they are in; UINT64_MAX: there is no room. */
uint64_t shunt_arena_take(struct shunt_arena *arena, uint64_t bytes, const struct ibv_mr **mr);
/* Takes it back. True: its block is empty now, and should be looked at. */
bool shunt_arena_give(struct shunt_arena *arena, uint64_t offset, uint64_t bytes);
/* Lets go of the blocks that were empty at the last look, too. True: others are empty, look again. */
bool shunt_arena_tidy(struct shunt_arena *arena);

#endif
