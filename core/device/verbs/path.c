/* SPDX-License-Identifier: MIT */
/* From a path, as the connection manager has resolved it, to what a queue pair is told. */
#include <arpa/inet.h>
#include <errno.h>
#include "core/device/verbs/verbs.h"

#define FULL 0x8000 /* of a key: a full member of its partition, who may speak with limited ones */
#define HOPS 64 /* where the path does not say how many */

int verbs_path_partition(const struct verbs_device *device, const struct shunt_path *path)
{
	int limited = -ENOENT;

	for (int i = 0; path->pkey && i < device->port.pkeys; i++) {
		__be16 entry;
		uint16_t key;

		if (device->setup.query_pkey(device->context, device->port.number, i, &entry))
			continue;
		key = ntohs(entry);
		if ((key & ~FULL) != (path->pkey & ~FULL))
			continue;
		if (key & FULL)
			return i;
		if (limited < 0)
			limited = i;
	}
	return path->pkey ? limited : 0;
}

enum ibv_mtu verbs_path_mtu(const struct verbs_port *port, const struct shunt_path *path,
			    enum ibv_mtu peer)
{
	enum ibv_mtu least = port->mtu < peer ? port->mtu : peer;

	return path->mtu && path->mtu < least ? (enum ibv_mtu)path->mtu : least;
}

/*
 * No flow label: a device makes one for each queue pair that has none, so that lanes spread over equal paths of the
 * network.
 */
struct ibv_ah_attr verbs_path_address(const struct verbs_port *port, const struct shunt_path *path,
				      const union ibv_gid *peer, uint16_t peer_lid)
{
	return (struct ibv_ah_attr) {
		.is_global = 1,
		.port_num = port->number,
		.sl = path->sl,
		.dlid = path->dlid ? path->dlid : peer_lid,
		.src_path_bits = (uint8_t)(path->slid ? path->slid - port->lid : 0),
		.grh = { .dgid = *peer,
			 .sgid_index = port->gid_index,
			 .traffic_class = path->traffic_class,
			 .hop_limit = path->hop_limit ? path->hop_limit : HOPS },
	};
}
