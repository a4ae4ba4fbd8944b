/* SPDX-License-Identifier: MIT */
/* Guarded mappings: the bytes on both sides, a child, a core dump, and what is left. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/base/guard.h"
#include "tests/vm.h"

#define K 1024ull
#define BYTES (64 * K)

/* A child makes a mapping and writes to a byte of it. 0, or the signal that ended the child. */
static int write_at(uint64_t bytes, uint64_t inside, ptrdiff_t at)
{
	pid_t child = fork();
	int status;

	if (!child) {
		char *memory = shunt_guard_map(bytes, -1);

		signal(SIGSEGV, SIG_DFL); /* a sanitizer has a handler */
		if (!memory)
			_exit(2);
		if (inside)
			shunt_guard_inside(memory + inside);
		*(volatile char *)(memory + at) = 1;
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(!status || WIFSIGNALED(status));
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void a_byte_beyond_is_a_fault(void **state)
{
	ptrdiff_t page = (ptrdiff_t)shunt_guard_page();

	(void)state;
	assert_int_equal(write_at(BYTES, 0, 0), 0);
	assert_int_equal(write_at(BYTES, 0, BYTES - 1), 0);
	assert_int_equal(write_at(BYTES, 0, BYTES), SIGSEGV);
	assert_int_equal(write_at(BYTES, 0, BYTES + page - 1), SIGSEGV);
	assert_int_equal(write_at(BYTES, 0, -1), SIGSEGV);
	assert_int_equal(write_at(BYTES, 0, -page), SIGSEGV);
	assert_int_equal(write_at(1, 0, page - 1), 0); /* a page is the least */
	assert_int_equal(write_at(1, 0, page), SIGSEGV);
}

static void a_page_inside_is_forbidden(void **state)
{
	ptrdiff_t page = (ptrdiff_t)shunt_guard_page();

	(void)state;
	assert_int_equal(write_at(4 * (uint64_t)page, (uint64_t)page, page - 1), 0);
	assert_int_equal(write_at(4 * (uint64_t)page, (uint64_t)page, page), SIGSEGV);
	assert_int_equal(write_at(4 * (uint64_t)page, (uint64_t)page, 2 * page - 1), SIGSEGV);
	assert_int_equal(write_at(4 * (uint64_t)page, (uint64_t)page, 2 * page), 0);
}

static void neither_children_nor_dumps_have_it(void **state)
{
	char *memory = shunt_guard_map(BYTES, -1);

	(void)state;
	assert_non_null(memory);
	shunt_guard_inside(memory + 4 * shunt_guard_page());
	for (int part = 0; part < 6; part += part ? 1 : 4) { /* before, the page, behind it */
		assert_true(vm_has(memory + part * shunt_guard_page(), "dc")); /* do not copy area on fork */
		assert_true(vm_has(memory + part * shunt_guard_page(), "dd")); /* do not include area into core dump */
	}
	shunt_guard_unmap(memory, BYTES);
}

/* Is any byte of it mapped? */
static int is_mapped(char *at, size_t bytes)
{
	unsigned char resident;

	for (size_t i = 0; i < bytes; i += shunt_guard_page())
		if (!mincore(at + i, 1, &resident))
			return 1;
	return 0;
}

static void nothing_is_left(void **state)
{
	char *memory = shunt_guard_map(BYTES + 1, -1);
	size_t page = shunt_guard_page();

	(void)state;
	assert_non_null(memory);
	shunt_guard_unmap(memory, BYTES + 1);
	assert_false(is_mapped(memory - page, BYTES + page + shunt_guard_cost()));
	errno = 0;
	assert_null(shunt_guard_map(SIZE_MAX - page, -1));
	assert_int_equal(errno, ENOMEM);
}

static void a_file_is_shared(void **state)
{
	int fd = memfd_create("guard", MFD_CLOEXEC);
	char *memory, byte = 7;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, BYTES), 0);
	memory = shunt_guard_map(BYTES, fd);
	assert_non_null(memory);
	assert_int_equal(pwrite(fd, &byte, 1, 5), 1);
	assert_int_equal(memory[5], 7);
	memory[6] = 8;
	assert_int_equal(pread(fd, &byte, 1, 6), 1);
	assert_int_equal(byte, 8);
	shunt_guard_unmap(memory, BYTES);
	close(fd);
	errno = 0;
	assert_null(shunt_guard_map(BYTES, fd));
	assert_int_equal(errno, EBADF);
}

