/* SPDX-License-Identifier: MIT */
/* Addresses and routes, as the library has them and as we tell them. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include "core/device/cm/inside.h"

int cm_address(union cm_address *out, const struct sockaddr *given)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)given;

	memset(out, 0, sizeof(*out));
	if (given->sa_family == AF_INET) {
		memcpy(&out->v4, given, sizeof(out->v4));
	} else if (given->sa_family != AF_INET6) {
		return -EAFNOSUPPORT;
	} else if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
		out->v4.sin_family = AF_INET;
		out->v4.sin_port = v6->sin6_port;
		memcpy(&out->v4.sin_addr, v6->sin6_addr.s6_addr + 12, 4);
	} else {
		memcpy(&out->v6, given, sizeof(out->v6));
	}
	return 0;
}

static void path_of(struct cm_route *route, const struct ibv_sa_path_rec *path)
{
	route->slid = ntohs(path->slid);
	route->dlid = ntohs(path->dlid);
	route->pkey = ntohs(path->pkey);
	route->mtu = path->mtu;
	route->sl = path->sl;
	route->traffic_class = path->traffic_class;
	route->hop_limit = path->hop_limit;
	route->packet_life_time = path->packet_life_time;
	route->flow_label = ntohl(path->flow_label);
}

void cm_route_of(struct cm_route *route, const struct rdma_cm_id *id)
{
	const struct rdma_addr *addr = &id->route.addr;

	memset(route, 0, sizeof(*route));
	memcpy(route->device, id->verbs->device->name, sizeof(route->device) - 1);
	route->port = id->port_num;
	route->iwarp = id->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
	route->sgid = addr->addr.ibaddr.sgid;
	route->dgid = addr->addr.ibaddr.dgid;
	memcpy(&route->local, &addr->src_storage, sizeof(route->local));
	memcpy(&route->peer, &addr->dst_storage, sizeof(route->peer));
	if (id->route.num_paths > 0)
		path_of(route, id->route.path_rec);
}

/* The library keeps on working with whatever number is in the structure. */
static void fd_keep(struct cm *cm, int *fd)
{
	int kept = cm->callbacks->keep(cm->arg, *fd);

	if (kept < 0)
		return;
	cm->callbacks->drop(cm->arg, *fd);
	*fd = kept;
}

void cm_adopt_device(struct cm *cm, struct rdma_cm_id *id)
{
	struct ibv_context **free = NULL;

	if (!id->verbs || !cm->callbacks->keep)
		return;
	for (int i = 0; i < CM_CONTEXTS; i++) {
		if (cm->contexts[i] == id->verbs)
			return;
		if (!cm->contexts[i])
			free = &cm->contexts[i];
	}
	if (!free)
		return;
	*free = id->verbs;
	fd_keep(cm, &id->verbs->cmd_fd);
	fd_keep(cm, &id->verbs->async_fd);
}

/* Another may be made where it was. */
void cm_forget_device(struct cm *cm, struct rdma_cm_id *id)
{
	for (int i = 0; i < CM_CONTEXTS; i++)
		if (id->verbs && cm->contexts[i] == id->verbs)
			cm->contexts[i] = NULL;
}
