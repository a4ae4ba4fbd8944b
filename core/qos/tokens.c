/* SPDX-License-Identifier: MIT */
#include "core/qos/tokens.h"

/* A nanosecond has 2^6 parts: the cost of a token at 100 Gbit/s is right to 5 in 100,000. */
#define PARTS 6
/* ns before the clock's first reading: no time is below 0, whatever is given back. */
#define BEFORE 86400000000000ull
/* ns: times closer to each other say little of a pace. */
#define APART 100000000ull
/* ns that a token takes at a rate of 1. */
#define MILLITOKEN_NS 1000000000000ull

/* Rounded up: never more than the rate. */
uint64_t shunt_token_cost(uint64_t rate)
{
	return ((MILLITOKEN_NS << PARTS) + rate - 1) / rate;
}

static uint64_t time_of(const struct shunt_bucket *bucket, uint64_t now)
{
	return (now - bucket->origin) << PARTS;
}

/* A request of many tokens must fit, and one that is cut in two, whatever the rate. */
static uint64_t depth_of(uint64_t cost, uint32_t tokens, bool waited)
{
	uint64_t depth = (waited ? SHUNT_TOKEN_LATE : SHUNT_TOKEN_DEPTH) << PARTS;
	uint64_t least = cost * (tokens > 2 ? tokens : 2);

	return depth > least ? depth : least;
}

void shunt_bucket_begin(struct shunt_bucket *bucket, uint64_t rate, uint64_t now)
{
	bucket->origin = now - BEFORE;
	atomic_store(&bucket->cost, shunt_token_cost(rate));
	atomic_store(&bucket->full_at, time_of(bucket, now) - depth_of(bucket->cost, 1, false));
}

void shunt_bucket_change(struct shunt_bucket *bucket, uint64_t rate)
{
	atomic_store(&bucket->cost, shunt_token_cost(rate));
}

bool shunt_bucket_take(struct shunt_bucket *bucket, uint64_t now, uint32_t tokens, bool waited)
{
	uint64_t cost = atomic_load_explicit(&bucket->cost, memory_order_relaxed);
	uint64_t time = time_of(bucket, now), least = time - depth_of(cost, tokens, waited),
		 price = cost * tokens;
	uint64_t full = atomic_load_explicit(&bucket->full_at, memory_order_relaxed), from;

	do {
		from = full > least ? full : least;
		if (from + price > time)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(
		&bucket->full_at, &full, from + price, memory_order_relaxed, memory_order_relaxed));
	return true;
}

void shunt_bucket_give(struct shunt_bucket *bucket, uint32_t tokens)
{
	atomic_fetch_sub_explicit(&bucket->full_at, atomic_load(&bucket->cost) * tokens,
				  memory_order_relaxed);
}

uint64_t shunt_bucket_rest(const struct shunt_bucket *bucket, uint64_t now)
{
	uint64_t cost = atomic_load(&bucket->cost), time = time_of(bucket, now),
		 least = time - depth_of(cost, 1, true), full = atomic_load(&bucket->full_at);

	if (full < least)
		full = least;
	return full < time ? (time - full) / cost : 0;
}

uint64_t shunt_bucket_due(const struct shunt_bucket *bucket, uint64_t now, uint32_t tokens)
{
	uint64_t end = atomic_load(&bucket->full_at) + atomic_load(&bucket->cost) * tokens,
		 time = time_of(bucket, now);
	uint64_t wait = end > time ? ((end - time) >> PARTS) + 1 : 0;

	return now + (wait < BEFORE ? wait : BEFORE);
}

uint64_t shunt_pace_look(struct shunt_pace *pace, uint64_t count, uint64_t since, uint64_t now)
{
	if (!pace->at)
		*pace = (struct shunt_pace) { .at = since };
	if (now - pace->at < APART || now <= pace->at)
		return pace->rate;
	pace->rate = count > pace->count ? (uint64_t)((unsigned __int128)(count - pace->count) *
						      MILLITOKEN_NS / (now - pace->at)) :
					   0;
	pace->at = now;
	pace->count = count;
	return pace->rate;
}

uint32_t shunt_tokens_piece(uint64_t rate, uint32_t most_bytes)
{
	uint64_t tokens = SHUNT_TOKEN_PIECE * rate / MILLITOKEN_NS,
		 most = most_bytes / SHUNT_TOKEN_BYTES;

	if (tokens > most)
		return most_bytes;
	return tokens > 1 ? (uint32_t)tokens * SHUNT_TOKEN_BYTES : SHUNT_TOKEN_BYTES;
}
