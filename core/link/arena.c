/* SPDX-License-Identifier: MIT */
/*
 * Inside a block, buddies. `tree` has a byte for each power-of-two part of the block. Node 1 is the block itself, 2n
 * and 2n+1 are the halves of n, the last nodes are the 4 KiB parts. A byte is the size of the largest free part below
 * the node: 0 none, 1 4 KiB, 2 8 KiB, and so on. Nodes below one that is handed out, or wholly free, keep their
 * bytes. So a free node's halves are both free.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/link/arena.h"
#include "core/base/guard.h"
#include "core/base/log.h"
#include "core/base/narrow.h"
#include "core/base/poison.h"
#include "core/device/fault.h"
#include "core/trace/slow_step.h"

#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

static uint32_t log2_of(uint64_t bytes)
{
	return 63 - __builtin_clzll(bytes);
}

/* The tree's byte for a part of that size: at most SHUNT_ARENA_MAX_LOG - SHUNT_ARENA_MIN_LOG + 1. */
static uint8_t size_of(uint32_t log)
{
	return (uint8_t)(log - SHUNT_ARENA_MIN_LOG + 1);
}

/* --- registering --- */

static struct ibv_mr *register_part(struct shunt_arena *arena, uint64_t offset, uint64_t bytes)
{
	const struct shunt_arena_memory *memory = &arena->memory;
	uint64_t begun = memory->steps ? shunt_slow_begin(memory->steps) : 0;
	struct ibv_mr *mr = shunt_fault_denies(SHUNT_DENY_MR) ? NULL :
			    memory->verbs->register_mr(memory->pd, memory->base + offset, bytes, ACCESS);
	int saved = errno;

	shunt_slow_end(memory->steps, begun, .step = SHUNT_STEP_REGISTER, .fd = -1,
		       .extra = bytes);
	if (mr) {
		atomic_fetch_add_explicit(&arena->regions, 1, memory_order_relaxed);
		atomic_fetch_add_explicit(&arena->registered, bytes, memory_order_relaxed);
	}
	errno = saved;
	return mr;
}

static void deregister_part(struct shunt_arena *arena, struct ibv_mr *mr, uint64_t bytes)
{
	if (!mr)
		return;
	arena->memory.verbs->deregister_mr(mr);
	atomic_fetch_sub_explicit(&arena->regions, 1, memory_order_relaxed);
	atomic_fetch_sub_explicit(&arena->registered, bytes, memory_order_relaxed);
}

static uint8_t *block_at(const struct shunt_arena *arena, uint32_t i)
{
	return arena->memory.base + ((uint64_t)i << arena->block_log);
}

/* All of a block is free. */
static void plant(uint8_t *tree, uint32_t levels)
{
	for (uint32_t depth = 0; depth < levels; depth++)
		memset(tree + (1u << depth), levels - depth, 1u << depth);
}

static uint32_t levels_of(const struct shunt_arena *arena)
{
	return arena->block_log - SHUNT_ARENA_MIN_LOG + 1;
}

/* --- huge pages --- */

static void say_ordinary(const char *why)
{
	static _Atomic bool said;

	if (!atomic_exchange(&said, true))
		shunt_log(
			SHUNT_LOG_WARN,
			"SHUNT_TUNE=pages=huge: memory of links has ordinary pages: %s (vm.nr_hugepages)",
			why);
}

/* False: the block has no memory. */
static bool block_back(struct shunt_arena *arena, uint32_t i)
{
	size_t bytes = 1u << arena->block_log;
	int result;

	if (!arena->memory.huge)
		return true;
	if (bytes < SHUNT_GUARD_LARGE) {
		say_ordinary("mr is less than 2 MiB");
		return true;
	}
	result = shunt_guard_set_huge(block_at(arena, i), bytes);
	arena->blocks[i].huge = !result;
	if (result)
		say_ordinary(strerrordesc_np(-result));
	return result != -EFAULT;
}

static void block_discard(struct shunt_arena *arena, uint32_t i)
{
	const struct shunt_arena_memory *memory = &arena->memory;
	struct shunt_arena_block *block = &arena->blocks[i];

	if (!block->huge)
		memory->discard(memory->pd, block_at(arena, i), 1u << arena->block_log);
	else if (!shunt_guard_set_ordinary(block_at(arena, i), 1u << arena->block_log))
		block->huge = false;
}

