/* SPDX-License-Identifier: MIT */
#include "core/peer/remote_course.h"
#include <string.h>
#include "core/base/address.h"
#include "core/device/cm/cm.h"
#include "core/engine.h"
#include "core/poll/devices.h"

static void note_end(uint8_t ip[16], const union cm_address *end)
{
	struct sockaddr_storage address = { 0 };
	uint16_t port;

	memcpy(&address, end, sizeof(*end));
	shunt_address_of(&address, ip, &port);
}

struct shunt_course shunt_remote_course(struct shunt_engine *engine, const struct cm_route *route)
{
	struct shunt_course course = {
		.way = { .port = route->port, .gid = route->sgid },
		.path = { .pkey = route->pkey,
			  .slid = route->slid,
			  .dlid = route->dlid,
			  .sl = route->sl,
			  .traffic_class = route->traffic_class,
			  .hop_limit = route->hop_limit,
			  .mtu = (uint8_t)route->mtu },
	};

	note_end(course.path.here, &route->local);
	note_end(course.path.there, &route->peer);
	memcpy(course.way.device, route->device, sizeof(course.way.device));
	course.device = shunt_devices_open_way(&engine->group, &course.way);
	return course;
}

struct shunt_course shunt_remote_course_invited(struct shunt_engine *engine,
						const struct shunt_have *have)
{
	const struct shunt_invitation *invitation = &have->invitation;
	struct shunt_course course = {
		.way = { .port = invitation->port },
		.path = { .pkey = invitation->pkey,
			  .slid = invitation->slid,
			  .dlid = invitation->dlid,
			  .sl = invitation->sl,
			  .traffic_class = invitation->traffic_class,
			  .hop_limit = invitation->hop_limit,
			  .mtu = invitation->mtu },
	};

	memcpy(course.path.here, have->tuple.local, sizeof(course.path.here));
	memcpy(course.path.there, have->tuple.peer, sizeof(course.path.there));
	memcpy(course.way.device, invitation->device, sizeof(course.way.device) - 1);
	memcpy(&course.way.gid, invitation->gid, sizeof(course.way.gid));
	course.device = shunt_devices_open_way(&engine->group, &course.way);
	return course;
}
