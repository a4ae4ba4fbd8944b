/* SPDX-License-Identifier: MIT */
/* libibverbs and the calls that are taken from it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "core/device/verbs/verbs.h"

/*
 * One row a call: where it goes, its symbol, and the version of the symbol that <infiniband/verbs.h>
 * describes. (IBVERBS_1.0 of most is another ABI, of 2006.)
 */
static const struct call {
	size_t offset;
	const char *symbol, *version;
} calls[] = {
#define CALL(member, symbol, version) { offsetof(struct verbs_device, member), symbol, "IBVERBS_" version }
	CALL(verbs.alloc_pd, "ibv_alloc_pd", "1.1"),
	CALL(verbs.dealloc_pd, "ibv_dealloc_pd", "1.1"),
	CALL(verbs.register_mr, "ibv_reg_mr", "1.1"),
	CALL(verbs.deregister_mr, "ibv_dereg_mr", "1.1"),
	CALL(verbs.create_comp_channel, "ibv_create_comp_channel", "1.0"),
	CALL(verbs.destroy_comp_channel, "ibv_destroy_comp_channel", "1.0"),
	CALL(verbs.create_cq, "ibv_create_cq", "1.1"),
	CALL(verbs.destroy_cq, "ibv_destroy_cq", "1.1"),
	CALL(verbs.get_cq_event, "ibv_get_cq_event", "1.1"),
	CALL(verbs.ack_cq_events, "ibv_ack_cq_events", "1.1"),
	CALL(verbs.create_qp, "ibv_create_qp", "1.1"),
	CALL(verbs.modify_qp, "ibv_modify_qp", "1.1"),
	CALL(verbs.query_qp, "ibv_query_qp", "1.1"),
	CALL(verbs.destroy_qp, "ibv_destroy_qp", "1.1"),
	CALL(verbs.query_device, "ibv_query_device", "1.1"),
	CALL(verbs.get_async_event, "ibv_get_async_event", "1.1"),
	CALL(verbs.ack_async_event, "ibv_ack_async_event", "1.1"),
	CALL(setup.get_device_list, "ibv_get_device_list", "1.1"),
	CALL(setup.free_device_list, "ibv_free_device_list", "1.1"),
	CALL(setup.open_device, "ibv_open_device", "1.1"),
	CALL(setup.close_device, "ibv_close_device", "1.1"),
	CALL(setup.query_port, "ibv_query_port", "1.1"),
	CALL(setup.query_pkey, "ibv_query_pkey", "1.1"),
	CALL(setup.fork_init, "ibv_fork_init", "1.1"),
	CALL(setup.query_gid_ex, "_ibv_query_gid_ex", "1.11"),
#undef CALL
};
enum { CALLS = sizeof(calls) / sizeof(calls[0]) };
_Static_assert(CALLS * sizeof(void *) == sizeof(struct shunt_verbs) + sizeof(struct verbs_setup),
	       "a call without a row");

static int calls_find(struct verbs_device *device)
{
	for (size_t i = 0; i < CALLS; i++) {
		void *call = dlvsym(device->library, calls[i].symbol, calls[i].version);

		if (!call) {
			snprintf(device->error, sizeof(device->error), "libibverbs has no %s of version %s",
				 calls[i].symbol, calls[i].version);
			return -ENOSYS;
		}
		memcpy((char *)device + calls[i].offset, &call, sizeof(call));
	}
	device->is_fork_initialized = (enum ibv_fork_status(*)(void))dlvsym(
		device->library, "ibv_is_fork_initialized", "IBVERBS_1.13");
	return 0;
}

int verbs_library_open(struct verbs_device *device, const char *file)
{
	int result;

	memset(device, 0, sizeof(*device));
	device->library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (!device->library) {
		snprintf(device->error, sizeof(device->error), "no libibverbs: %s", dlerror());
		return -ENOENT;
	}
	result = calls_find(device);
	if (result)
		verbs_library_close(device);
	return result;
}

void verbs_library_close(struct verbs_device *device)
{
	dlclose(device->library);
	device->library = NULL;
}
