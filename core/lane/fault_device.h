/* SPDX-License-Identifier: MIT */
/*
 * The filter in front of a device: it stands in for two rows of context->ops, so it is the same for all devices.
 * A lane finds its rules by qp_context, a CQ by cq_context.
 *
 * Nothing is ever duplicated, put in another order or lost without the QP failing for it: an RC device does not.
 */
#ifndef SHUNT_CORE_LANE_FAULT_DEVICE_H
#define SHUNT_CORE_LANE_FAULT_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

struct shunt_device;
struct shunt_group;
struct shunt_fault;
struct shunt_task;

/* The filter is put in front of the device, if there are rules. group.lock held. */
void shunt_fault_device_attach(struct shunt_device *device);
/* Takes it away again. group.lock held. */
void shunt_fault_device_detach(struct shunt_device *device);
/* In a fork's child: what is held back is the parent's. */
void shunt_fault_device_empty(struct shunt_fault *fault);

/*
 * From now on these rules are in force, and no others; "" ends all faults. At any time, from any thread that
 * holds no lock; one at a time. 0, or -EINVAL, words in `error`, and nothing has changed.
 */
int shunt_fault_device_set(struct shunt_group *group, const char *text, char *error,
			   size_t bytes);
/* Faults that are due happen. */
void shunt_fault_device_run(struct shunt_task *task);

/*
 * For a caller that is about to believe the kernel: the kernel's word must not overtake the device's. Completions
 * that are held back may come now. False: none was held back.
 */
bool shunt_fault_device_hurries(struct shunt_group *group);

#endif
