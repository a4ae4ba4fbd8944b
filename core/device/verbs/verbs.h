/* SPDX-License-Identifier: MIT */
/*
 * The verbs device: an RDMA device of this machine, through rdma-core's libibverbs. The library is opened with dlopen
 * when a device is wanted. So a process without one, and a machine without rdma-core, gets by without it.
 */
#ifndef SHUNT_CORE_DEVICE_VERBS_VERBS_H
#define SHUNT_CORE_DEVICE_VERBS_VERBS_H

#include <stdbool.h>
#include <stdint.h>
#include "core/base/verbs.h"

/* Where QPs of the device leave the machine, and what their peers must know of it. */
struct verbs_port {
	uint8_t number;
	uint8_t gid_index;	/* by RoCEv2 over IPv4, where there is such an address */
	uint16_t lid;		/* 0 on Ethernet */
	uint16_t pkeys; /* that its table has room for */
	enum ibv_mtu mtu;	/* that is in use */
	union ibv_gid gid;
};

/* The calls beyond struct shunt_verbs that opening takes; of the same library. */
struct verbs_setup {
	struct ibv_device **(*get_device_list)(int *count);
	void (*free_device_list)(struct ibv_device **list);
	struct ibv_context *(*open_device)(struct ibv_device *device);
	int (*close_device)(struct ibv_context *context);
	int (*query_port)(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr);
	int (*query_pkey)(struct ibv_context *context, uint8_t port, int index, __be16 *pkey);
	int (*fork_init)(void);
	int (*query_gid_ex)(struct ibv_context *context, uint32_t port, uint32_t index,
			    struct ibv_gid_entry *entry, uint32_t flags, size_t size);
};

struct verbs_device {
	struct shunt_verbs verbs;
	struct ibv_context *context;
	struct verbs_port port;
	struct verbs_setup setup;
	void *library;
	enum ibv_fork_status (*is_fork_initialized)(void); /* NULL: rdma-core before 35 has it not */
	bool marks_pages; /* a fork's child has no page that is registered here (ibv_fork_init(3)) */
	char error[160];	/* why the last call failed, in words */
};

/* The port's addresses and LIDs may have changed. False: it has none now, and stays as it was. */
bool verbs_port_again(struct verbs_device *device, const struct shunt_way *way);

/*
 * Opens the device of a way, with its port and address. Without a way, opens the device of this name, or the first
 * that has an active port (both NULL). 0, or -errno and device->error: -ENOENT no libibverbs, -ENOSYS it lacks a
 * call, -ENODEV no such device. Also -ENETDOWN no active port, or the device's own error.
 */
int verbs_open(struct verbs_device *device, const char *name, const struct shunt_way *way);

/*
 * path.c. Where the port's table has the path's partition: as a full member, or else as a limited one. 0 where the path
 * names none. -ENOENT: the port is in no such partition.
 */
int verbs_path_partition(const struct verbs_device *device, const struct shunt_path *path);
/* The largest that both ports and the path take. */
enum ibv_mtu verbs_path_mtu(const struct verbs_port *port, const struct shunt_path *path,
			    enum ibv_mtu peer);
/* From the port to the peer's address. On Ethernet its LID does not count. */
struct ibv_ah_attr verbs_path_address(const struct verbs_port *port, const struct shunt_path *path,
				      const union ibv_gid *peer, uint16_t peer_lid);

/* The context must be without objects. */
void verbs_close(struct verbs_device *device);

/* library.c: opens the library `file` and finds the calls; verbs_library_close undoes it. */
int verbs_library_open(struct verbs_device *device, const char *file);
void verbs_library_close(struct verbs_device *device);

#endif
