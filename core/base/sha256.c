/* SPDX-License-Identifier: MIT */
#include "core/base/sha256.h"
#include <string.h>

static const uint32_t constants[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static inline uint32_t word_turn(uint32_t x, int by)
{
	return x >> by | x << (32 - by);
}

static void expand(const uint8_t block[64], uint32_t w[64])
{
	for (int i = 0; i < 16; i++)
		w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
		       (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
	for (int i = 16; i < 64; i++) {
		uint32_t a = w[i - 15], b = w[i - 2];

		w[i] = w[i - 16] + (word_turn(a, 7) ^ word_turn(a, 18) ^ a >> 3) + w[i - 7] +
		       (word_turn(b, 17) ^ word_turn(b, 19) ^ b >> 10);
	}
}

static void work_in(uint32_t state[8], const uint8_t block[64])
{
	uint32_t w[64], s[8];

	expand(block, w);
	memcpy(s, state, sizeof(s));
	for (int i = 0; i < 64; i++) {
		uint32_t sum1 = word_turn(s[4], 6) ^ word_turn(s[4], 11) ^ word_turn(s[4], 25);
		uint32_t sum0 = word_turn(s[0], 2) ^ word_turn(s[0], 13) ^ word_turn(s[0], 22);
		uint32_t one = s[7] + sum1 + ((s[4] & s[5]) ^ (~s[4] & s[6])) + constants[i] + w[i];
		uint32_t two = sum0 + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));

		memmove(&s[1], &s[0], 7 * sizeof(s[0]));
		s[4] += one;
		s[0] = one + two;
	}
	for (int i = 0; i < 8; i++)
		state[i] += s[i];
}

void shunt_sha256_begin(struct shunt_sha256 *sum)
{
	static const uint32_t first[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
					   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };

	memcpy(sum->state, first, sizeof(first));
	sum->bytes = 0;
}

void shunt_sha256_add(struct shunt_sha256 *sum, const void *data, size_t bytes)
{
	const uint8_t *from = data;

	while (bytes) {
		size_t have = sum->bytes % sizeof(sum->block), take = sizeof(sum->block) - have;

		if (take > bytes)
			take = bytes;
		memcpy(sum->block + have, from, take);
		sum->bytes += take;
		from += take;
		bytes -= take;
		if (have + take == sizeof(sum->block))
			work_in(sum->state, sum->block);
	}
}

void shunt_sha256_end(struct shunt_sha256 *sum, uint8_t digest[SHUNT_SHA256_BYTES])
{
	static const uint8_t padding[64] = { 0x80 };
	uint64_t bits = sum->bytes * 8;
	size_t have = sum->bytes % sizeof(sum->block);
	uint8_t length[8];

	for (int i = 0; i < 8; i++)
		length[i] = (uint8_t)(bits >> (56 - 8 * i));
	shunt_sha256_add(sum, padding, (have < 56 ? 56 : 120) - have);
	shunt_sha256_add(sum, length, sizeof(length));
	for (int i = 0; i < SHUNT_SHA256_BYTES; i++)
		digest[i] = (uint8_t)(sum->state[i / 4] >> (24 - 8 * (i % 4)));
}
