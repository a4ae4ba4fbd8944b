/* SPDX-License-Identifier: MIT */
/*
 * A client's account of tokens at one node (HA-03, HA-06, HA-09, HA-10). Pure: the caller brings the time, in
 * nanoseconds of any monotonic clock, posts the FAAs and writes the reports.
 *
 * The node says a period's start: number, reservation R, length T. Tokens of the reservation are spent first. Tokens
 * without demand decay. At time t a reservation of X = R * (1 - t/T) at most is left. The rest belongs to the node
 * again, as far as a report tells. Pooled tokens come by FAA, and may be spent until the next period.
 *
 * A paced reservation (beyond the paper) is spent in proportion to time: R * t/T and a little more. So small
 * reservations do not take the node's capacity early, when a large one could no longer catch up.
 *
 * Any thread takes and reports, without a lock; account.c says why that is right. One thread (the service thread)
 * begins periods and brings the answers of FAAs. An account of zeros is one whose node has not spoken yet: it is
 * lapsed.
 */
#ifndef SHUNT_CORE_QOS_ACCOUNT_H
#define SHUNT_CORE_QOS_ACCOUNT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The largest reservation, and the most pooled tokens that an account holds. */
#define SHUNT_ACCOUNT_MOST ((1u << 28) - 1)

/* One period's words; the next period has the other of two entries, by the tag's lowest bit. */
struct shunt_account_period {
	_Atomic uint64_t began, period_ns; /* ns */
	_Atomic uint64_t reservation; /* R, tokens */
	_Atomic uint64_t spent; /* tag:8 | count:56, tokens of the reservation */
	_Atomic bool paced;
};

struct shunt_account {
	_Atomic uint64_t purse; /* tag:8 | reservation:28 | pooled:28 */
	struct shunt_account_period periods[2];
	/* Of the thread that begins periods. */
	bool begun;
	uint16_t number; /* of the period; the tag is its lower half */
	bool paced; /* from the next period on */
	uint32_t ahead; /* tokens of the next period that have come already */
	/* Totals since the account's start, for statistics. Tokens, except `faas`. */
	_Atomic uint64_t granted, from_pool, returned, faas;
};

enum shunt_taken {
	SHUNT_TAKEN_NONE, /* nothing has changed */
	SHUNT_TAKEN_RESERVED, /* of the reservation alone */
	SHUNT_TAKEN_POOLED, /* pooled tokens were among them */
	SHUNT_TAKEN_LAPSED, /* nothing has changed, and nothing is needed */
};

enum shunt_fetched {
	SHUNT_FETCHED_SOME,
	SHUNT_FETCHED_NONE, /* the pool is empty */
	SHUNT_FETCHED_AHEAD, /* tokens of the next period, kept until it begins */
	SHUNT_FETCHED_STALE, /* of any other period: nothing */
};

/*
 * A new period, which replaces all that there was. One caller. A number that is the current period's changes nothing.
 * `period_ns` 0: the account is lapsed at once.
 */
void shunt_account_begin(struct shunt_account *account, uint16_t number, uint32_t reservation,
			 uint64_t period_ns, uint64_t now);
/* Takes `tokens` under `*tag`. LAPSED: none were taken, and none are needed. Any thread. */
enum shunt_taken shunt_account_take(struct shunt_account *account, uint64_t now, uint32_t tokens,
				    uint8_t *tag);
/* Pooled tokens. Any thread. */
uint32_t shunt_account_pooled(const struct shunt_account *account);
/* When so many can be taken if no pooled ones come; at most the period's end, or when it lapses. Any thread. */
uint64_t shunt_account_due(const struct shunt_account *account, uint64_t now, uint32_t tokens);
/* The answer of an FAA of -`batch`. One caller, the same as begin's. */
enum shunt_fetched shunt_account_fetched(struct shunt_account *account, uint64_t old_word,
					 uint32_t batch);
/*
 * The word for the node: tag:8 | residual:28 | spent:28. Unless the client is `backlogged` (what waits is demand), it
 * applies the decay to the purse. R - residual - spent is never more than what has decayed, and will not be spent. Any
 * thread.
 */
uint64_t shunt_account_report(struct shunt_account *account, uint64_t now, bool backlogged);
/* No new period for two periods: the node is silent. Any thread. */
bool shunt_account_lapsed(const struct shunt_account *account, uint64_t now);

static inline uint64_t shunt_report_word(uint8_t tag, uint32_t residual, uint32_t spent)
{
	return (uint64_t)tag << 56 | (uint64_t)(residual & SHUNT_ACCOUNT_MOST) << 28 |
	       (spent & SHUNT_ACCOUNT_MOST);
}

static inline uint8_t shunt_report_tag(uint64_t word)
{
	return (uint8_t)(word >> 56);
}

static inline uint32_t shunt_report_residual(uint64_t word)
{
	return (uint32_t)(word >> 28) & SHUNT_ACCOUNT_MOST;
}

static inline uint32_t shunt_report_spent(uint64_t word)
{
	return (uint32_t)word & SHUNT_ACCOUNT_MOST;
}

#endif
