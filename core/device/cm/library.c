/* SPDX-License-Identifier: MIT */
/* librdmacm and the calls that are taken from it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include "core/device/cm/inside.h"

/* One row a call: where it goes and its symbol. */
static const struct row {
	size_t offset;
	const char *symbol;
} rows[] = {
#define ROW(name) { offsetof(struct cm_calls, name), "rdma_" #name }
	ROW(create_event_channel),
	ROW(destroy_event_channel),
	ROW(create_id),
	ROW(destroy_id),
	ROW(set_option),
	ROW(bind_addr),
	ROW(listen),
	ROW(resolve_addr),
	ROW(resolve_route),
	ROW(connect),
	ROW(accept),
	ROW(reject),
	ROW(get_cm_event),
	ROW(ack_cm_event),
#undef ROW
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };
_Static_assert(ROWS * sizeof(void *) == sizeof(struct cm_calls), "a call without a row");

#define ABI "RDMACM_1.0"

static int calls_find(struct cm *cm)
{
	for (size_t i = 0; i < ROWS; i++) {
		void *call = dlvsym(cm->library, rows[i].symbol, ABI);

		if (!call)
			return cm_fail(cm, ENOSYS, "librdmacm has no %s of version " ABI, rows[i].symbol);
		memcpy((char *)&cm->calls + rows[i].offset, &call, sizeof(call));
	}
	return 0;
}

int cm_library_open(struct cm *cm, const char *file)
{
	void *before = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
	int result;

	memset(cm, 0, sizeof(*cm));
	cm->shared = before;
	if (before)
		dlclose(before);
	cm->library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (!cm->library)
		return cm_fail(cm, ENOENT, "no librdmacm: %s", dlerror());
	result = calls_find(cm);
	if (result)
		cm_library_close(cm);
	return result;
}

void cm_library_close(struct cm *cm)
{
	dlclose(cm->library);
	cm->library = NULL;
}
