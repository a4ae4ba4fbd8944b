/* SPDX-License-Identifier: MIT */
/* Copies of all kinds: each length, each alignment, bytes beside them untouched, ends of pages, many bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/base/copy.h"

#define LONGEST 300
#define ALIGNMENTS 64
#define MARGIN 64
#define FILLER 0xa5
#define HUGE ((32 << 20) + 13)
#define TURNS 2000
#define TURN_BYTES 20000

static bool as_chosen(uint64_t choice, void *to, const void *from, size_t bytes)
{
	return shunt_copy(to, from, bytes, &choice);
}

static bool as_auto(void *to, const void *from, size_t bytes)
{
	return as_chosen(SHUNT_COPY_AUTO, to, from, bytes);
}

static bool as_memcpy(void *to, const void *from, size_t bytes)
{
	return as_chosen(SHUNT_COPY_MEMCPY, to, from, bytes);
}

static bool as_nt(void *to, const void *from, size_t bytes)
{
	return as_chosen(SHUNT_COPY_NT, to, from, bytes);
}

static bool (*const kinds[])(void *to, const void *from, size_t bytes) = {
	shunt_copy_plain, shunt_copy_narrow, shunt_copy_past, shunt_copy_string,
	as_auto, as_memcpy, as_nt,
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static uint8_t byte_at(size_t i)
{
	return (uint8_t)(i * 31 + i / 251 + 7);
}

static void fill(uint8_t *at, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		at[i] = byte_at(i);
}

static void check(const uint8_t *at, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		assert_int_equal(at[i], byte_at(i));
}

static void check_filler(const uint8_t *at, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		assert_int_equal(at[i], FILLER);
}

/* Between two places at these distances from a line, with a margin of FILLER on both sides. */
static void copy_once(unsigned int kind, uint8_t *to, uint8_t *from, size_t to_at, size_t from_at,
		      size_t bytes)
{
	fill(from + from_at, bytes);
	memset(to, FILLER, MARGIN + to_at + bytes + MARGIN);
	assert_true(kinds[kind](to + MARGIN + to_at, from + from_at, bytes));
	check_filler(to, MARGIN + to_at);
	check(to + MARGIN + to_at, bytes);
	check_filler(to + MARGIN + to_at + bytes, MARGIN);
}

static void each_length_and_alignment(void **state)
{
	static _Alignas(64) uint8_t to[2 * MARGIN + ALIGNMENTS + LONGEST],
		from[ALIGNMENTS + LONGEST];

	(void)state;
	for (unsigned int kind = 0; kind < KINDS; kind++)
		for (size_t bytes = 0; bytes <= LONGEST; bytes++)
			for (size_t at = 0; at < ALIGNMENTS; at++) {
				copy_once(kind, to, from, at, (at * 37 + bytes) % ALIGNMENTS,
					  bytes);
				copy_once(kind, to, from, (at * 29 + bytes) % ALIGNMENTS, at,
					  bytes);
			}
}

static void around_the_sizes_that_choose(void **state)
{
	static const size_t around[] = { SHUNT_COPY_LARGE, 16384, 65536 };
	uint8_t *to = malloc(2 * MARGIN + ALIGNMENTS + 65536 + 2),
		*from = malloc(ALIGNMENTS + 65536 + 2);

	(void)state;
	assert_true(to && from);
	for (unsigned int kind = 0; kind < KINDS; kind++)
		for (unsigned int i = 0; i < sizeof(around) / sizeof(around[0]); i++)
			for (size_t bytes = around[i] - 2; bytes <= around[i] + 2; bytes++)
				for (size_t at = 0; at < ALIGNMENTS; at += 21)
					copy_once(kind, to, from, at, ALIGNMENTS - 1 - at, bytes);
	free(to);
	free(from);
}

