/* SPDX-License-Identifier: MIT */
#include "core/base/siphash.h"

static uint64_t rotate(uint64_t x, int bits)
{
	return x << bits | x >> (64 - bits);
}

/* One half of SipRound: two additions, each with its rotation. */
static void half_round(uint64_t v[4], int with_0, int with_2, int bits_0, int bits_2)
{
	v[0] += v[with_0];
	v[2] += v[with_2];
	v[with_0] = rotate(v[with_0], bits_0) ^ v[0];
	v[with_2] = rotate(v[with_2], bits_2) ^ v[2];
}

static void sip_rounds(uint64_t v[4], int rounds)
{
	while (rounds--) {
		half_round(v, 1, 3, 13, 16);
		v[0] = rotate(v[0], 32);
		half_round(v, 3, 1, 21, 17);
		v[2] = rotate(v[2], 32);
	}
}

static void absorb(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	sip_rounds(v, 2);
	v[0] ^= word;
}

uint64_t shunt_siphash(const uint64_t key[2], const uint64_t *words, size_t count)
{
	uint64_t v[4] = {
		key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d,
		key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573,
	};

	for (size_t i = 0; i < count; i++)
		absorb(v, words[i]);
	absorb(v, (uint64_t)count * 8 << 56);	/* the length in bytes, modulo 256 */
	v[2] ^= 0xff;
	sip_rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}
