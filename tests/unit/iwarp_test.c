/* SPDX-License-Identifier: MIT */
/* iWARP devices, in a tree as sysfs has it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "core/base/address.h"
#include "core/device/iwarp.h"

static char root[] = "/tmp/shunt-iwarp-XXXXXX";
static const uint8_t mac[SHUNT_IWARP_MAC] = { 0x52, 0x54, 0, 0x12, 0x34, 0x56 };

static void make_folder(const char *path)
{
	char whole[256];

	snprintf(whole, sizeof(whole), "%s%s", root, path);
	mkdir(whole, 0700);
}

static void make_file(const char *path, const char *text)
{
	char whole[256];
	FILE *file;

	snprintf(whole, sizeof(whole), "%s%s", root, path);
	file = fopen(whole, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void make_device(const char *name, const char *type, int port, const char *gid)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s", name);
	make_folder(path);
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/node_type", name);
	make_file(path, type);
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports", name);
	make_folder(path);
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%d", name, port);
	make_folder(path);
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%d/gids", name, port);
	make_folder(path);
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%d/gids/0", name, port);
	make_file(path, gid);
}

static int begin(void **state)
{
	(void)state;
	return !mkdtemp(root);
}

static int end(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

/* One after the other: each finds what the ones before have made. */
static void devices_are_found(void **state)
{
	struct shunt_iwarp_port found;

	(void)state;
	assert_false(shunt_iwarp_is_there(root));
	assert_int_equal(shunt_iwarp_find(root, mac, &found), -ENODEV);
	make_folder("/sys");
	make_folder("/sys/class");
	make_folder("/sys/class/infiniband");
	assert_false(shunt_iwarp_is_there(root));
	/* RoCE: the GID is another thing there, and the type is an HCA's. */
	make_device("rxe0", "1: CA\n", 1, "5254:0012:3456:0000:0000:0000:0000:0000\n");
	assert_false(shunt_iwarp_is_there(root));
	assert_int_equal(shunt_iwarp_find(root, mac, &found), -ENODEV);
	make_device("siw1", "4: RNIC\n", 1, "5254:0012:3457:0000:0000:0000:0000:0000\n");
	make_device("siw2", "4: RNIC\n", 1, "no gid\n");
	make_folder("/sys/class/infiniband/siw3");
	assert_true(shunt_iwarp_is_there(root));
	assert_int_equal(shunt_iwarp_find(root, mac, &found), -ENODEV);
	make_device("cxgb4_0", "4: RNIC\n", 2, "5254:0012:3456:0000:0000:0000:0000:0000\n");
	assert_int_equal(shunt_iwarp_find(root, mac, &found), 0);
	assert_string_equal(found.device, "cxgb4_0");
	assert_int_equal(found.port, 2);
}

static void addresses_have_devices(void **state)
{
	const uint8_t nobody[16] = { SHUNT_ADDRESS_V4, 240, 0, 0, 1 },
		      loopback[16] = { SHUNT_ADDRESS_V4, 127, 0, 0, 1 };
	uint8_t its[SHUNT_IWARP_MAC];

	(void)state;
	assert_int_equal(shunt_iwarp_mac(nobody, its), -ENODEV);
	assert_int_equal(shunt_iwarp_mac(loopback, its), -ENODEV); /* it has none */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(devices_are_found),
		cmocka_unit_test(addresses_have_devices),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
