/* SPDX-License-Identifier: MIT */
/*
 * A process of another host claims a connection that a worker has: a process that accepts at our address and has told
 * us so (listener_owner.h). The owner invents a ticket and gives it to both, to the worker first. With it the
 * claimant comes in at the worker's own gate, and its packets go as those to the owner. Service thread.
 */
#ifndef SHUNT_CORE_PEER_INVITE_H
#define SHUNT_CORE_PEER_INVITE_H

#include <stdbool.h>
#include <stdint.h>
#include "shunt/wire.h"

struct shunt_link;

#define SHUNT_INVITED 4 /* channels that the owner remembers for each worker */

/* A ticket that a channel's claimant has been given for the worker: for a moment it is good for several claims. */
struct shunt_invited {
	uint32_t channel; /* its number; 0: none */
	uint8_t ticket[SHUNT_TICKET_BYTES];
	uint64_t until; /* ns of shunt_now() */
};

/* A process that has a connection which is claimed. */
struct shunt_worker {
	struct shunt_identity process;
	uint16_t gate; /* where it lets other hosts in: a TCP port, network order; 0: nowhere */
	int fd; /* to it; the owner's */
	struct shunt_invited *invited; /* SHUNT_INVITED of them, which stay as long as `fd` */
};

/*
 * `onward` is what the claimant on this link is told, for the connection `claimed` (as the claimant sees it). Within one
 * host that is the worker's identity alone. False: the worker cannot be reached by that host.
 */
bool shunt_invite(struct shunt_link *link, const struct shunt_worker *worker,
		  const struct shunt_tuple *claimed, struct shunt_onward *onward);

#endif
