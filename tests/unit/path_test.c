/* SPDX-License-Identifier: MIT */
/* The attributes that a queue pair gets from a resolved path (core/device/verbs/path.c). */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/device/verbs/verbs.h"

static const uint16_t *table; /* of the port; 0: an entry that cannot be read */

static int query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
	(void)context;
	assert_int_equal(port, 2);
	*pkey = htons(table[index]);
	return table[index] ? 0 : -1;
}

static int partition(const uint16_t *keys, uint16_t count, uint16_t wanted)
{
	struct verbs_device device = { .port = { .number = 2, .pkeys = count },
				       .setup = { .query_pkey = query_pkey } };
	struct shunt_path path = { .pkey = wanted };

	table = keys;
	return verbs_path_partition(&device, &path);
}

static void a_partition_has_an_index(void **state)
{
	static const uint16_t keys[] = { 0xffff, 0, 0x0012, 0x8012, 0x0034, 0x0034 };

	(void)state;
	assert_int_equal(partition(keys, 6, 0xffff), 0);
	assert_int_equal(partition(keys, 6, 0x7fff), 0); /* a limited member may speak with a full one */
	assert_int_equal(partition(keys, 6, 0x8012), 3); /* a full membership comes before a limited one */
	assert_int_equal(partition(keys, 6, 0x0012), 3);
	assert_int_equal(partition(keys, 3, 0x8012), 2);
	assert_int_equal(partition(keys, 6, 0x8034), 4);
	assert_int_equal(partition(keys, 6, 0x8056), -ENOENT);
	assert_int_equal(partition(keys, 0, 0xffff), -ENOENT);
	assert_int_equal(partition(keys, 6, 0), 0); /* nobody has named one */
}

static void the_least_mtu_counts(void **state)
{
	struct verbs_port port = { .mtu = IBV_MTU_2048 };
	struct shunt_path path = { 0 };

	(void)state;
	assert_int_equal(verbs_path_mtu(&port, &path, IBV_MTU_4096), IBV_MTU_2048);
	assert_int_equal(verbs_path_mtu(&port, &path, IBV_MTU_1024), IBV_MTU_1024);
	path.mtu = IBV_MTU_512;
	assert_int_equal(verbs_path_mtu(&port, &path, IBV_MTU_1024), IBV_MTU_512);
	path.mtu = IBV_MTU_4096;
	assert_int_equal(verbs_path_mtu(&port, &path, IBV_MTU_4096), IBV_MTU_2048);
}

static void packets_have_what_the_path_says(void **state)
{
	const struct verbs_port port = { .number = 2, .gid_index = 3, .lid = 0x40 };
	const struct shunt_path path = { .sl = 5, .traffic_class = 0x68, .hop_limit = 7 };
	const struct shunt_path infiniband = { .slid = 0x42, .dlid = 0x93, .sl = 1 };
	const struct shunt_path none = { 0 };
	union ibv_gid gid;
	struct ibv_ah_attr handle;

	(void)state;
	memset(&gid, 9, sizeof(gid));
	handle = verbs_path_address(&port, &path, &gid, 0);
	assert_memory_equal(&handle.grh.dgid, &gid, sizeof(gid));
	assert_int_equal(handle.grh.sgid_index, 3);
	assert_int_equal(handle.port_num, 2);
	assert_int_equal(handle.is_global, 1);
	assert_int_equal(handle.sl, 5);
	assert_int_equal(handle.grh.traffic_class, 0x68);
	assert_int_equal(handle.grh.hop_limit, 7);
	assert_int_equal(handle.dlid, 0);
	assert_int_equal(handle.src_path_bits, 0);

	handle = verbs_path_address(&port, &infiniband, &gid, 0x90);
	assert_int_equal(handle.dlid, 0x93);
	assert_int_equal(handle.src_path_bits, 2);
	assert_int_equal(handle.sl, 1);

	handle = verbs_path_address(&port, &none, &gid, 0x90);
	assert_int_equal(handle.dlid, 0x90);
	assert_int_equal(handle.grh.hop_limit, 64);
	assert_int_equal(handle.src_path_bits, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_partition_has_an_index),
		cmocka_unit_test(the_least_mtu_counts),
		cmocka_unit_test(packets_have_what_the_path_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
