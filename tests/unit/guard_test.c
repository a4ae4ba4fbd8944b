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

/* The flags of the mapping that begins there (proc_pid_smaps(5)), "" if there is none. */
static void flags_of(const void *at, char flags[256])
{
	FILE *smaps = fopen("/proc/self/smaps", "r");
	unsigned long from, to;
	char line[512];
	int here = 0;

	assert_non_null(smaps);
	flags[0] = '\0';
	while (fgets(line, sizeof(line), smaps)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			here = from == (unsigned long)at;
		if (here && !strncmp(line, "VmFlags:", 8))
			snprintf(flags, 256, "%.250s", line + 8);
	}
	fclose(smaps);
}

static void neither_children_nor_dumps_have_it(void **state)
{
	char *memory = shunt_guard_map(BYTES, -1), flags[256];

	(void)state;
	assert_non_null(memory);
	shunt_guard_inside(memory + 4 * shunt_guard_page());
	for (int part = 0; part < 6; part += part ? 1 : 4) { /* before, the page, behind it */
		flags_of(memory + part * shunt_guard_page(), flags);
		assert_non_null(strstr(flags, " dc")); /* do not copy area on fork */
		assert_non_null(strstr(flags, " dd")); /* do not include area into core dump */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_byte_beyond_is_a_fault),
		cmocka_unit_test(a_page_inside_is_forbidden),
		cmocka_unit_test(neither_children_nor_dumps_have_it),
		cmocka_unit_test(nothing_is_left),
		cmocka_unit_test(a_file_is_shared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
