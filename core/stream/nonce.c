/* SPDX-License-Identifier: MIT */
#include "core/stream/nonce.h"
#include <string.h>

void shunt_nonce_hello(uint8_t digest[SHUNT_SHA256_BYTES], const struct shunt_hello *hello)
{
	struct shunt_sha256 sum;

	shunt_sha256_begin(&sum);
	shunt_sha256_add(&sum, hello, sizeof(*hello));
	shunt_sha256_end(&sum, digest);
}

static void add_address(struct shunt_sha256 *sum, const uint8_t address[16], uint16_t port)
{
	shunt_sha256_add(sum, address, 16);
	shunt_sha256_add(sum, &port, sizeof(port));
}

void shunt_nonce_make(const struct shunt_nonce_facts *facts, bool claimants,
		      uint8_t nonce[SHUNT_NONCE_BYTES])
{
	uint8_t digest[SHUNT_SHA256_BYTES];
	struct shunt_sha256 sum;

	shunt_sha256_begin(&sum);
	shunt_sha256_add(&sum, claimants ? "claimant" : "acceptor", 8);
	shunt_sha256_add(&sum, facts->hellos, sizeof(facts->hellos));
	add_address(&sum, facts->tuple.local, facts->tuple.local_port);
	add_address(&sum, facts->tuple.peer, facts->tuple.peer_port);
	shunt_sha256_add(&sum, facts->chance, sizeof(facts->chance));
	shunt_sha256_end(&sum, digest);
	memcpy(nonce, digest, SHUNT_NONCE_BYTES);
}