/* --- blocks --- */

static bool block_register(struct shunt_arena *arena, uint32_t i)
{
	struct shunt_arena_block *block = &arena->blocks[i];
	uint8_t *tree = malloc(1u << levels_of(arena));

	if (!tree)
		return false;
	if (!block->huge && !block_back(arena, i)) {
		free(tree);
		return false;
	}
	block->mr = register_part(arena, (uint64_t)i << arena->block_log, 1u << arena->block_log);
	if (!block->mr) {
		if (block->huge)
			block_discard(arena, i);
		free(tree);
		return false;
	}
	plant(tree, levels_of(arena));
	shunt_poison(block_at(arena, i), 1u << arena->block_log);
	block->tree = tree;
	block->stale = false;
	return true;
}

static void block_deregister(struct shunt_arena *arena, uint32_t i)
{
	struct shunt_arena_block *block = &arena->blocks[i];

	deregister_part(arena, block->mr, 1u << arena->block_log);
	shunt_unpoison(block_at(arena, i), 1u << arena->block_log);
	free(block->tree);
	block->mr = NULL;
	block->tree = NULL;
}

/* --- life --- */

/* Where blocks may begin. */
static uint64_t end_of_lines(const struct shunt_arena_memory *memory)
{
	uint64_t page = shunt_guard_page();

	return memory->guarded ? (memory->reserved + page - 1) / page * page + page :
				 memory->reserved;
}

static uint64_t blocks_of(const struct shunt_arena_memory *memory, uint32_t log)
{
	uint64_t lines = (end_of_lines(memory) + (1u << log) - 1) >> log;
	uint64_t all = memory->bytes >> log;

	return all > lines ? all - lines : 0;
}

/* The device must have a region for each block beside the lines; and there must be blocks. */
static uint32_t fitting_log(const struct shunt_arena_memory *memory)
{
	uint32_t least = memory->blocks ? memory->blocks : SHUNT_ARENA_BLOCKS;
	uint32_t log = log2_of(memory->block_bytes);

	while (log < SHUNT_ARENA_MAX_LOG && blocks_of(memory, log) >= memory->regions)
		log++;
	while (log > SHUNT_ARENA_MIN_LOG && blocks_of(memory, log) < least)
		log--;
	return log;
}

/* None is registered. */
static int divide(struct shunt_arena *arena, const struct shunt_arena_memory *memory)
{
	uint32_t log = fitting_log(memory), count = shunt_narrow_u32(memory->bytes >> log);
	struct shunt_arena_block *blocks = calloc(count ? count : 1, sizeof(*blocks));

	if (!blocks)
		return -ENOMEM;
	free(arena->blocks);
	arena->blocks = blocks;
	arena->block_log = log;
	arena->count = count;
	arena->first = shunt_narrow_u32(count - blocks_of(memory, log));
	return 0;
}

int shunt_arena_init(struct shunt_arena *arena, const struct shunt_arena_memory *memory)
{
	int result;

	*arena = (struct shunt_arena) { .lock = SHUNT_LOCK(ARENA), .memory = *memory };
	result = divide(arena, memory);
	if (result)
		return result;
	errno = 0;
	arena->lines = register_part(arena, 0, memory->reserved);
	if (memory->guarded && end_of_lines(memory) <= memory->bytes)
		shunt_guard_inside(memory->base + end_of_lines(memory) - shunt_guard_page());
	return arena->lines ? 0 : -(errno ? errno : ENOMEM);
}

int shunt_arena_bound(struct shunt_arena *arena, uint64_t bytes)
{
	struct shunt_arena_memory reached = arena->memory;

	if (bytes >= reached.bytes)
		return 0;
	reached.bytes = bytes;
	reached.blocks = SHUNT_ARENA_BLOCKS_CONFINED;
	if (bytes < reached.reserved || !blocks_of(&reached, fitting_log(&reached)))
		return -ENOSPC;
	return divide(arena, &reached);
}

void shunt_arena_fini(struct shunt_arena *arena)
{
	if (!arena->blocks)
		return;
	for (uint32_t i = arena->first; i < arena->count; i++)
		if (arena->blocks[i].mr)
			block_deregister(arena, i);
	deregister_part(arena, arena->lines, arena->memory.reserved);
	free(arena->blocks);
	arena->lines = NULL;
	arena->blocks = NULL;
	arena->first = arena->count = 0;
}

