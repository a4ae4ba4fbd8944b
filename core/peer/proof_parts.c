/* SPDX-License-Identifier: MIT */
#include "core/peer/proof_parts.h"
#include <string.h>
#include "core/base/sha256.h"
#include "core/peer/witness.h"

_Static_assert(SHUNT_PROOF_ROUNDS * SHUNT_WITNESS_BITS == 32, "parts fill a word");

void shunt_proof_digest(const uint8_t half[SHUNT_PROOF_HALF], uint8_t digest[SHUNT_DIGEST_BYTES])
{
	static const char what[] = "shunt half";
	struct shunt_sha256 sum;

	shunt_sha256_begin(&sum);
	shunt_sha256_add(&sum, what, sizeof(what));
	shunt_sha256_add(&sum, half, SHUNT_PROOF_HALF);
	shunt_sha256_end(&sum, digest);
}

static void add_address(struct shunt_sha256 *sum, const uint8_t address[16], uint16_t port)
{
	shunt_sha256_add(sum, address, 16);
	shunt_sha256_add(sum, &port, sizeof(port));
}

uint32_t shunt_proof_parts(const struct shunt_proof_facts *facts, bool claimants)
{
	uint8_t digest[SHUNT_SHA256_BYTES];
	struct shunt_sha256 sum;
	uint32_t parts;

	shunt_sha256_begin(&sum);
	shunt_sha256_add(&sum, claimants ? "claimant" : "acceptor", 8);
	shunt_sha256_add(&sum, &facts->claimants_end, sizeof(facts->claimants_end));
	shunt_sha256_add(&sum, &facts->acceptors_end, sizeof(facts->acceptors_end));
	shunt_sha256_add(&sum, &facts->claimants_process, sizeof(facts->claimants_process));
	shunt_sha256_add(&sum, &facts->acceptors_process, sizeof(facts->acceptors_process));
	add_address(&sum, facts->tuple.local, facts->tuple.local_port);
	add_address(&sum, facts->tuple.peer, facts->tuple.peer_port);
	shunt_sha256_add(&sum, facts->claimants, SHUNT_PROOF_HALF);
	shunt_sha256_add(&sum, facts->acceptors, SHUNT_PROOF_HALF);
	shunt_sha256_end(&sum, digest);
	memcpy(&parts, digest, sizeof(parts));
	return parts;
}

uint8_t shunt_proof_part(uint32_t parts, uint32_t round)
{
	return parts >> (SHUNT_WITNESS_BITS * round) & ((1 << SHUNT_WITNESS_BITS) - 1);
}
