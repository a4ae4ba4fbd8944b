/* SPDX-License-Identifier: MIT */
/* A link to another host, from the side that comes to a gate (remote_listener.h). Service thread. */
#ifndef SHUNT_CORE_PEER_REMOTE_LINK_H
#define SHUNT_CORE_PEER_REMOTE_LINK_H

#include "core/link/channel.h"

struct shunt_link;
struct shunt_name;
struct shunt_service;

/* A gate as its claimant has been told of it, and the course of packets to it. */
struct shunt_remote_gate {
	const struct shunt_tuple *tuple; /* of a connection between the two hosts */
	uint16_t port; /* of the gate, network order */
	uint8_t shown[SHUNT_COOKIE_BYTES];
	struct shunt_seal seal;
	struct shunt_course course;
};

union cm_address;

/* An address as that of a tuple, for the kernel; `port` in network order. */
void shunt_remote_address(const uint8_t ip[16], uint16_t port, union cm_address *address);
/* A link that is found by this name later on. NULL: none. */
struct shunt_link *shunt_remote_link(struct shunt_service *service,
				     const struct shunt_remote_gate *gate,
				     const struct shunt_identity *process,
				     const struct shunt_name *name);

#endif
