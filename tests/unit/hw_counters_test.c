/* SPDX-License-Identifier: MIT */
/* The counters of a device's port, from a tree of our own: as the kernel has it, and with contents that are wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/admin/hw_counters.h"

static char root[] = "/tmp/hw-counters-XXXXXX";
static struct shunt_hw_port port;

static void in_root(char *path, size_t room, const char *below)
{
	assert_in_range(snprintf(path, room, "%s/%s", root, below), 1, (int)room - 1);
}

static void make_dir(const char *below)
{
	char path[512];

	in_root(path, sizeof(path), below);
	assert_int_equal(mkdir(path, 0700), 0);
}

static void make_file(const char *below, const char *text, size_t bytes)
{
	char path[512];
	FILE *file;

	in_root(path, sizeof(path), below);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, bytes, file), bytes);
	fclose(file);
}

static void counter(const char *name, const char *text)
{
	char below[400];

	snprintf(below, sizeof(below), "rxe0/ports/1/hw_counters/%s", name);
	make_file(below, text, strlen(text));
}

/* -1: it is not there. */
static int64_t value_of(const char *name)
{
	for (uint32_t i = 0; i < port.count; i++)
		if (!strcmp(port.counters[i].name, name))
			return (int64_t)port.counters[i].value;
	return -1;
}

static int begin(void **state)
{
	(void)state;
	strcpy(root + strlen(root) - 6, "XXXXXX");
	assert_non_null(mkdtemp(root));
	make_dir("rxe0");
	make_dir("rxe0/ports");
	make_dir("rxe0/ports/1");
	make_file("rxe0/ports/1/state", "4: ACTIVE\n", 10);
	make_file("rxe0/ports/1/link_layer", "Ethernet\n", 9);
	make_dir("rxe0/ports/1/hw_counters");
	return 0;
}

static int drop(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

static int end(void **state)
{
	(void)state;
	return nftw(root, drop, 16, FTW_DEPTH | FTW_PHYS);
}

static int read_it(void)
{
	return shunt_hw_counters_read(root, "rxe0", 1, &port);
}

static void as_the_kernel_has_it(void **state)
{
	(void)state;
	counter("rcvd_rnr_err", "17\n");
	counter("completer_retry_err", "0\n");
	counter("out_of_sequence", "18446744073709551615\n");
	counter("lifespan", "10\n");
	assert_int_equal(read_it(), 0);
	assert_string_equal(port.state, "ACTIVE");
	assert_string_equal(port.link_layer, "Ethernet");
	assert_int_equal(port.count, 3);
	assert_string_equal(port.counters[0].name, "completer_retry_err");
	assert_int_equal(value_of("rcvd_rnr_err"), 17);
	assert_true(port.counters[1].value == UINT64_MAX);
	assert_int_equal(value_of("lifespan"), -1);
}

static void wrong_contents(void **state)
{
	(void)state;
	counter("good", "5");
	counter("empty", "");
	counter("newline", "\n");
	counter("negative", "-1\n");
	counter("words", "12 apples\n");
	counter("space", " 12\n");
	counter("hex", "0x12\n");
	counter("large", "18446744073709551616\n");
	counter("larger", "99999999999999999999999\n");
	counter("endless", "00000000000000000000000000000000000000000000000000001\n");
	counter("two\nlines", "1\n");
	counter("quote\"", "1\n");
	counter("dot.dot", "1\n");
	counter("a_name_that_is_much_longer_than_any_counter_of_any_device_ever_was", "1\n");
	make_file("rxe0/ports/1/hw_counters/nul", "1\0002\n", 4);
	assert_int_equal(read_it(), 0);
	assert_int_equal(port.count, 1);
	assert_int_equal(value_of("good"), 5);
}

static void wrong_kinds(void **state)
{
	char path[512], target[512];

	(void)state;
	counter("good", "5\n");
	make_dir("rxe0/ports/1/hw_counters/folder");
	in_root(path, sizeof(path), "rxe0/ports/1/hw_counters/pipe");
	assert_int_equal(mkfifo(path, 0600), 0);
	make_file("secret", "42\n", 3);
	in_root(target, sizeof(target), "secret");
	in_root(path, sizeof(path), "rxe0/ports/1/hw_counters/link");
	assert_int_equal(symlink(target, path), 0);
	make_file("rxe0/ports/1/state", "4: ACT\x1b[31mIVE\n", 15);
	make_file("rxe0/ports/1/link_layer",
		  "a link layer whose name is longer than all that there ever was\n", 63);
	assert_int_equal(read_it(), 0);
	assert_int_equal(port.count, 1);
	assert_int_equal(value_of("good"), 5);
	assert_string_equal(port.state, "");
	assert_string_equal(port.link_layer, "");
}

static void too_many(void **state)
{
	char name[SHUNT_HW_NAME];

	(void)state;
	for (int i = 0; i < 2 * SHUNT_HW_MAX; i++) {
		snprintf(name, sizeof(name), "counter_%d", i);
		counter(name, "1\n");
	}
	assert_int_equal(read_it(), 0);
	assert_int_equal(port.count, SHUNT_HW_MAX);
	for (uint32_t i = 1; i < port.count; i++)
		assert_true(strcmp(port.counters[i - 1].name, port.counters[i].name) < 0);
}

static void nothing_there(void **state)
{
	char path[512];

	(void)state;
	assert_int_equal(shunt_hw_counters_read(root, "rxe1", 1, &port), -ENOENT);
	assert_int_equal(shunt_hw_counters_read(root, "rxe0", 2, &port), -ENOENT);
	assert_int_equal(shunt_hw_counters_read(root, "", 1, &port), -EINVAL);
	assert_int_equal(shunt_hw_counters_read(root, "..", 1, &port), -EINVAL);
	assert_int_equal(shunt_hw_counters_read(root, "../rxe0", 1, &port), -EINVAL);
	assert_int_equal(shunt_hw_counters_read(root, "rxe0/ports/1/../..", 1, &port), -EINVAL);
	in_root(path, sizeof(path), "rxe0/ports/1/hw_counters");
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(read_it(), 0);
	assert_int_equal(port.count, 0);
	assert_string_equal(port.state, "ACTIVE");
}

static int lowest_fd(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), number = fd;

	close(fd);
	return number;
}

static void no_descriptor_stays(void **state)
{
	int before = lowest_fd();

	(void)state;
	counter("good", "5\n");
	for (int i = 0; i < 8; i++)
		assert_int_equal(read_it(), 0);
	assert_int_equal(lowest_fd(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(as_the_kernel_has_it, begin, end),
		cmocka_unit_test_setup_teardown(wrong_contents, begin, end),
		cmocka_unit_test_setup_teardown(wrong_kinds, begin, end),
		cmocka_unit_test_setup_teardown(too_many, begin, end),
		cmocka_unit_test_setup_teardown(nothing_there, begin, end),
		cmocka_unit_test_setup_teardown(no_descriptor_stays, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
