/* SPDX-License-Identifier: MIT */
/* Go programs: which are known, where their system calls are, and that anything else is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <cmocka.h>
#include "core/go/sites.h"
#include "tests/go_maker.h"

static const struct go_program *const go_19 = &go_programs[1];

struct seen {
	enum shunt_go_verdict verdict;
	struct shunt_go_sites sites;
	char version[SHUNT_GO_VERSION], function[64];
	bool is_go;
};

static uint8_t file[GO_MADE_MAX];

static struct seen look(const uint8_t *bytes, size_t size)
{
	struct shunt_go_image image;
	struct seen seen = { .verdict = SHUNT_GO_NO_TABLE };

	if (!shunt_go_image_of_file(&image, bytes, size, &seen.is_go))
		return seen;
	shunt_go_version(&image, 0, seen.version);
	seen.verdict = shunt_go_sites_find(&seen.sites, &image,
					   shunt_go_image_section(bytes, size, ".gopclntab"));
	snprintf(seen.function, sizeof(seen.function), "%s",
		 seen.sites.function ? seen.sites.function : "");
	return seen;
}

static struct seen look_at(const struct go_program *program)
{
	return look(file, go_make(program, file));
}

#ifdef __x86_64__

static const struct go_program *const go_17 = &go_programs[0], *const go_24 = &go_programs[3];

static bool has_site(const struct seen *seen, uint64_t address, uint8_t before)
{
	for (unsigned int i = 0; i < seen->sites.count; i++)
		if (seen->sites.site[i].address == address)
			return seen->sites.site[i].before == before;
	return false;
}

static void programs_are_known(void **state)
{
	static const unsigned int sites[GO_PROGRAMS] = { 11, 9, 6, 6, 6 };

	(void)state;
	for (int i = 0; i < GO_PROGRAMS; i++) {
		const struct go_program *program = &go_programs[i];
		struct seen seen = look_at(program);
		uint64_t vfork = GO_MADE_BASE + go_made_at(program, "syscall.rawVforkSyscall");

		assert_true(seen.is_go);
		assert_string_equal(seen.version, program->version);
		assert_int_equal(seen.verdict, SHUNT_GO_KNOWN);
		assert_int_equal(seen.sites.count, sites[i]);
		assert_true(
			has_site(&seen, GO_MADE_BASE + go_made_at(program, "runtime.exit") + 4, 5));
		assert_true(has_site(&seen, vfork + 5, 2));
	}
}

static void gates_have_their_instruction(void **state)
{
	struct seen seen = look_at(go_24);

	(void)state;
	assert_true(has_site(
		&seen, GO_MADE_BASE + go_made_at(go_24, "internal/runtime/syscall.Syscall6") + 9,
		3));
	seen = look_at(go_17);
	assert_true(has_site(&seen, GO_MADE_BASE + go_made_at(go_17, "syscall.RawSyscall") + 5, 5));
}

/* One byte before SYSCALL is another. */
static void other_code_is_refused(void **state)
{
	static const struct {
		const char *name;
		size_t at;
	} bytes[] = {
		{ "runtime/internal/syscall.Syscall6", 10 },
		{ "runtime.epollwait", 5 },
		{ "runtime.exit", 4 },
		{ "syscall.rawVforkSyscall", 10 },
	};
	struct seen seen;

	(void)state;
	for (size_t i = 0; i < sizeof(bytes) / sizeof(*bytes); i++) {
		size_t size = go_make(go_19, file);

		file[go_made_at(go_19, bytes[i].name) + bytes[i].at] ^= 1;
		seen = look(file, size);
		assert_int_equal(seen.verdict, SHUNT_GO_OTHER_CODE);
		assert_string_equal(seen.function, bytes[i].name);
	}
}

/* The program of Go 1.19 with one function under another name. */
static struct seen renamed(const char *from, const char *to)
{
	struct go_function functions[32];
	struct go_program program = *go_19;

