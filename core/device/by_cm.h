/* SPDX-License-Identifier: MIT */
/*
 * The queue pairs of an iWARP device, which the connection manager connects (core/device/cm/pair.h). The accepting
 * end of a link listens at its own address, at a port of SHUNT_PORTS or one that the system chooses. It tells the
 * port and a word of chance for each queue pair. The other end connects. Service thread.
 *
 * Errors are -errno.
 */
#ifndef SHUNT_CORE_DEVICE_BY_CM_H
#define SHUNT_CORE_DEVICE_BY_CM_H

#include <infiniband/verbs.h>

struct shunt_device;
struct shunt_by_cm;
struct shunt_path;

/* Opens the connection manager for a device with this GID. Descriptors that it makes are the engine's. */
int shunt_by_cm_open(struct shunt_device *device, const union ibv_gid *gid,
		     struct shunt_by_cm **by_cm);
void shunt_by_cm_close(struct shunt_by_cm *by_cm);
/* In a fork's child. */
void shunt_by_cm_forget(struct shunt_by_cm *by_cm);

/* See `tell`, `join` and `part` of struct shunt_device_kind. */
void shunt_by_cm_tell(struct shunt_by_cm *by_cm, const struct ibv_qp *qp, void *address);
int shunt_by_cm_join(struct shunt_by_cm *by_cm, struct ibv_qp *qp, const struct shunt_path *path,
		     const void *address);
void shunt_by_cm_part(struct shunt_by_cm *by_cm, const struct ibv_qp *qp);

#endif
