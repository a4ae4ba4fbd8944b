/* SPDX-License-Identifier: MIT */
/*
 * The filter in front of a device: it stands in for two rows of context->ops, so it is the same for all devices.
 * A lane finds its rules by qp_context, a CQ by cq_context.
 *
 * Nothing is ever duplicated, put in another order or lost without the QP failing for it: an RC device does not.
 */
#ifndef SHUNT_CORE_DEVICE_FAULT_DEVICE_H
#define SHUNT_CORE_DEVICE_FAULT_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

struct shunt_device;
struct shunt_engine;
struct shunt_fault;

/* The filter is put in front of the device, if there are rules. group.lock held. */
void shunt_fault_attach(struct shunt_device *device);
/* Takes it away again. group.lock held. */
void shunt_fault_detach(struct shunt_device *device);
/* WRs that vanished have been waited for long enough. group.lock held. */
void shunt_fault_expire(struct shunt_engine *engine, uint64_t now);
/* Whatever is held back may come. False: nothing is. group.lock held. */
bool shunt_fault_release(struct shunt_fault *fault);
/* In a fork's child: what is held back is the parent's. */
void shunt_fault_empty(struct shunt_fault *fault);

#endif
