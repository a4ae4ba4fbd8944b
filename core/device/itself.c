/* SPDX-License-Identifier: MIT */
#include "core/device/itself.h"
#include <errno.h>
#include "core/device/device.h"
#include "shunt/wire.h"

/*
 * Reads what the filter replaces before it reads what the filter has kept: if the first is the filter, the second is
 * the device's call.
 */
struct shunt_itself_calls shunt_itself_calls(const struct shunt_device *device)
{
	const struct ibv_context_ops *ops = &device->context->ops;
	struct shunt_itself_calls calls = {
		.post_send = __atomic_load_n(&ops->post_send, __ATOMIC_ACQUIRE),
		.poll_cq = __atomic_load_n(&ops->poll_cq, __ATOMIC_ACQUIRE),
	};

	if (device->post_send) {
		calls.post_send = device->post_send;
		calls.poll_cq = device->poll_cq;
	}
	return calls;
}

/* The device's own words for a peer say where the queue pair is; it is told that its peer is there. */
int shunt_itself_join(struct shunt_device *device, struct ibv_qp *qp, unsigned int access)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = device->port, .qp_access_flags = access };
	uint8_t address[SHUNT_ADDRESS_BYTES] = { 0 };
	const struct shunt_path nowhere = { 0 };
	int fds[2], count;

	if (device->by_cm)
		return -EOPNOTSUPP;
	if (device->verbs->modify_qp(qp, &attr, SHUNT_TO_INIT))
		return -EIO;
	count = device->kind->tell(device, qp, address, fds);
	return count < 0 ? count : device->kind->join(device, qp, &nowhere, address, fds, count);
}
