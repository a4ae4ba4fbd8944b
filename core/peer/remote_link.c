/* SPDX-License-Identifier: MIT */
#include "core/peer/remote_link.h"
#include <string.h>
#include "core/base/address.h"
#include "core/device/cm/cm.h"
#include "core/peer/link_make.h"
#include "core/peer/links.h"
#include "core/service.h"

void shunt_remote_address(const uint8_t ip[16], uint16_t port, union cm_address *address)
{
	memset(address, 0, sizeof(*address));
	if (shunt_address_is_v4(ip)) {
		address->v4.sin_family = AF_INET;
		address->v4.sin_port = port;
		memcpy(&address->v4.sin_addr, ip + 12, 4);
	} else {
		address->v6.sin6_family = AF_INET6;
		address->v6.sin6_port = port;
		memcpy(&address->v6.sin6_addr, ip, 16);
	}
}

struct shunt_link *shunt_remote_link(struct shunt_service *service,
				     const struct shunt_remote_gate *gate,
				     const struct shunt_identity *process,
				     const struct shunt_name *name)
{
	struct shunt_engine *engine = service->engine;
	union cm_address local, peer;
	struct shunt_channel channel;
	struct shunt_link *link;

	shunt_remote_address(gate->tuple->local, 0, &local);
	shunt_remote_address(gate->tuple->peer, gate->port, &peer);
	if (shunt_channel_connect(&channel, &engine->links, &local.any, &peer.any, gate->shown,
				  shunt_narrow_u32(engine->config.silence_s * 1000)))
		return NULL;
	channel.course = gate->course;
	channel.seal = gate->seal;
	if (process)
		channel.peer = *process;
	link = shunt_link_create(engine, &channel, true, NULL);
	if (!link)
		return NULL;
	link->line.name = *name;
	shunt_links_add(service, link);
	return link;
}