uint64_t shunt_arena_most(const struct shunt_arena *arena)
{
	return 1ull << arena->block_log;
}

/* --- inside a block --- */

static uint32_t node_of(const struct shunt_arena *arena, uint64_t offset, uint32_t log)
{
	uint32_t within = (uint32_t)(offset & ((1u << arena->block_log) - 1));

	return (1u << (arena->block_log - log)) + (within >> log);
}

/* A node has changed: what is above it follows. */
static void climb(uint8_t *tree, uint32_t node, uint8_t size)
{
	while ((node >>= 1)) {
		uint8_t left = tree[2 * node], right = tree[2 * node + 1];

		if (left == size && right == size)
			tree[node] = (uint8_t)(size + 1);	/* of the level above */
		else
			tree[node] = left > right ? left : right;
		size++;
	}
}

/* From the smaller of what is large enough, so that what is large stays so. */
static uint64_t block_take(struct shunt_arena *arena, uint32_t i, uint32_t log)
{
	struct shunt_arena_block *block = &arena->blocks[i];
	uint8_t size = size_of(log);
	uint32_t node = 1;
	uint8_t *tree = block->tree;

	for (uint32_t level = arena->block_log; level > log; level--) {
		uint8_t left = tree[2 * node], right = tree[2 * node + 1];

		node = 2 * node + (left < size || (right >= size && right < left));
	}
	tree[node] = 0;
	climb(tree, node, size);
	block->taken += 1u << log;
	block->stale = false;
	return ((uint64_t)i << arena->block_log) + ((uint64_t)(node - (1u << (arena->block_log - log))) << log);
}

/* --- taking and giving --- */

/* One in use, else an empty one, else a new one; so the others become empty. Returns count for none. */
static uint32_t choose(struct shunt_arena *arena, uint32_t size)
{
	uint32_t empty = arena->count, fresh = arena->count;

	for (uint32_t i = arena->first; i < arena->count; i++) {
		struct shunt_arena_block *block = &arena->blocks[i];

		if (block->mr && block->taken && block->tree[1] >= size)
			return i;
		if (block->mr && !block->taken && empty == arena->count)
			empty = i;
		if (!block->mr && fresh == arena->count)
			fresh = i;
	}
	if (empty < arena->count)
		return empty;
	return fresh < arena->count && block_register(arena, fresh) ? fresh : arena->count;
}

uint64_t shunt_arena_take(struct shunt_arena *arena, uint64_t bytes, const struct ibv_mr **mr)
{
	uint32_t log = log2_of(bytes), i;
	uint64_t offset = UINT64_MAX;

	if (log > arena->block_log)
		return UINT64_MAX;
	shunt_lock_take(&arena->lock);
	i = choose(arena, size_of(log));
	if (i < arena->count) {
		offset = block_take(arena, i, log);
		shunt_unpoison(arena->memory.base + offset, 1ull << log);
		*mr = arena->blocks[i].mr;
	}
	shunt_lock_leave(&arena->lock);
	return offset;
}

bool shunt_arena_give(struct shunt_arena *arena, uint64_t offset, uint64_t bytes)
{
	struct shunt_arena_block *block = &arena->blocks[offset >> arena->block_log];
	uint32_t log = log2_of(bytes), node = node_of(arena, offset, log);
	bool empty = false;

	shunt_lock_take(&arena->lock);
	if (!block->mr || block->tree[node]) {
		arena->strays++;
	} else {
		shunt_poison(arena->memory.base + offset, 1ull << log);
		block->tree[node] = size_of(log);
		climb(block->tree, node, block->tree[node]);
		block->taken -= 1u << log;
		empty = !block->taken;
	}
	shunt_lock_leave(&arena->lock);
	return empty;
}

bool shunt_arena_tidy(struct shunt_arena *arena)
{
	bool again = false;

	shunt_lock_take(&arena->lock);
	for (uint32_t i = arena->first; i < arena->count; i++) {
		struct shunt_arena_block *block = &arena->blocks[i];

		if (!block->mr || block->taken)
			continue;
		if (block->stale) {
			block_deregister(arena, i);
			block_discard(arena, i);
		} else {
			block->stale = true;
			again = true;
		}
	}
	shunt_lock_leave(&arena->lock);
	return again;
}
