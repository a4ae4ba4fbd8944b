/* SPDX-License-Identifier: MIT */
/*
 * The devices of a process. They are opened as links need them, each with a completion channel and
 * CQs; threads sleep on one bell for all. Service thread, where nothing else is said.
 */
#ifndef SHUNT_CORE_POLL_DEVICES_H
#define SHUNT_CORE_POLL_DEVICES_H

#include "core/device/device.h"

#define SHUNT_CQ_ENTRIES 65536	/* of the largest CQ, or what the device has */

struct shunt_group;

/* Opens the device on first use. NULL: none. */
struct shunt_device *shunt_devices_open(struct shunt_group *group, enum shunt_which which);
/* The RDMA device that leads to a peer, with the port and the address of that way. NULL: none, or too many. */
struct shunt_device *shunt_devices_open_way(struct shunt_group *group, const struct shunt_way *way);
void shunt_devices_close(struct shunt_group *group);
/* The device is gone: nobody sleeps on it any more. Ten seconds later it may be opened anew, in another slot. */
void shunt_devices_silence(struct shunt_group *group, struct shunt_device *device);
/* The largest power of two that is no more than either; of queues. */
uint32_t shunt_devices_depth(uint64_t wanted, uint32_t most);
/* In a fork's child: nothing of the parent's is torn down; its memory is shared with the peers, its numbers are copies. */
void shunt_devices_abandon(struct shunt_group *group);
/* The peer of this domain of the device is not trusted (device.h). 0 or -errno. */
int shunt_devices_set_apart(struct shunt_group *group, struct shunt_device *device,
			    struct ibv_pd *pd);
/* The CQ for a new lane: one that has the fewest. NULL: no room for more. */
struct ibv_cq *shunt_devices_cq(struct shunt_group *group, struct shunt_device *device);
/* So many lanes more complete in the CQ. group.lock held. */
void shunt_devices_count(struct shunt_group *group, const struct ibv_cq *cq, int change);

#endif
