/* SPDX-License-Identifier: MIT */
/*
 * The end of a link. Its queue pairs die first, and with both processes alive its streams go over
 * to TCP (failover.c). Or its channel ends, and the link with it. Service thread, seats_lock held.
 *
 * Nothing is left of a dead link once the program has closed the streams on it. A broken link whose peer does not say
 * LEAVE keeps its channel until that ends. Everything else it keeps only as long as a stream is open or owes the
 * peer bytes. tests/engine/keepalive.c, tests/calls/gone.sh and the lab's gone count descriptors, threads, mappings,
 * regions and queue pairs.
 */
#ifndef SHUNT_CORE_PEER_LINK_END_H
#define SHUNT_CORE_PEER_LINK_END_H

#include "core/link/link.h"

/* A queue pair has died, ours or the peer's: each end tells the other how far it had come. */
void shunt_link_break(struct shunt_link *link, const char *why);
/* Nothing more will come: every stream goes on over TCP behind what was delivered. */
void shunt_link_kill(struct shunt_link *link, const char *reason);
/* No stream is left on a broken link: all goes but the channel, on which the peer may still have to tell something. */
void shunt_link_strip(struct shunt_link *link);
void shunt_link_destroy(struct shunt_link *link);

#endif
