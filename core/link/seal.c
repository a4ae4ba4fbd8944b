/* SPDX-License-Identifier: MIT */
#include "core/link/seal.h"
#include <string.h>
#include "core/base/hmac.h"

static void code_of(const struct shunt_seal_half *half, const void *message, size_t bytes,
		    uint8_t code[SHUNT_SEAL_BYTES])
{
	uint8_t whole[SHUNT_HMAC_BYTES];
	struct shunt_hmac hmac;

	shunt_hmac_begin(&hmac, half->key, sizeof(half->key));
	shunt_hmac_add(&hmac, &half->number, sizeof(half->number));
	shunt_hmac_add(&hmac, message, bytes);
	shunt_hmac_end(&hmac, whole);
	memcpy(code, whole, SHUNT_SEAL_BYTES);
}

void shunt_seal_make(const struct shunt_seal *seal, const void *message, size_t bytes,
		     uint8_t code[SHUNT_SEAL_BYTES])
{
	code_of(&seal->sending, message, bytes, code);
}

void shunt_seal_sent(struct shunt_seal *seal)
{
	seal->sending.number++;
}

bool shunt_seal_check(struct shunt_seal *seal, const void *message, size_t bytes,
		      const uint8_t code[SHUNT_SEAL_BYTES])
{
	uint8_t right[SHUNT_SEAL_BYTES];

	code_of(&seal->receiving, message, bytes, right);
	if (!shunt_hmac_equal(right, code, sizeof(right)))
		return false;
	seal->receiving.number++;
	return true;
}
