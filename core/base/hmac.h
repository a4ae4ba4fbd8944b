/* SPDX-License-Identifier: MIT */
/*
 * HMAC-SHA-256 (RFC 2104), for codes over messages between hosts and for keys that are derived from another one. No
 * lock, no errors.
 */
#ifndef SHUNT_CORE_BASE_HMAC_H
#define SHUNT_CORE_BASE_HMAC_H

#include <stdbool.h>
#include "core/base/sha256.h"

#define SHUNT_HMAC_BYTES SHUNT_SHA256_BYTES

struct shunt_hmac {
	struct shunt_sha256 sum;	/* the inner one */
	uint8_t outer[64];		/* the block that the outer one begins with */
};

void shunt_hmac_begin(struct shunt_hmac *hmac, const void *key, size_t bytes);
void shunt_hmac_add(struct shunt_hmac *hmac, const void *data, size_t bytes);
/* The hmac is used up, and nothing of the key stays in it. */
void shunt_hmac_end(struct shunt_hmac *hmac, uint8_t code[SHUNT_HMAC_BYTES]);

/* Takes as long for codes that differ in the first byte as for equal ones. */
bool shunt_hmac_equal(const void *a, const void *b, size_t bytes);

#endif
