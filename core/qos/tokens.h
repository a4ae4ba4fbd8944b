/* SPDX-License-Identifier: MIT */
/*
 * Tokens and the bucket that they come from (HA-05). A token is the right to post up to SHUNT_TOKEN_BYTES in one work
 * request. Pure arithmetic: the caller brings the time, in nanoseconds of any monotonic clock.
 *
 * A bucket is one word: the time at which it is full again, as GCRA has it (ITU-T I.371). Taking
 * tokens moves that time; it is refused where the time would come to lie in the future. So the rate
 * may change at any moment, and any number of threads may take. Tokens taken in an interval never
 * exceed the rate times its length, plus the bucket's depth.
 */
#ifndef SHUNT_CORE_QOS_TOKENS_H
#define SHUNT_CORE_QOS_TOKENS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define SHUNT_TOKEN_BYTES 4096
/* In ns: an idle bucket saves as much, which is 2 % of a tenth of a second; */
#define SHUNT_TOKEN_DEPTH 2000000ull
/* and as much while a sender waits, because it may be told late. */
#define SHUNT_TOKEN_LATE 20000000ull
/* One work request of several tokens takes no longer. */
#define SHUNT_TOKEN_PIECE 1000000ull
/* A rate is in thousandths of a token a second. */
#define SHUNT_RATE_MIN 10ull
#define SHUNT_RATE_MAX 1000000000000ull /* 32 Tbit/s */

struct shunt_bucket {
	uint64_t origin; /* ns of the clock; the next two count from there, in 1/64 ns */
	_Atomic uint64_t full_at;
	_Atomic uint64_t cost; /* of a token */
};

/* Tokens for one work request of `bytes`. */
static inline uint32_t shunt_tokens_of(uint32_t bytes)
{
	return bytes <= SHUNT_TOKEN_BYTES ? 1 : (bytes - 1) / SHUNT_TOKEN_BYTES + 1;
}

/* Cost of a token at a rate, in 1/64 ns. */
uint64_t shunt_token_cost(uint64_t rate);

/* How fast a count grows, from one look to the next. */
struct shunt_pace {
	uint64_t at, count; /* ns; 0: nobody has looked yet */
	uint64_t rate;
};

/* The rate since the last look that lies a tenth of a second back; `since`: when the count was 0. */
uint64_t shunt_pace_look(struct shunt_pace *pace, uint64_t count, uint64_t since, uint64_t now);

/* A full bucket. `rate`: SHUNT_RATE_MIN to SHUNT_RATE_MAX. */
void shunt_bucket_begin(struct shunt_bucket *bucket, uint64_t rate, uint64_t now);
/* Another rate from now on. Any thread. */
void shunt_bucket_change(struct shunt_bucket *bucket, uint64_t rate);
/* True: they are taken. `waited`: a sender has waited, so what fell due since is saved longer. Any thread. */
bool shunt_bucket_take(struct shunt_bucket *bucket, uint64_t now, uint32_t tokens, bool waited);
/* Tokens that were taken, and not used after all. Any thread. */
void shunt_bucket_give(struct shunt_bucket *bucket, uint32_t tokens);
/* How many a sender that has waited could take now. */
uint64_t shunt_bucket_rest(const struct shunt_bucket *bucket, uint64_t now);
/* When so many can be taken, if nobody else takes any; at most a day from now. */
uint64_t shunt_bucket_due(const struct shunt_bucket *bucket, uint64_t now, uint32_t tokens);
/* The largest work request that does not take longer than SHUNT_TOKEN_PIECE; at least one token's. */
uint32_t shunt_tokens_piece(uint64_t rate, uint32_t most_bytes);

#endif