/* --- huge pages (RB-28, XR-39h) --- */

#define LARGE SHUNT_GUARD_LARGE

static bool is_aligned(const void *at)
{
	return !((uintptr_t)at % LARGE);
}

/* The guards are where they always are, and nothing is left of what was reserved for the alignment. */
static void a_large_mapping_begins_with_a_huge_page(void **state)
{
	size_t page = shunt_guard_page();

	(void)state;
	for (int fd = -1, round = 0; round < 2; round++) {
		char *memory;

		if (round)
			fd = memfd_create("large", MFD_CLOEXEC);
		assert_true(!round || !ftruncate(fd, 4 * LARGE + 5));
		memory = shunt_guard_map_large(4 * LARGE + 5, fd);
		assert_non_null(memory);
		assert_true(is_aligned(memory));
		assert_true(vm_has(memory, "hg") && vm_has(memory, "dc") && vm_has(memory, "dd"));
		assert_false(vm_has(memory - page, "wr") ||
			     vm_has(memory + 4 * LARGE + page, "wr"));
		memory[0] = memory[4 * LARGE + 4] = 1;
		if (vm_gives_transparent(fd < 0 ? "enabled" : "shmem_enabled"))
			assert_int_equal(
				vm_huge(memory, fd < 0 ? "AnonHugePages:" : "ShmemPmdMapped:"),
				LARGE / K);
		shunt_guard_unmap(memory, 4 * LARGE + 5);
		assert_false(is_mapped(memory - page, 4 * LARGE + page + shunt_guard_cost()));
		if (fd >= 0)
			close(fd);
	}
	assert_null(shunt_guard_map_large(SIZE_MAX - LARGE, -1));
}

/* Free explicit huge pages of the machine, or what may be made on demand. */
static long huge_pages(void)
{
	char text[64] = "";
	long pages = 0;

	for (int i = 0; i < 2; i++) {
		FILE *file = fopen(
			i ? "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_overcommit_hugepages" :
			    "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages",
			"r");

		if (file && fgets(text, sizeof(text), file))
			pages += atol(text);
		if (file)
			fclose(file);
	}
	return pages;
}

/* All of them or none, and in each case zeroes that can be written to. */
static void explicit_huge_pages_or_ordinary_ones(void **state)
{
	char *memory = shunt_guard_map_large(4 * LARGE, -1);
	bool has = huge_pages() >= 2;

	(void)state;
	print_message("# explicit huge pages: %s\n", has ? "yes" : "no");
	for (int round = 0; round < 3; round++) {
		int result = shunt_guard_set_huge(memory + LARGE, 2 * LARGE);

		assert_int_equal(!result, has);
		assert_int_equal(vm_has(memory + LARGE, "ht"), has);
		assert_true(vm_has(memory + LARGE, "dc") && vm_has(memory + LARGE, "dd"));
		assert_false(vm_has(memory, "ht") || vm_has(memory + 3 * LARGE, "ht"));
		for (size_t at = 0; at < 4 * LARGE; at += shunt_guard_page()) {
			assert_int_equal(memory[at], at < LARGE || at >= 3 * LARGE ? !!round : 0);
			memory[at] = 1;
		}
		assert_int_equal(shunt_guard_set_ordinary(memory + LARGE, 2 * LARGE), 0);
		assert_false(vm_has(memory + LARGE, "ht"));
		assert_int_equal(memory[LARGE], 0);
	}
	assert_true(shunt_guard_set_huge(memory + LARGE + 4096, LARGE)); /* no huge page begins there */
	assert_false(vm_has(memory + LARGE + 4096, "ht"));
	memory[LARGE + 4096] = 1;
	shunt_guard_unmap(memory, 4 * LARGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_byte_beyond_is_a_fault),
		cmocka_unit_test(a_page_inside_is_forbidden),
		cmocka_unit_test(neither_children_nor_dumps_have_it),
		cmocka_unit_test(nothing_is_left),
		cmocka_unit_test(a_file_is_shared),
		cmocka_unit_test(a_large_mapping_begins_with_a_huge_page),
		cmocka_unit_test(explicit_huge_pages_or_ordinary_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
