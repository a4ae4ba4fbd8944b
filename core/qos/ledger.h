/* SPDX-License-Identifier: MIT */
/*
 * The node's ledger of one period's tokens (HA-04, HA-11, HA-12). Pure: the caller brings the time, reads and writes
 * pools, and hears reports. One thread.
 *
 * Of the capacity C, `reserved` was granted, `drawn` was taken from pools, and clients gave `returned` back by decay.
 * At every moment, reserved + drawn - returned + what lies in pools <= C. A client that dies keeps what it was
 * granted until the period's end.
 *
 * The caller changes a pool by compare-and-swap only, so that no draw is overlooked. It reads the
 * word, calls shunt_ledger_read with it, and asks shunt_ledger_most. Then it swaps, and calls
 * shunt_ledger_written once the swap succeeds.
 */
#ifndef SHUNT_CORE_QOS_LEDGER_H
#define SHUNT_CORE_QOS_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

/* Tokens of this period. */
struct shunt_ledger_client {
	uint16_t number; /* the period it was last granted in */
	uint32_t reservation;
	bool heard; /* it has reported in this period */
	uint32_t residual; /* as last reported; the reservation where nothing was */
	uint32_t spent; /* as last reported */
	uint32_t returned; /* never falls in a period, at most the reservation */
};

struct shunt_ledger_pool {
	uint16_t number; /* the period it was last written in */
	uint64_t tokens; /* what it held when last written or read; it holds no more */
};

struct shunt_ledger {
	uint16_t number; /* of the period */
	uint64_t began, period_ns; /* ns */
	/* Tokens. */
	uint64_t capacity;
	uint64_t reserved; /* granted, also to clients that have gone */
	uint64_t drawn; /* from pools */
	uint64_t returned;
	uint64_t residual; /* of clients that are there and have reported */
	uint64_t unheard; /* reservations of the others, which are taken to decay */
	uint64_t pooled; /* in pools, as last written or read */
	bool paced; /* pools are released in proportion to time */
};

#define SHUNT_LEDGER_AHEAD 16 /* part of the unreserved tokens that a paced period begins with */

/* A new period: all counts are 0. Clients have nothing until they are granted; pools count once they are written. */
void shunt_ledger_begin(struct shunt_ledger *ledger, uint16_t number, uint64_t capacity,
			uint64_t period_ns, uint64_t now);
/* The reservation that the client has now: `reservation`, or what there is room for. Once a period and client. */
uint32_t shunt_ledger_grant(struct shunt_ledger *ledger, struct shunt_ledger_client *client,
			    uint32_t reservation);
/*
 * A client's report word. False: it is of another period, or cannot be true, and changes nothing. The caller
 * overwrites the word at each period's start with one of another tag, because tags come again after 256 periods.
 */
bool shunt_ledger_heard(struct shunt_ledger *ledger, struct shunt_ledger_client *client,
			uint64_t report);
/* A client that has been granted this period's tokens has gone. */
void shunt_ledger_gone(struct shunt_ledger *ledger, struct shunt_ledger_client *client);
/*
 * A pool's word, before it is written or at any time. False: the word is not what the node wrote, or tokens rose
 * without the node. All that was in the pool counts as drawn then.
 */
bool shunt_ledger_read(struct shunt_ledger *ledger, struct shunt_ledger_pool *pool, uint64_t word);
/* The pool has the period's number and `tokens` (0 or more) now. The word before was read. */
void shunt_ledger_written(struct shunt_ledger *ledger, struct shunt_ledger_pool *pool,
			  uint64_t tokens);
/* Tokens that all pools should hold together. `convert` false: Basic Haechi, what is returned stays unused. */
uint64_t shunt_ledger_target(const struct shunt_ledger *ledger, uint64_t now, bool convert);
/* The most that this pool may be written with, beside the others as they are. */
uint64_t shunt_ledger_most(const struct shunt_ledger *ledger, const struct shunt_ledger_pool *pool,
			   uint64_t now, bool convert);

#endif
