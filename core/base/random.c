/* SPDX-License-Identifier: MIT */
#include "core/base/random.h"
#include <stdatomic.h>

uint32_t shunt_random(_Atomic uint64_t *state, uint32_t below)
{
	uint64_t x = atomic_fetch_add(state, 0x9e3779b97f4a7c15ull) + 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return (uint32_t)((x ^ x >> 31) >> 32) % below;
}
