/* SPDX-License-Identifier: MIT */
/*
 * The node's count of the tokens that arrive on a link, and the verdict on it. Pure arithmetic: the caller brings the
 * time, in nanoseconds of any monotonic clock; rates are as in tokens.h.
 *
 * The verdict mirrors the client's bucket. A word says when all arrived bytes fall due, and a time in the future is
 * beyond the limit. An honest client is never beyond. Its bucket saves less than the meter does. A poll that comes
 * late brings much at once, so saving counts from the last poll that has left nothing. A cut rate counts once the
 * message must have reached the client, a raised rate at once.
 */
#ifndef SHUNT_CORE_QOS_METER_H
#define SHUNT_CORE_QOS_METER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* ns that an idle link saves: SHUNT_TOKEN_LATE, and what may lie between a poll and the last post before it. */
#define SHUNT_METER_DEPTH 35000000ull
/* ns after which a client must have heard of a lower rate, or of a new period. */
#define SHUNT_METER_NEWS 250000000ull

struct shunt_meter {
	_Atomic uint64_t arrived; /* tokens, in all */
	uint64_t origin; /* ns of the clock; full_at counts from there, in 1/64 ns */
	uint64_t full_at; /* when all that has arrived has fallen due */
	uint64_t rate; /* that counts now; 0: any */
	uint64_t cost; /* of a token at that rate, in 1/64 ns */
	uint64_t told; /* the rate that the client was told last; 0: none */
	uint64_t next; /* the highest rate told since the cut that counts from cut_at on */
	uint64_t cut_at; /* ns; SHUNT_METER_NEVER: no cut is to come */
	/* Tokens by period; without grants only the rate is asked. */
	bool grants;
	uint64_t ceiling; /* `arrived` must not exceed it */
	uint64_t former; /* the ceiling of the former period, whose rest expires at rest_until */
	uint64_t rest_until; /* ns; SHUNT_METER_NEVER: it has */
};

#define SHUNT_METER_NEVER UINT64_MAX

/* Counts from now on. `rate` 0: the client may send what it likes, until it must have heard of a limit. */
void shunt_meter_begin(struct shunt_meter *meter, uint64_t rate, uint64_t now);
/* The client is being told this rate; 0: none. */
void shunt_meter_tell(struct shunt_meter *meter, uint64_t rate, uint64_t now);
/* A new period, with so many tokens for the client; what it has left of the former one counts for SHUNT_METER_NEWS. */
void shunt_meter_allow(struct shunt_meter *meter, uint64_t tokens, uint64_t now);
/* The client has drawn so many more in this period, modulo 2^64: what it has given back is taken off. */
void shunt_meter_add(struct shunt_meter *meter, uint64_t tokens);
/* A work request of so many bytes has arrived. `emptied`: ns of the last poll that has left nothing behind. */
void shunt_meter_take(struct shunt_meter *meter, uint32_t bytes, uint64_t emptied);
/* More than `spare` tokens have arrived that the client had no right to. */
bool shunt_meter_is_beyond(const struct shunt_meter *meter, uint64_t spare, uint64_t now);
/* How many tokens it is beyond its right; 0: none. */
uint64_t shunt_meter_excess(const struct shunt_meter *meter, uint64_t now);
/* When it is not beyond any more; SHUNT_METER_NEVER: only tokens of another period help. */
uint64_t shunt_meter_due(const struct shunt_meter *meter, uint64_t now);

#endif
