/*
 * The arena of a link: address space, backed on touch, out of which rings are carved. Blocks are powers
 * of two from 4 KiB; freed blocks are kept by size and their pages given back.
 */
#ifndef SHUNT_CORE_ARENA_H
#define SHUNT_CORE_ARENA_H

#include <stdint.h>
#include "core/lock.h"

#define SHUNT_ARENA_MIN_LOG 12
#define SHUNT_ARENA_MAX_LOG 26

struct shunt_arena {
	struct shunt_lock lock;
	uint64_t bytes;
	uint64_t used;		/* everything below has been handed out at least once */
	uint32_t *free_list[SHUNT_ARENA_MAX_LOG + 1];	/* offsets in 4 KiB units, a growable stack */
	uint32_t free_count[SHUNT_ARENA_MAX_LOG + 1];
	uint32_t free_room[SHUNT_ARENA_MAX_LOG + 1];
};

void shunt_arena_init(struct shunt_arena *arena, uint64_t reserved, uint64_t bytes);
void shunt_arena_fini(struct shunt_arena *arena);
/* Offset of a block of `bytes` (a power of two), or UINT64_MAX. */
uint64_t shunt_arena_take(struct shunt_arena *arena, uint32_t bytes);
void shunt_arena_give(struct shunt_arena *arena, uint64_t offset, uint32_t bytes);

#endif
