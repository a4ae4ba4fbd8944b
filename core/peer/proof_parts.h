/* SPDX-License-Identifier: MIT */
/*
 * Bits that the two sockets of a connection show in a proof (possession.h): 32 each, in parts of four. They follow
 * from what both ends know, and neither can choose them. docs/dev/PROTOCOL.md has the bytes. No lock, no errors.
 */
#ifndef SHUNT_CORE_PEER_PROOF_PARTS_H
#define SHUNT_CORE_PEER_PROOF_PARTS_H

#include <stdbool.h>
#include <stdint.h>
#include "shunt/wire.h"

#define SHUNT_PROOF_HALF SHUNT_DIGEST_BYTES	/* bytes of chance of each end */

struct shunt_proof_facts {
	uint32_t claimants_end, acceptors_end;	/* inodes of the channel's ends (witness.h) */
	uint64_t claimants_process, acceptors_process;	/* inodes, too */
	struct shunt_tuple tuple;		/* as the claimant sees it */
	const uint8_t *claimants, *acceptors;	/* halves of chance */
};

/* The digest of a half, by which the claimant is bound to it before it hears the other. */
void shunt_proof_digest(const uint8_t half[SHUNT_PROOF_HALF], uint8_t digest[SHUNT_DIGEST_BYTES]);
/* Bits for the claimant's socket, or for the acceptor's. */
uint32_t shunt_proof_parts(const struct shunt_proof_facts *facts, bool claimants);
/* The part of a round: bits of witness.h. */
uint8_t shunt_proof_part(uint32_t parts, uint32_t round);

#endif
