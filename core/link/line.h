/* SPDX-License-Identifier: MIT */
/* The name of a rendezvous, and what a link hands on to the one that takes its place (core/peer/reconnect.h). */
#ifndef SHUNT_CORE_LINK_LINE_H
#define SHUNT_CORE_LINK_LINE_H

#include <stdint.h>
#include <sys/un.h>

#define SHUNT_NAMES 3	/* that a rendezvous for one address and port may have */

struct shunt_name {		/* an abstract Unix name */
	int length;
	char text[sizeof(((struct sockaddr_un *)0)->sun_path)];
};

struct shunt_line {		/* what a link hands on to the one that takes its place */
	uint32_t number;	/* of this process' lines; 0: no queue pair of it has died yet */
	uint64_t rest;		/* ns that its channel rested last */
	uint64_t up_at;		/* when its link came up */
	struct shunt_name name;	/* of the rendezvous; empty on the accepting side */
};

#endif
