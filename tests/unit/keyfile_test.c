/* SPDX-License-Identifier: MIT */
/* SHUNT_KEY's file: which are taken, which are not and why, and where the key lies afterwards. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "core/base/keyfile.h"

#define OTHER_USER 65534

static char folder[] = "/tmp/shunt-keyfile.XXXXXX";
static char path[64], other[64];
static const char *why;

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/key", folder);
	snprintf(other, sizeof(other), "%s/other", folder);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(path);
	unlink(other);
	return rmdir(folder);
}

/* A file of so many bytes, each `value`. */
static void put(const char *name, size_t bytes, int value, mode_t mode)
{
	static uint8_t text[SHUNT_KEYFILE_MAX + 1];
	int fd;

	unlink(name);
	memset(text, value, sizeof(text));
	fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, bytes), bytes);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static const uint8_t *key_of(const char *name)
{
	why = NULL;
	return shunt_keyfile_read(name, &why);
}

static void refused(const char *name, const char *because)
{
	assert_null(key_of(name));
	assert_non_null(why);
	assert_non_null(strstr(why, because));
}

static void a_good_file(void **state)
{
	const uint8_t *one, *same, *another;

	(void)state;
	put(path, 16, 'a', 0600);
	one = key_of(path);
	put(other, 16, 'a', 0400);
	same = key_of(other);
	put(other, 17, 'a', 0600);
	another = key_of(other);
	assert_non_null(one);
	assert_non_null(same);
	assert_non_null(another);
	assert_memory_equal(one, same, SHUNT_KEY_BYTES);
	assert_memory_not_equal(one, another, SHUNT_KEY_BYTES);
	assert_memory_not_equal(one, "aaaaaaaaaaaaaaaa", 16);
}

/* HMAC-SHA-256 of the file with the key "shunt between hosts": other hosts must come to the same. */
static void the_derived_key(void **state)
{
	static const uint8_t right[SHUNT_KEY_BYTES] = {
		0xa1, 0x81, 0x38, 0xb6, 0xdf, 0x77, 0x4a, 0xe0,
		0x65, 0x61, 0xb5, 0x66, 0x77, 0x4c, 0x96, 0xd9,
		0x62, 0xa1, 0x18, 0x9a, 0x9a, 0x1d, 0x6a, 0xbf,
		0xc2, 0xfe, 0xa5, 0xdb, 0xa3, 0x66, 0xd1, 0x54,
	};
	const uint8_t *key;

	(void)state;
	put(path, 32, 'k', 0600);
	key = key_of(path);
	assert_non_null(key);
	assert_memory_equal(key, right, sizeof(right));
}

static void sizes(void **state)
{
	(void)state;
	put(path, 15, 'a', 0600);
	refused(path, "less than 16");
	put(path, 0, 'a', 0600);
	refused(path, "less than 16");
	put(path, SHUNT_KEYFILE_MAX, 'a', 0600);
	assert_non_null(key_of(path));
	put(path, SHUNT_KEYFILE_MAX + 1, 'a', 0600);
	refused(path, "more than 4096");
}

static void rights_of_others(void **state)
{
	static const mode_t wrong[] = { 0601, 0602, 0604, 0610, 0620, 0666, 0644, 02644 };

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		put(path, 32, 'a', wrong[i]);
		refused(path, "others than");
	}
	put(path, 32, 'a', 0640);
	if (geteuid()) {
		refused(path, "chmod 600");
		return;
	}
	assert_non_null(key_of(path));	/* root's group may read */
}

/* As another user's process that root has given the file to, or not. */
static void owners(void **state)
{
	(void)state;
	if (geteuid())
		skip();
	put(path, 32, 'a', 0600);
	assert_int_equal(chown(path, OTHER_USER, OTHER_USER), 0);
	refused(path, "neither to this user nor to root");
	assert_int_equal(chmod(folder, 0711), 0);
	assert_int_equal(seteuid(OTHER_USER), 0);
	assert_non_null(key_of(path));
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(chmod(path, 0640), 0);
	assert_int_equal(seteuid(OTHER_USER), 0);
	refused(path, "chmod 600");
	assert_int_equal(seteuid(0), 0);
	put(path, 32, 'a', 0640);
	assert_int_equal(chown(path, 0, OTHER_USER), 0);
	assert_int_equal(setegid(OTHER_USER), 0);
	assert_int_equal(seteuid(OTHER_USER), 0);
	assert_non_null(key_of(path));
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(setegid(0), 0);
}

static void what_is_no_file(void **state)
{
	(void)state;
	put(other, 32, 'a', 0600);
	unlink(path);
	refused(path, "No such file");
	assert_int_equal(symlink(other, path), 0);
	refused(path, "symbolic link");
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);	/* nobody writes: it must not wait */
	refused(path, "regular");
	unlink(path);
	refused(folder, "regular");
	refused("/dev/zero", "regular");
}

/* "dd" of VmFlags: the mapping is in no core dump. Nothing writes to it any more. */
static void no_core_dump_has_it(void **state)
{
	char line[256];
	unsigned long from, to;
	bool inside = false, seen = false;
	const uint8_t *key;
	FILE *maps;

	(void)state;
	put(path, 32, 'a', 0600);
	key = key_of(path);
	assert_non_null(key);
	maps = fopen("/proc/self/smaps", "re");
	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		char rights[5];

		if (sscanf(line, "%lx-%lx %4s", &from, &to, rights) == 3) {
			inside = (uintptr_t)key >= from && (uintptr_t)key < to;
			if (inside)
				assert_string_equal(rights, "r--p");
		}
		if (inside && !strncmp(line, "VmFlags:", 8)) {
			assert_non_null(strstr(line, " dd"));
			seen = true;
		}
	}
	fclose(maps);
	assert_true(seen);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_good_file),
		cmocka_unit_test(the_derived_key),
		cmocka_unit_test(sizes),
		cmocka_unit_test(rights_of_others),
		cmocka_unit_test(owners),
		cmocka_unit_test(what_is_no_file),
		cmocka_unit_test(no_core_dump_has_it),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
