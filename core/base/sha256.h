/* SPDX-License-Identifier: MIT */
/*
 * SHA-256 (FIPS 180-4), because the library links nothing but libc. For a few hundred bytes now and then, never for
 * the program's bytes. No lock, no errors.
 */
#ifndef SHUNT_CORE_BASE_SHA256_H
#define SHUNT_CORE_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define SHUNT_SHA256_BYTES 32

struct shunt_sha256 {
	uint32_t state[8];
	uint64_t bytes;		/* that have been taken */
	uint8_t block[64];	/* the last of them, not yet worked in */
};

void shunt_sha256_begin(struct shunt_sha256 *sum);
void shunt_sha256_add(struct shunt_sha256 *sum, const void *data, size_t bytes);
/* The sum is used up. */
void shunt_sha256_end(struct shunt_sha256 *sum, uint8_t digest[SHUNT_SHA256_BYTES]);

#endif
