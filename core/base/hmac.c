/* SPDX-License-Identifier: MIT */
#include "core/base/hmac.h"
#include <string.h>

#define BLOCK sizeof(((struct shunt_hmac *)NULL)->outer)

void shunt_hmac_begin(struct shunt_hmac *hmac, const void *key, size_t bytes)
{
	uint8_t block[BLOCK] = { 0 };

	if (bytes > BLOCK) {
		shunt_sha256_begin(&hmac->sum);
		shunt_sha256_add(&hmac->sum, key, bytes);
		shunt_sha256_end(&hmac->sum, block);
	} else if (bytes) {
		memcpy(block, key, bytes);
	}
	for (size_t i = 0; i < BLOCK; i++) {
		hmac->outer[i] = block[i] ^ 0x5c;
		block[i] ^= 0x36;
	}
	shunt_sha256_begin(&hmac->sum);
	shunt_sha256_add(&hmac->sum, block, BLOCK);
	explicit_bzero(block, sizeof(block));
}

void shunt_hmac_add(struct shunt_hmac *hmac, const void *data, size_t bytes)
{
	shunt_sha256_add(&hmac->sum, data, bytes);
}

void shunt_hmac_end(struct shunt_hmac *hmac, uint8_t code[SHUNT_HMAC_BYTES])
{
	uint8_t inner[SHUNT_HMAC_BYTES];

	shunt_sha256_end(&hmac->sum, inner);
	shunt_sha256_begin(&hmac->sum);
	shunt_sha256_add(&hmac->sum, hmac->outer, BLOCK);
	shunt_sha256_add(&hmac->sum, inner, sizeof(inner));
	shunt_sha256_end(&hmac->sum, code);
	explicit_bzero(hmac, sizeof(*hmac));
}

bool shunt_hmac_equal(const void *a, const void *b, size_t bytes)
{
	const uint8_t *one = a, *two = b;
	volatile uint8_t differ = 0;

	for (size_t i = 0; i < bytes; i++)
		differ |= one[i] ^ two[i];
	return !differ;
}
