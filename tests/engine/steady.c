/* SPDX-License-Identifier: MIT */
/*
 * Sends and receives of streams that have been used for a while take no memory (RB-22). The linker puts a counter
 * before each function by which libshuntcore.a could take some.
 */
#include "tests/engine/bed.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#define WARM 100	/* rounds in which rings, stages and windows become as large as they will be */
#define ROUNDS 400

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
int __real_posix_memalign(void **memory, size_t alignment, size_t bytes);
void *__real_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
int __wrap_posix_memalign(void **memory, size_t alignment, size_t bytes);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);

static _Atomic uint64_t taken;	/* calls */

void *__wrap_malloc(size_t bytes)
{
	taken++;
	return __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
	taken++;
	return __real_calloc(count, bytes);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
	taken++;
	return __real_realloc(memory, bytes);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
	taken++;
	return __real_aligned_alloc(alignment, bytes);
}

int __wrap_posix_memalign(void **memory, size_t alignment, size_t bytes)
{
	taken++;
	return __real_posix_memalign(memory, alignment, bytes);
}

void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	taken++;
	return __real_mmap(at, bytes, protection, flags, fd, offset);
}

/* One send of each size in each direction; then as much as a stage holds, while another thread has the lane. */
static void play_round(int set)
{
	static const size_t sizes[] = { 1, 64, 1000, 4096, 16384, BUFFER };

	for (size_t n = 0; n < sizeof(sizes) / sizeof(sizes[0]); n++) {
		for (int i = 0; i < bed.pairs; i++)
			for (int side = 0; side < 2; side++)
				put(i, side, sizes[n], 0);
		turn();
		assert_true(reported(set) & EPOLLIN);
		drain();
	}
	busy();
	for (int n = 0; n < 20; n++)
		for (int i = 0; i < bed.pairs; i++)
			put(i, 0, 1000, 0);
	free_again();
	all_arrived();
}

static void takes_nothing(const struct shunt_config *config)
{
	struct epoll_event event = { .events = EPOLLIN };
	int set = epoll_create1(EPOLL_CLOEXEC);
	uint64_t before;

	assert_return_code(set, errno);
	make_bed(config, 3);
	shunt_file_epoll(engines[0], set);
	freeze_clock(true);	/* nothing is idle for so long that its memory goes back */
	assert_int_equal(
		shunt_epset_ctl(engines[0], set, EPOLL_CTL_ADD, bed.pair[0].side[0].fd, &event), 0);
	for (int n = 0; n < WARM; n++)
		play_round(set);
	before = taken;
	assert_true(before > 0);	/* the counters are in place */
	for (int n = 0; n < ROUNDS; n++)
		play_round(set);
	assert_int_equal(taken - before, 0);
	freeze_clock(false);
	shunt_file_closing(engines[0], set);
	close(set);
	end_bed();
}

static void on_the_soft_device(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	takes_nothing(&config);
}

static void with_bytes_retained(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	config.retain = 1;
	takes_nothing(&config);
}

static void with_bytes_fetched(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	config.retain = 1;
	config.inline_bytes = 64;
	takes_nothing(&config);
}

static void with_each_send_apart(void **state)
{
	struct shunt_config config = small_config(SINGLE);

	(void)state;
	takes_nothing(&config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(on_the_soft_device),
		cmocka_unit_test(with_bytes_retained),
		cmocka_unit_test(with_bytes_fetched),
		cmocka_unit_test(with_each_send_apart),
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
	shunt_log_set_level(SHUNT_LOG_NONE);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
