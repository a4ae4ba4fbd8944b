/* SPDX-License-Identifier: MIT */
/*
 * RDMA devices of the machine as the engine uses them. Their libraries call libc by name for descriptors that are
 * ours, so the boundary is told which code that is (file.h: helpers).
 *
 * With SHUNT_DEVICE=auto nothing of rdma-core is loaded on a machine without /sys/class/infiniband.
 */
#ifndef SHUNT_CORE_DEVICE_DEVICE_VERBS_H
#define SHUNT_CORE_DEVICE_DEVICE_VERBS_H

struct shunt_files;

/* Libraries of RDMA devices that have been loaded meanwhile may use our descriptors, too (file.h). */
void shunt_device_note_helpers(struct shunt_files *files);

#endif
