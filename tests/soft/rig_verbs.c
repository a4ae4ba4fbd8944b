/* SPDX-License-Identifier: MIT */
/* A device of rdma-core for the rig. Both ends are on the same port of it, or each on one of its own. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/device/verbs/verbs.h"
#include "tests/soft/rig.h"

enum { DEVICES = 256 }; /* a test that fails leaves its own open */

const char *rig_verbs_name;
static struct verbs_device *devices[DEVICES];

static struct verbs_device **slot_of(const struct ibv_context *context)
{
	for (int i = 0; i < DEVICES; i++)
		if ((devices[i] ? devices[i]->context : NULL) == context)
			return &devices[i];
	return NULL;
}

/* The name for a slot: ends are opened in turns. */
static const char *name_for(struct verbs_device **slot, char name[64])
{
	const char *comma = rig_verbs_name ? strchr(rig_verbs_name, ',') : NULL;

	if (!comma)
		return rig_verbs_name;
	if ((slot - devices) % 2)
		return comma + 1;
	snprintf(name, 64, "%.*s", (int)(comma - rig_verbs_name), rig_verbs_name);
	return name;
}

static struct ibv_context *device_open(const struct soft_attr *attr, const struct shunt_verbs **verbs)
{
	struct verbs_device **slot = slot_of(NULL), *device = malloc(sizeof(*device));
	char name[64];

	(void)attr;
	assert_true(slot && device);
	if (verbs_open(device, name_for(slot, name), NULL)) {
		fprintf(stderr, "%s\n", device->error);
		free(device);
		return NULL;
	}
	*slot = device;
	*verbs = &device->verbs;
	return device->context;
}

static void device_close(struct ibv_context *context)
{
	struct verbs_device **slot = slot_of(context);

	verbs_close(*slot);
	free(*slot);
	*slot = NULL;
}

static void *plain_memory(struct ibv_pd *pd, size_t bytes)
{
	void *memory = NULL;

	(void)pd;
	assert_int_equal(posix_memalign(&memory, 4096, bytes), 0);
	return memset(memory, 0, bytes);
}

static int qp_tell(struct rig_end *end, struct rig_address *address, int fds[2])
{
	address->gid = (*slot_of(end->context))->port.gid;
	fds[0] = fds[1] = -1;
	return 0;
}

static int qp_meet(struct rig_end *end, const int fds[2])
{
	(void)end;
	(void)fds;
	return 0;
}

static void qp_path(struct rig_end *end, struct ibv_qp_attr *attr)
{
	const struct verbs_port *port = &(*slot_of(end->context))->port;

	attr->port_num = port->number;
	attr->ah_attr = (struct ibv_ah_attr){
		.is_global = 1, .port_num = port->number, .dlid = port->lid,
		.grh = { .dgid = end->peer.gid, .sgid_index = port->gid_index, .hop_limit = 64 },
	};
}

const struct rig_device rig_verbs = {
	.name = "verbs",
	.real = true,
	/* Those of rxe, as there is nothing else to test on. */
	.quirks = QUIRK_NO_BAD_WR | QUIRK_EARLY_SLOTS | QUIRK_NO_QP_EVENTS | QUIRK_ACCESS_IS_REQUEST |
		  QUIRK_ANY_RECEIVE_ERROR | QUIRK_RECEIVE_IN_HAND | QUIRK_MILD_OVERFLOW | QUIRK_NO_LATE_FLUSH |
		  QUIRK_ALIGNED_POSTS | QUIRK_LKEY_IS_OPERATION | QUIRK_SEVEN_IS_FOREVER | QUIRK_RESET_KEEPS_CQ,
	.open = device_open,
	.close = device_close,
	.memory = plain_memory,
	.release = free,
	.tell = qp_tell,
	.meet = qp_meet,
	.path = qp_path,
};
