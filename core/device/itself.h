/* SPDX-License-Identifier: MIT */
/*
 * Queue pairs that are connected to themselves: a process uses its own device, and no peer has a part in it. They belong
 * to no lane. The filter of faults (fault_device.h) knows queue pairs of lanes alone, so it is gone around.
 */
#ifndef SHUNT_CORE_DEVICE_ITSELF_H
#define SHUNT_CORE_DEVICE_ITSELF_H

#include "core/base/verbs.h"

struct shunt_device;

/* The device's own calls. */
struct shunt_itself_calls {
	int (*post_send)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
	int (*poll_cq)(struct ibv_cq *cq, int room, struct ibv_wc *wc);
};

struct shunt_itself_calls shunt_itself_calls(const struct shunt_device *device);

/* From RESET to RTS. `access`: what the queue pair may do to its own domain. 0 or -errno. Service thread. */
int shunt_itself_join(struct shunt_device *device, struct ibv_qp *qp, unsigned int access);

#endif
