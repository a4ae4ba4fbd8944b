/* SPDX-License-Identifier: MIT */
/*
 * Answers to other hosts that ask for the listener of an address of ours. They go out by the
 * connection manager, at the directory (directory.h), or at the directory of another process of
 * this host (listener_owner.h). Service thread.
 */
#ifndef SHUNT_CORE_PEER_REMOTE_REPLY_H
#define SHUNT_CORE_PEER_REMOTE_REPLY_H

#include "core/peer/remote_ask.h"

/* The gate at the wildcard of IPv4 or IPv6, which is opened when it is first needed. NULL: none can be had. */
struct shunt_remote_listener *shunt_remote_reply_gate(struct shunt_remote *remote, bool v6);
/* The connection manager's question callback: see cm.h. */
int shunt_remote_reply_cm(void *rendezvous, const uint8_t *question, unsigned int bytes,
			  const struct cm_route *route, uint8_t *answer);
/* The directory's answer callback: see directory.h. Packets to the asker go by our iWARP device of the address. */
int shunt_remote_reply_words(struct shunt_rendezvous *rendezvous, const struct shunt_tuple *asked,
			     const struct shunt_have_words *said, struct remote_answer *answer);

#endif
