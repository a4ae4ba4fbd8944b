/* SPDX-License-Identifier: MIT */
/*
 * A claim is refused, or a grant is taken back. The seat stays until nothing that is on its way names
 * it: until then it waits in link->refused. Service thread.
 */
#ifndef SHUNT_CORE_PEER_CLAIM_REFUSE_H
#define SHUNT_CORE_PEER_CLAIM_REFUSE_H

#include <stdint.h>

struct shunt_lane;
struct shunt_link;
struct shunt_stream;

/* REFUSE has come. `sent`: how many messages the acceptor had sent on the lane; `why`: enum shunt_refusal. */
void shunt_claim_refused(struct shunt_link *link, struct shunt_stream *stream, uint64_t sent, uint32_t why);
/* Everything posted on this lane of the link has arrived; on all of them (NULL). */
void shunt_claim_settled(struct shunt_link *link, const struct shunt_lane *lane);

#endif
