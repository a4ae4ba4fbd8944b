/* SPDX-License-Identifier: MIT */
/* The one source of chance in a simulation: splitmix64, so that a seed is a whole run. */
#ifndef SIM_RANDOM_H
#define SIM_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

extern uint64_t sim_random_state;

static inline uint64_t sim_random(void)
{
	uint64_t x = sim_random_state += 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/* 0 … below-1 */
static inline uint64_t sim_below(uint64_t below)
{
	return sim_random() % below;
}

static inline uint64_t sim_between(uint64_t low, uint64_t high)
{
	return low + sim_below(high - low + 1);
}

/* One in `n`. */
static inline bool sim_one_in(uint64_t n)
{
	return sim_below(n) == 0;
}

/* Up to `most`, small numbers as likely as large ones. At least 1. */
static inline uint64_t sim_size(uint64_t most)
{
	uint64_t bits = 64 - __builtin_clzll(most);
	uint64_t size = 1 + sim_below(1ull << sim_below(bits + 1));

	return size < most ? size : most;
}

#endif
