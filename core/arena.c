#include <stdlib.h>
#include "core/arena.h"

static int log2_of(uint32_t bytes)
{
	return 31 - __builtin_clz(bytes);
}

void shunt_arena_init(struct shunt_arena *arena, uint64_t reserved, uint64_t bytes)
{
	*arena = (struct shunt_arena) { .bytes = bytes, .used = reserved };
}

void shunt_arena_fini(struct shunt_arena *arena)
{
	for (int i = 0; i <= SHUNT_ARENA_MAX_LOG; i++)
		free(arena->free_list[i]);
}

uint64_t shunt_arena_take(struct shunt_arena *arena, uint32_t bytes)
{
	int log = log2_of(bytes);
	uint64_t offset = UINT64_MAX;

	shunt_lock_take(&arena->lock);
	if (arena->free_count[log]) {
		offset = (uint64_t)arena->free_list[log][--arena->free_count[log]] << SHUNT_ARENA_MIN_LOG;
	} else {
		uint64_t start = (arena->used + bytes - 1) & ~((uint64_t)bytes - 1);

		if (start + bytes <= arena->bytes) {
			offset = start;
			arena->used = start + bytes;
		}
	}
	shunt_lock_leave(&arena->lock);
	return offset;
}

/* Without memory for the list the block is lost to the arena, never handed out twice. */
void shunt_arena_give(struct shunt_arena *arena, uint64_t offset, uint32_t bytes)
{
	int log = log2_of(bytes);

	shunt_lock_take(&arena->lock);
	if (arena->free_count[log] == arena->free_room[log]) {
		uint32_t room = arena->free_room[log] ? arena->free_room[log] * 2 : 64;
		uint32_t *list = realloc(arena->free_list[log], room * sizeof(*list));

		if (list) {
			arena->free_list[log] = list;
			arena->free_room[log] = room;
		}
	}
	if (arena->free_count[log] < arena->free_room[log])
		arena->free_list[log][arena->free_count[log]++] = offset >> SHUNT_ARENA_MIN_LOG;
	shunt_lock_leave(&arena->lock);
}
