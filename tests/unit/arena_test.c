/* SPDX-License-Identifier: MIT */
/* The arena: rings out of blocks, blocks that come and go, and a device that refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/base/guard.h"
#include "core/base/poison.h"
#include "core/link/arena.h"
#include "tests/vm.h"

#define K 1024ull
#define M (1024 * K)
#define RINGS 4096

static uint8_t *base;	/* address space that nobody may touch, where no test says otherwise */
static struct ibv_pd pd;

/* --- a device that says what it is asked --- */

static struct {
	uint32_t registered, most, calls;
	uint32_t next_key;
	bool refuses;
	uint64_t discarded, discards;
	uint64_t last_offset, last_bytes;	/* registered */
} device;

static struct ibv_mr *register_mr(struct ibv_pd *of, void *address, size_t bytes, int access)
{
	struct ibv_mr *mr;

	device.calls++;
	assert_ptr_equal(of, &pd);
	assert_int_equal(access, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	if (device.refuses) {
		errno = ENOMEM;
		return NULL;
	}
	mr = calloc(1, sizeof(*mr));
	mr->addr = address;
	mr->length = bytes;
	mr->rkey = ++device.next_key;
	device.last_offset = (uint8_t *)address - base;
	device.last_bytes = bytes;
	if (++device.registered > device.most)
		device.most = device.registered;
	return mr;
}

static int deregister_mr(struct ibv_mr *mr)
{
	device.registered--;
	free(mr);
	return 0;
}

static int discard(struct ibv_pd *of, void *address, size_t bytes)
{
	assert_ptr_equal(of, &pd);
	assert_int_equal(((uint8_t *)address - base) % bytes, 0);
	device.discards++;
	device.discarded += bytes;
	return 0;
}

static const struct shunt_verbs verbs = { .register_mr = register_mr, .deregister_mr = deregister_mr };

/* --- the arena under test --- */

static struct shunt_arena arena;
static struct {
	uint64_t offset, bytes;
	const struct ibv_mr *mr;
} ring[RINGS];

static void begin(uint64_t bytes, uint64_t reserved, uint64_t block, uint32_t regions)
{
	struct shunt_arena_memory memory = { .verbs = &verbs, .pd = &pd, .discard = discard, .base = base,
					     .bytes = bytes, .reserved = reserved, .block_bytes = block,
					     .regions = regions };

	memset(&device, 0, sizeof(device));
	assert_int_equal(shunt_arena_init(&arena, &memory), 0);
	assert_int_equal(device.last_offset, 0);
	assert_int_equal(device.last_bytes, reserved);
}

static void finish(void)
{
	assert_int_equal(arena.strays, 0);
	shunt_arena_fini(&arena);
	assert_int_equal(device.registered, 0);
	assert_int_equal(arena.regions, 0);
	assert_int_equal(arena.registered, 0);
	shunt_arena_fini(&arena);
}

/* Takes one and checks that it is nobody else's. */
static bool take(int i, uint64_t bytes)
{
	uint64_t offset = shunt_arena_take(&arena, bytes, &ring[i].mr);

	if (offset == UINT64_MAX)
		return false;
	assert_int_equal(offset % bytes, 0);
	assert_true(offset >= arena.memory.reserved && offset + bytes <= arena.memory.bytes);
	assert_int_equal(offset >> arena.block_log, (offset + bytes - 1) >> arena.block_log);
	for (int k = 0; k < RINGS; k++)
		if (ring[k].bytes)
			assert_true(offset + bytes <= ring[k].offset || ring[k].offset + ring[k].bytes <= offset);
	ring[i].offset = offset;
	ring[i].bytes = bytes;
	assert_ptr_equal(arena.blocks[offset >> arena.block_log].mr, ring[i].mr);
	return true;
}

static bool give(int i)
{
	uint64_t bytes = ring[i].bytes;

	ring[i].bytes = 0;
	return shunt_arena_give(&arena, ring[i].offset, bytes);
}

static uint32_t blocks(void)
{
	assert_int_equal(device.registered, arena.regions);
	assert_int_equal(arena.registered, arena.memory.reserved + (arena.regions - 1) * shunt_arena_most(&arena));
	return arena.regions - 1;
}

static void all_free_again(void)
{
	while (shunt_arena_tidy(&arena))
		;
	assert_int_equal(blocks(), 0);
}

/* --- tests --- */

static void blocks_come_one_by_one(void **state)
{
	(void)state;
	begin(64 * M, 8 * M, 4 * M, 1024);
	assert_int_equal(blocks(), 0);
	for (int i = 0; i < 100; i++) {
		assert_true(take(i, 256 * K));
		assert_int_equal(blocks(), i / 16 + 1);
	}
	for (int i = 0; i < 100; i++)
		assert_int_equal(give(i), i == 99 || i % 16 == 15);
	assert_int_equal(blocks(), 7);
	assert_int_equal(device.discards, 0);
	assert_true(shunt_arena_tidy(&arena));	/* the first look finds them empty, the second lets them go */
	assert_int_equal(blocks(), 7);
	assert_false(shunt_arena_tidy(&arena));
	assert_int_equal(blocks(), 0);
	assert_int_equal(device.discarded, 28 * M);
	assert_false(shunt_arena_tidy(&arena));
	assert_true(take(0, 4 * K));
	assert_int_equal(blocks(), 1);
	give(0);
	finish();
}

/* A block that was used since the last look is as good as new. */
static void a_used_block_stays(void **state)
{
	(void)state;
	begin(64 * M, 8 * M, 4 * M, 1024);
	take(0, 4 * K);
	give(0);
	for (int i = 0; i < 5; i++) {
		assert_true(shunt_arena_tidy(&arena));
		assert_true(take(0, 4 * K));
		assert_false(shunt_arena_tidy(&arena));
		assert_int_equal(blocks(), 1);
		assert_true(give(0));
	}
	assert_int_equal(device.calls, 2);
	all_free_again();
	finish();
}

/* Rings go where others are, so that the other blocks become empty. */
static void used_blocks_fill_first(void **state)
{
	(void)state;
	begin(64 * M, 8 * M, 1 * M, 1024);
	take(0, 1 * M);
	take(1, 512 * K);
	assert_int_equal(blocks(), 2);
	give(0);	/* the first block is empty, the second half full */
	take(2, 512 * K);
	assert_int_equal(ring[2].offset >> 20, ring[1].offset >> 20);
	take(3, 4 * K);
	assert_int_equal(blocks(), 2);	/* an empty one before a new one */
	give(1);
	give(2);
	give(3);
	all_free_again();
	finish();
}

/* Small rings do not break up what a large one will need, and halves become whole again. */
static void buddies_join(void **state)
{
	(void)state;
	begin(16 * M, 4 * K, 4 * M, 1024);
	for (int round = 0; round < 3; round++) {
		take(0, 4 * K);
		take(1, 2 * M);
		take(2, 4 * K);
		take(3, 1 * M);
		take(4, 512 * K);
		assert_int_equal(blocks(), 1);
		assert_int_equal(ring[0].offset ^ ring[2].offset, 4 * K);
		for (int i = 4; i >= 0; i--)
			assert_int_equal(give(i), i == 0);
		assert_true(take(0, 4 * M));
		assert_int_equal(blocks(), 1);
		give(0);
	}
	all_free_again();
	finish();
}

static void it_has_an_end(void **state)
{
	int n = 0;

	(void)state;
	begin(16 * M + 5000, 8 * M - 100, 1 * M, 1024);
	assert_false(take(0, 2 * M));
	while (take(n, 256 * K))
		n++;
	assert_int_equal(n, 32);
	assert_int_equal(blocks(), 8);
	assert_false(take(n, 4 * K));
	give(7);
	assert_true(take(7, 256 * K));
	while (n--)
		give(n);
	all_free_again();
	finish();
}

static void the_device_refuses(void **state)
{
	struct shunt_arena_memory memory = { .verbs = &verbs, .pd = &pd, .discard = discard, .base = base,
					     .bytes = 64 * M, .reserved = 8 * M, .block_bytes = 4 * M,
					     .regions = 1024 };

	(void)state;
	memset(&device, 0, sizeof(device));
	device.refuses = true;
	assert_int_equal(shunt_arena_init(&arena, &memory), -ENOMEM);
	shunt_arena_fini(&arena);
	begin(64 * M, 8 * M, 4 * M, 1024);
	take(0, 1 * M);
	device.refuses = true;
	assert_false(take(1, 4 * M));	/* of a block of its own */
	assert_int_equal(blocks(), 1);
	assert_true(take(1, 512 * K));	/* what is there is there */
	device.refuses = false;
	assert_true(take(2, 4 * M));
	for (int i = 0; i < 3; i++)
		give(i);
	all_free_again();
	finish();
}

/* The device may have fewer regions than there would be blocks, and the arena less room than for two. */
static void blocks_fit(void **state)
{
	(void)state;
	begin(1024 * M, 8 * M, 64 * K, 1024);
	assert_int_equal(shunt_arena_most(&arena), 1 * M);
	finish();
	begin(65536 * M, 8 * M, 64 * K, 1024);
	assert_int_equal(shunt_arena_most(&arena), 64 * M);
	assert_int_equal(arena.count - arena.first, 1023);
	finish();
	begin(16 * M, 8 * M, 64 * M, 1024);
	assert_int_equal(shunt_arena_most(&arena), 4 * M);
	take(0, 4 * M);
	take(1, 4 * M);
	assert_false(take(2, 4 * K));
	give(0);
	give(1);
	finish();
	begin(64 * K, 60 * K, 4 * M, 1024);
	assert_false(take(0, 8 * K));
	finish();
}

static void what_is_not_out_is_not_taken_back(void **state)
{
	(void)state;
	begin(64 * M, 8 * M, 4 * M, 1024);
	take(0, 64 * K);
	assert_false(shunt_arena_give(&arena, ring[0].offset, 4 * K));
	assert_false(shunt_arena_give(&arena, ring[0].offset + 64 * K, 64 * K));
	assert_false(shunt_arena_give(&arena, 60 * M, 4 * K));
	assert_int_equal(arena.strays, 3);
	assert_true(give(0));
	assert_false(shunt_arena_give(&arena, ring[0].offset, 64 * K));
	assert_int_equal(arena.strays, 4);
	arena.strays = 0;
	finish();
}

/* A peer that reaches little of it: blocks are smaller, none lies behind, the lines stay what they are. */
static void a_bound_arena(void **state)
{
	const struct ibv_mr *none;
	uint32_t key;

	(void)state;
	begin(1024 * M, 8 * M, 4 * M, 1024);
	key = arena.lines->rkey;
	assert_int_equal(shunt_arena_bound(&arena, 2048 * M), 0);
	assert_int_equal(shunt_arena_most(&arena), 4 * M);
	assert_int_equal(shunt_arena_bound(&arena, 8 * M - 1), -ENOSPC);
	assert_int_equal(shunt_arena_bound(&arena, 8 * M), -ENOSPC);
	assert_int_equal(shunt_arena_most(&arena), 4 * M);
	assert_int_equal(shunt_arena_bound(&arena, 11 * M - 1), 0);
	assert_int_equal(shunt_arena_most(&arena), 256 * K);
	assert_int_equal(arena.lines->rkey, key);
	assert_int_equal(device.registered, 1);
	for (int i = 0; i < 11; i++) {
		assert_true(take(i, 256 * K));
		assert_in_range(ring[i].offset, 8 * M, 11 * M - 1 - 256 * K);
	}
	assert_true(shunt_arena_take(&arena, 4 * K, &none) == UINT64_MAX);
	for (int i = 0; i < 11; i++)
		give(i);
	finish();
}

/* Anything in any order: nothing overlaps, and in the end nothing is left. */
static void at_random(void **state)
{
	static const uint64_t sizes[] = { 64 * K, 256 * K, 1 * M, 4 * M };
	uint64_t x = 88172645463325252ull;

	(void)state;
	for (int s = 0; s < 4; s++) {
		begin(24 * M, 8 * M, sizes[s], 1024);
		for (int n = 0; n < 20000; n++) {
			int i, log;

			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			i = x % 64;
			log = 12 + (x >> 20) % 12;
			if (ring[i].bytes)
				give(i);
			else
				take(i, 1ull << log);
			if (x >> 60 == 0)
				shunt_arena_tidy(&arena);
		}
		for (int i = 0; i < 64; i++)
			if (ring[i].bytes)
				give(i);
		all_free_again();
		finish();
	}
}

/* --- what may not be touched --- */

/* Does a child end well that writes the byte `at` of fresh memory of an arena with a ring of 4 KiB? */
static bool may_write(uint64_t from_ring, uint64_t at)
{
	struct shunt_arena_memory memory = { .verbs = &verbs, .pd = &pd, .discard = discard,
					     .bytes = 64 * M, .reserved = 8 * M - 4 * K,
					     .guarded = true, .block_bytes = 4 * M, .regions = 1024 };
	const struct ibv_mr *mr;
	pid_t child = fork();
	int status;

	if (!child) {
		signal(SIGSEGV, SIG_DFL);	/* a sanitizer has a handler */
		close(STDERR_FILENO);
		memory.base = base = shunt_guard_map(memory.bytes, -1);
		if (shunt_arena_init(&arena, &memory))
			_exit(2);
		if (from_ring)
			at += shunt_arena_take(&arena, 4 * K, &mr);
		*(volatile uint8_t *)(base + at) = 1;
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return !status;
}

static void no_byte_beyond_lines_or_arena(void **state)
{
	(void)state;
	assert_true(may_write(false, 0));
	assert_true(may_write(false, 8 * M - 4 * K - 1));
	assert_false(may_write(false, 8 * M - 4 * K));
	assert_false(may_write(false, 8 * M - 1));
	assert_true(may_write(false, 8 * M));
	assert_true(may_write(false, 64 * M - 1));
	assert_false(may_write(false, 64 * M));
	assert_false(may_write(false, UINT64_MAX));
}

/* The neighbours are not handed out. */
static void no_byte_beyond_a_ring(void **state)
{
	(void)state;
	assert_true(may_write(true, 0));
	assert_true(may_write(true, 4 * K - 1));
	if (!SHUNT_POISONS)
		skip();
	assert_false(may_write(true, 4 * K));
	assert_false(may_write(true, 64 * K));
}

/* --- explicit huge pages (XR-39h) --- */

/* The machine has them. */
static bool gets_huge(void)
{
	char *memory = shunt_guard_map_large(4 * M, -1);
	bool gets = !shunt_guard_set_huge(memory, 4 * M);

	shunt_guard_unmap(memory, 4 * M);
	return gets;
}

static void begin_huge(uint64_t bytes, uint64_t block)
{
	struct shunt_arena_memory memory = { .verbs = &verbs, .pd = &pd, .discard = discard, .base = base,
					     .bytes = bytes, .reserved = 8 * M, .huge = true,
					     .block_bytes = block, .regions = 1024 };

	memset(&device, 0, sizeof(device));
	assert_int_equal(shunt_arena_init(&arena, &memory), 0);
}

/* A block has them when it is registered and no longer. Its neighbours, the lines, and blocks that get none, do not. */
static void blocks_have_huge_pages(void **state)
{
	uint8_t *untouched = base;
	bool has = gets_huge();

	(void)state;
	base = shunt_guard_map_large(32 * M, -1);
	begin_huge(32 * M, 4 * M);
	for (int round = 0; round < 2; round++) {
		assert_true(take(0, 64 * K));
		assert_int_equal(vm_has(base + 8 * M, "ht"), has);
		assert_false(vm_has(base, "ht") || vm_has(base + 12 * M, "ht"));
		for (uint64_t at = 0; at < 64 * K; at++)
			assert_int_equal(base[ring[0].offset + at], 0);
		memset(base + ring[0].offset, 1, 64 * K);
		give(0);
		all_free_again();
		assert_false(vm_has(base + 8 * M, "ht"));
		assert_int_equal(device.discards, has ? 0 : round + 1);	/* huge ones are replaced */
	}
	device.refuses = true;
	assert_false(take(0, 64 * K));
	assert_false(vm_has(base + 8 * M, "ht"));
	device.refuses = false;
	finish();
	begin_huge(32 * M, 1 * M);	/* less than a page */
	assert_true(take(0, 64 * K));
	assert_false(vm_has(base + ring[0].offset, "ht"));
	give(0);
	finish();
	shunt_guard_unmap(base, 32 * M);
	base = untouched;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_come_one_by_one),
		cmocka_unit_test(a_used_block_stays),
		cmocka_unit_test(used_blocks_fill_first),
		cmocka_unit_test(buddies_join),
		cmocka_unit_test(it_has_an_end),
		cmocka_unit_test(the_device_refuses),
		cmocka_unit_test(blocks_fit),
		cmocka_unit_test(what_is_not_out_is_not_taken_back),
		cmocka_unit_test(a_bound_arena),
		cmocka_unit_test(at_random),
		cmocka_unit_test(no_byte_beyond_lines_or_arena),
		cmocka_unit_test(no_byte_beyond_a_ring),
		cmocka_unit_test(blocks_have_huge_pages),
	};

	base = mmap(NULL, 4096 * M, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