/* Three pages of which only the middle one may be touched. */
static uint8_t *lone_page(void)
{
	uint8_t *at = mmap(NULL, 3 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(at != MAP_FAILED);
	assert_int_equal(mprotect(at + 4096, 4096, PROT_READ | PROT_WRITE), 0);
	return at + 4096;
}

static void nothing_beside_is_touched(void **state)
{
	uint8_t *to = lone_page(), *from = lone_page();

	(void)state;
	for (unsigned int kind = 0; kind < KINDS; kind++)
		for (size_t bytes = 0; bytes <= 4096; bytes += bytes < LONGEST ? 1 : 52) {
			fill(from, bytes);
			assert_true(kinds[kind](to + 4096 - bytes, from, bytes));	/* both ends of a page */
			check(to + 4096 - bytes, bytes);
			fill(from + 4096 - bytes, bytes);
			assert_true(kinds[kind](to, from + 4096 - bytes, bytes));
			check(to, bytes);
		}
	munmap(to - 4096, 3 * 4096);
	munmap(from - 4096, 3 * 4096);
}

static void land(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	if (shunt_copy_lands(context))
		return;
	abort();
}

static void catch_faults(void (*with)(int number, siginfo_t *info, void *context))
{
	struct sigaction action = { .sa_sigaction = with, .sa_flags = SA_SIGINFO }, none = { .sa_handler = SIG_DFL };

	assert_int_equal(sigaction(SIGSEGV, with ? &action : &none, NULL), 0);
	assert_int_equal(sigaction(SIGBUS, with ? &action : &none, NULL), 0);
}

/* One byte too many, before or behind a page: of what is read, and of what is written. */
static void a_fault_is_a_failure(void **state)
{
#if defined(__x86_64__) || defined(__aarch64__)
	uint8_t *page = lone_page();
	static uint8_t other[3 * 4096];

	(void)state;
	catch_faults(land);
	for (unsigned int kind = 0; kind < KINDS; kind++)
		for (size_t bytes = 1; bytes <= 4096; bytes += bytes < LONGEST ? 1 : 52) {
			assert_false(kinds[kind](other, page + 4096 - bytes + 1, bytes));
			assert_false(kinds[kind](page + 4096 - bytes + 1, other, bytes));
			assert_false(kinds[kind](other, page - 1, bytes));
			assert_false(kinds[kind](page - 1, other, bytes));
		}
	for (unsigned int kind = 0; kind < KINDS; kind++) {
		assert_false(kinds[kind](other, page - 4096, sizeof(other)));
		assert_false(kinds[kind](page, other, sizeof(other)));
		assert_true(kinds[kind](page, other, 4096));
	}
	catch_faults(NULL);
	munmap(page - 4096, 3 * 4096);
#else
	(void)state;
	skip();
#endif
}

/* Cut short while it is mapped: SIGBUS. */
static void the_end_of_a_file_is_one(void **state)
{
#if defined(__x86_64__) || defined(__aarch64__)
	int fd = memfd_create("copy_test", MFD_CLOEXEC);
	static uint8_t other[65536];
	uint8_t *map;

	(void)state;
	assert_int_equal(ftruncate(fd, 65536), 0);
	map = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(map != MAP_FAILED);
	assert_int_equal(ftruncate(fd, 8192), 0);
	catch_faults(land);
	for (unsigned int kind = 0; kind < KINDS; kind++) {
		assert_false(kinds[kind](other, map, 65536));
		assert_false(kinds[kind](map, other, 65536));
		assert_false(kinds[kind](other, map + 8192, 1));
		assert_true(kinds[kind](other, map, 8192));
	}
	catch_faults(NULL);
	munmap(map, 65536);
	close(fd);
#else
	(void)state;
	skip();
#endif
}

static void many_bytes(void **state)
{
	uint8_t *to = malloc(HUGE + 3), *from = malloc(HUGE + 5);

	(void)state;
	assert_true(to && from);
	for (size_t i = 0; i < HUGE; i++)
		from[5 + i] = byte_at(i);
	for (unsigned int kind = 0; kind < KINDS; kind++) {
		memset(to, 0, HUGE + 3);
		assert_true(kinds[kind](to + 3, from + 5, HUGE));
		assert_memory_equal(to + 3, from + 5, HUGE);
	}
	free(to);
	free(from);
}

/* --- the barrier: who sees the word that is stored after the call sees the bytes --- */

static struct {
	_Alignas(64) _Atomic uint64_t said, seen;
	_Alignas(64) uint8_t bytes[TURN_BYTES];
	unsigned int kind;
} shared;

static void *say(void *arg)
{
	uint8_t *from = malloc(TURN_BYTES);

	for (uint64_t turn = 1; from && turn <= TURNS; turn++) {
		memset(from, (int)(turn & 255), TURN_BYTES);
		if (!kinds[shared.kind](shared.bytes, from, TURN_BYTES))
			abort();
		atomic_store_explicit(&shared.said, turn, memory_order_release);
		while (atomic_load_explicit(&shared.seen, memory_order_acquire) < turn)
			sched_yield();
	}
	free(from);
	return arg;
}

static void bytes_are_seen_before_what_follows(void **state)
{
	(void)state;
	for (shared.kind = 0; shared.kind < KINDS; shared.kind++) {
		pthread_t thread;

		shared.said = shared.seen = 0;
		assert_int_equal(pthread_create(&thread, NULL, say, NULL), 0);
		for (uint64_t turn = 1; turn <= TURNS; turn++) {
			while (atomic_load_explicit(&shared.said, memory_order_acquire) < turn)
				sched_yield();
			for (size_t i = TURN_BYTES; i--;)	/* the last bytes were stored last */
				if (shared.bytes[i] != (turn & 255))
					fail_msg("kind %u: byte %zu of turn %lu is of another",
						 shared.kind, i, (unsigned long)turn);
			atomic_store_explicit(&shared.seen, turn, memory_order_release);
		}
		pthread_join(thread, NULL);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_length_and_alignment),
		cmocka_unit_test(around_the_sizes_that_choose),
		cmocka_unit_test(nothing_beside_is_touched),
		cmocka_unit_test(a_fault_is_a_failure),
		cmocka_unit_test(the_end_of_a_file_is_one),
		cmocka_unit_test(many_bytes),
		cmocka_unit_test(bytes_are_seen_before_what_follows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