	memcpy(functions, go_19->functions, go_19->count * sizeof(*functions));
	for (size_t i = 0; i < program.count; i++)
		if (!strcmp(functions[i].name, from))
			functions[i].name = to;
	program.functions = functions;
	return look_at(&program);
}

static void other_names_are_refused(void **state)
{
	struct seen seen;

	(void)state;
	assert_int_equal(renamed("crosscall2", "crosscall3").verdict, SHUNT_GO_NO_CGO);
	seen = renamed("runtime/internal/syscall.Syscall6", "runtime/internal/linux.Syscall6");
	assert_int_equal(seen.verdict, SHUNT_GO_NO_GATE);
	seen = renamed("runtime.epollctl", "runtime.epollControl");
	assert_int_equal(seen.verdict, SHUNT_GO_OTHER_CODE);
	assert_string_equal(seen.function, "runtime.epollControl");
	/* Outside of the packages that make system calls nothing is looked at. */
	assert_int_equal(renamed("runtime.futex", "main.futex").verdict, SHUNT_GO_KNOWN);
	assert_int_equal(renamed("runtime.epollctl", "main.epollctl").verdict, SHUNT_GO_NO_GATE);
}

#else

static void other_machines_are_refused(void **state)
{
	(void)state;
	assert_int_equal(look_at(go_19).verdict, SHUNT_GO_OTHER_MACHINE);
}

#endif

/* Every file that ends early, and every one with a byte that is another: whatever is said, no byte outside is read. */
static void broken_files_do_no_harm(void **state)
{
	(void)state;
	for (int i = 0; i < GO_PROGRAMS; i++) {
		size_t size = go_make(&go_programs[i], file);
		uint8_t *copy;

		for (size_t end = 0; end < size; end += 1 + end / 64) {
			copy = malloc(end + 1);
			memcpy(copy, file, end);
			look(copy, end);
			free(copy);
		}
		copy = malloc(size);
		memcpy(copy, file, size);
		for (size_t at = 0; at < size; at++) {
			copy[at] ^= 0x81;
			look(copy, size);
			copy[at] ^= 0x81;
		}
		free(copy);
	}
}

static void other_tables_are_refused(void **state)
{
	struct go_program program = *go_19;

	(void)state;
	program.magic = 0xfffffff2;
	assert_int_equal(look_at(&program).verdict, SHUNT_GO_NO_TABLE);
	assert_false(look((const uint8_t *)"#!/bin/sh\n", 10).is_go);
}

/* The Go that is installed here, if one is. */
static void a_program_of_this_machine(void **state)
{
	char line[64];
	struct seen seen;
	uint8_t *bytes;
	FILE *program;
	size_t size;

	(void)state;
	program = popen("command -v go > /dev/null && cat \"$(readlink -f \"$(command -v go)\")\"",
			"r");
	if (!program || fread(line, 1, sizeof(line), program) < sizeof(line)) {
		print_message("skipped: go is not installed\n");
		skip();
	}
	bytes = malloc(256 << 20);
	memcpy(bytes, line, sizeof(line));
	size = sizeof(line) + fread(bytes + sizeof(line), 1, (256 << 20) - sizeof(line), program);
	seen = look(bytes, size);
	assert_true(seen.is_go);
	if (seen.verdict != SHUNT_GO_KNOWN && seen.verdict != SHUNT_GO_NO_CGO)
		fail_msg("%s: %s (%s)", seen.version, shunt_go_verdict_text(seen.verdict),
			 seen.function);
	free(bytes);
	pclose(program);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#ifdef __x86_64__
		cmocka_unit_test(programs_are_known),
		cmocka_unit_test(gates_have_their_instruction),
		cmocka_unit_test(other_code_is_refused),
		cmocka_unit_test(other_names_are_refused),
		cmocka_unit_test(a_program_of_this_machine),
#else
		cmocka_unit_test(other_machines_are_refused),
#endif
		cmocka_unit_test(other_tables_are_refused),
		cmocka_unit_test(broken_files_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
