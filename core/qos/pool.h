/* SPDX-License-Identifier: MIT */
/*
 * The word of a pool of tokens (HA-04, HA-07): `tag:16 | tokens + 2^47:48`. The tag is the period's number.
 *
 * A client takes by FETCH_AND_ADD of minus its batch. The old value says of which period the tokens are, and how many
 * it got: those that were there, at most the batch. A pool that was drawn over is negative; over-draft never reaches
 * the tag, because 2^47 tokens would have to be drawn in one period.
 */
#ifndef SHUNT_CORE_QOS_POOL_H
#define SHUNT_CORE_QOS_POOL_H

#include <stdint.h>

#define SHUNT_POOL_BATCH 1000u
#define SHUNT_POOL_ZERO (1ull << 47)
#define SHUNT_POOL_MASK ((1ull << 48) - 1)

/* `tokens`: more than -2^47, less than 2^47. */
static inline uint64_t shunt_pool_word(uint32_t number, int64_t tokens)
{
	return (uint64_t)(number & 0xffff) << 48 |
	       (((uint64_t)tokens + SHUNT_POOL_ZERO) & SHUNT_POOL_MASK);
}

static inline uint16_t shunt_pool_tag(uint64_t word)
{
	return (uint16_t)(word >> 48);
}

static inline int64_t shunt_pool_tokens(uint64_t word)
{
	return (int64_t)(word & SHUNT_POOL_MASK) - (int64_t)SHUNT_POOL_ZERO;
}

/* Tokens that an FAA with `batch` got, by its answer. */
static inline uint32_t shunt_pool_got(uint64_t old, uint32_t batch)
{
	int64_t tokens = shunt_pool_tokens(old);

	return tokens <= 0 ? 0 : tokens < batch ? (uint32_t)tokens : batch;
}

/* An eighth of the pool: 1 to `most`, which is at most SHUNT_POOL_BATCH. */
static inline uint32_t shunt_pool_batch(uint64_t pool, uint32_t most)
{
	uint64_t batch = pool / 8;

	if (most > SHUNT_POOL_BATCH)
		most = SHUNT_POOL_BATCH;
	if (batch > most)
		batch = most;
	return batch ? (uint32_t)batch : 1;
}

#endif
