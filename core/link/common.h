/* SPDX-License-Identifier: MIT */
/* The room's part of an engine: all links and channels of a process have it in common. */
#ifndef SHUNT_CORE_LINK_COMMON_H
#define SHUNT_CORE_LINK_COMMON_H

#include <stdbool.h>
#include <stdint.h>

struct shunt_loop;

struct shunt_links {
	struct shunt_loop *loop;	/* of the service thread */
	/* The other end of this Unix socket has no packet in a queue, by the kernel's word (screen.h); NULL: nobody can ask */
	bool (*sent_nothing)(struct shunt_links *links, int fd);
	uint32_t channels;	/* how many there have been; service thread */
	uint64_t space_thread;	/* bytes of limited address space: the service thread's; 0: not limited; service_lock */
	uint64_t space_links;	/* and those of links; service thread */
	_Atomic uint64_t distrusted;	/* how many have been, because their peers broke the protocol */
};

#endif
