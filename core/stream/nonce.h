/* SPDX-License-Identifier: MIT */
/*
 * The nonce that an end shows in TCP (proof.h): the first bytes of a SHA-256. It is over which end it is, both HELLOs
 * of the link, the connection as its claimant sees it, and chance of both ends. So no end chooses a nonce or shows
 * the other end's, and a nonce is good for one link and connection.
 */
#ifndef SHUNT_CORE_STREAM_NONCE_H
#define SHUNT_CORE_STREAM_NONCE_H

#include <stdbool.h>
#include "core/base/sha256.h"
#include "shunt/wire.h"

struct shunt_nonce_facts {
	uint8_t hellos[2][SHUNT_SHA256_BYTES];	/* digests: the initiator's, the acceptor's */
	struct shunt_tuple tuple;		/* as the claimant sees it */
	uint8_t chance[2][SHUNT_CHANCE_BYTES];	/* of CLAIM, of ACCEPT */
};

/* The digest of a HELLO, as it is sent. */
void shunt_nonce_hello(uint8_t digest[SHUNT_SHA256_BYTES], const struct shunt_hello *hello);
/* `claimants`: that the claimant shows; otherwise the acceptor's. */
void shunt_nonce_make(const struct shunt_nonce_facts *facts, bool claimants,
		      uint8_t nonce[SHUNT_NONCE_BYTES]);

#endif
