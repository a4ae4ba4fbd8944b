/* SPDX-License-Identifier: MIT */
/*
 * RDMA devices of the machine as the engine uses them. Their libraries call libc by name for descriptors that are
 * ours, so the boundary is told which code that is (file.h: helpers).
 *
 * With SHUNT_DEVICE=auto nothing of rdma-core is loaded on a machine without /sys/class/infiniband.
 */
#ifndef SHUNT_CORE_DEVICE_DEVICE_VERBS_H
#define SHUNT_CORE_DEVICE_DEVICE_VERBS_H

struct ibv_qp;
struct shunt_device;
struct shunt_files;

/* Libraries of RDMA devices that have been loaded meanwhile may use our descriptors, too (file.h). */
void shunt_device_note_helpers(struct shunt_files *files);

/* The queue pair has failed, and with it its link; NULL: every one of the device. group.lock is not held. */
void shunt_device_qp_failed(struct shunt_device *device, const struct ibv_qp *qp, const char *why);
/* The queue pair that was to be connected later is. Service thread. */
void shunt_device_qp_joined(struct shunt_device *device, const struct ibv_qp *qp);

#endif
