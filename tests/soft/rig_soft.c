/* SPDX-License-Identifier: MIT */
/* The soft device for the rig. */
#include "tests/soft/rig.h"

static void *soft_memory(struct ibv_pd *pd, size_t bytes)
{
	size_t room;
	void *arena = soft_arena(pd, &room);

	assert_true(bytes <= room);
	return arena;
}

static void soft_release(void *memory)
{
	(void)memory; /* goes with its domain */
}

static int soft_tell(struct rig_end *end, struct rig_address *address, int fds[2])
{
	return soft_qp_export(end->qp, &address->soft, fds);
}

static int soft_meet(struct rig_end *end, const int fds[2])
{
	return soft_qp_import(end->qp, &end->peer.soft, fds);
}

static void soft_path(struct rig_end *end, struct ibv_qp_attr *attr)
{
	(void)end;
	(void)attr;
}

/* Each end takes the other for a stranger. */
static int apart_tell(struct rig_end *end, struct rig_address *address, int fds[2])
{
	assert_int_equal(soft_pd_set_apart(end->pd, end->channel), 0);
	return soft_tell(end, address, fds);
}

const struct rig_device rig_apart = {
	.name = "apart",
	.open = soft_open,
	.close = soft_close,
	.memory = soft_memory,
	.release = soft_release,
	.tell = apart_tell,
	.meet = soft_meet,
	.path = soft_path,
};

const struct rig_device rig_soft = {
	.name = "soft",
	.open = soft_open,
	.close = soft_close,
	.memory = soft_memory,
	.release = soft_release,
	.tell = soft_tell,
	.meet = soft_meet,
	.path = soft_path,
};
