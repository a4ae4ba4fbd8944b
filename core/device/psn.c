/* SPDX-License-Identifier: MIT */
#include "core/device/psn.h"
#include <string.h>
#include <sys/random.h>
#include "core/base/random.h"
#include "core/base/sha256.h"
#include "core/base/sys.h"

/* Shortly after a machine's start the kernel may have no random bytes yet. */
void shunt_psn_key(const struct shunt_sys *sys, uint8_t key[SHUNT_PSN_KEY_BYTES])
{
	_Atomic uint64_t state = sys->now() ^ (uintptr_t)key;

	if (sys->getrandom(key, SHUNT_PSN_KEY_BYTES, GRND_NONBLOCK) == SHUNT_PSN_KEY_BYTES)
		return;
	for (int i = 0; i < SHUNT_PSN_KEY_BYTES; i++)
		key[i] = (uint8_t)shunt_random(&state, 256);
}

uint32_t shunt_psn_of(const uint8_t key[SHUNT_PSN_KEY_BYTES], uint32_t qp_num)
{
	uint8_t digest[SHUNT_SHA256_BYTES];
	struct shunt_sha256 sum;
	uint32_t psn;

	shunt_sha256_begin(&sum);
	shunt_sha256_add(&sum, key, SHUNT_PSN_KEY_BYTES);
	shunt_sha256_add(&sum, &qp_num, sizeof(qp_num));
	shunt_sha256_end(&sum, digest);
	memcpy(&psn, digest, sizeof(psn));
	return psn & 0xffffff;
}
