/* SPDX-License-Identifier: MIT */
#include "core/qos/account.h"
#include "core/qos/ledger.h"
#include "core/qos/pool.h"

void shunt_ledger_begin(struct shunt_ledger *ledger, uint16_t number, uint64_t capacity,
			uint64_t period_ns, uint64_t now)
{
	*ledger = (struct shunt_ledger) {
		.number = number, .capacity = capacity, .period_ns = period_ns, .began = now
	};
}

/* Tokens that are neither granted nor drawn, pools included. */
static uint64_t ledger_room(const struct shunt_ledger *ledger)
{
	uint64_t out = ledger->reserved + ledger->drawn - ledger->returned;

	return ledger->capacity > out ? ledger->capacity - out : 0;
}

uint32_t shunt_ledger_grant(struct shunt_ledger *ledger, struct shunt_ledger_client *client,
			    uint32_t reservation)
{
	uint64_t left = ledger_room(ledger);

	if (client->number == ledger->number && client->reservation)
		return client->reservation;
	left = left > ledger->pooled ? left - ledger->pooled : 0;
	if (reservation > left)
		reservation = (uint32_t)left;
	if (reservation > SHUNT_ACCOUNT_MOST)
		reservation = SHUNT_ACCOUNT_MOST;
	*client = (struct shunt_ledger_client) { .number = ledger->number,
						 .reservation = reservation,
						 .residual = reservation };
	ledger->reserved += reservation;
	ledger->unheard += reservation;
	return reservation;
}

/* `spent` may be ahead of the residual: the client counts a take before it lowers its purse. */
static void tokens_give_back(struct shunt_ledger *ledger, struct shunt_ledger_client *client,
			     uint64_t residual, uint64_t spent)
{
	uint64_t returned;

	if (residual + spent >= client->reservation)
		return;
	returned = client->reservation - residual - spent;
	if (returned <= client->returned)
		return;
	ledger->returned += returned - client->returned;
	client->returned = (uint32_t)returned;
}

/* Its rest counts no more. */
static void take_off(struct shunt_ledger *ledger, const struct shunt_ledger_client *client)
{
	if (client->heard)
		ledger->residual -= client->residual;
	else
		ledger->unheard -= client->reservation;
}

bool shunt_ledger_heard(struct shunt_ledger *ledger, struct shunt_ledger_client *client,
			uint64_t report)
{
	uint32_t residual = shunt_report_residual(report),
		 spent = shunt_report_spent(report);

	if (client->number != ledger->number ||
	    shunt_report_tag(report) != (uint8_t)ledger->number || residual > client->reservation)
		return false;
	tokens_give_back(ledger, client, residual, spent);
	/* Returned tokens cannot be there again. */
	if (residual > client->reservation - client->returned)
		residual = client->reservation - client->returned;
	take_off(ledger, client);
	ledger->residual += residual;
	client->heard = true;
	client->residual = residual;
	client->spent = spent;
	return true;
}

void shunt_ledger_gone(struct shunt_ledger *ledger, struct shunt_ledger_client *client)
{
	if (client->number == ledger->number)
		take_off(ledger, client);
	*client = (struct shunt_ledger_client) { 0 };
}

/* Tokens of this period in the pool. */
static uint64_t held(const struct shunt_ledger *ledger, const struct shunt_ledger_pool *pool)
{
	return pool->number == ledger->number ? pool->tokens : 0;
}

bool shunt_ledger_read(struct shunt_ledger *ledger, struct shunt_ledger_pool *pool, uint64_t word)
{
	int64_t now = shunt_pool_tokens(word);
	uint64_t left = now > 0 ? (uint64_t)now : 0;
	bool ours = shunt_pool_tag(word) == pool->number && left <= pool->tokens;

	if (!ours)
		left = 0;
	if (pool->number == ledger->number) {
		ledger->drawn += pool->tokens - left;
		ledger->pooled -= pool->tokens - left;
	}
	pool->tokens = left;
	return ours;
}

void shunt_ledger_written(struct shunt_ledger *ledger, struct shunt_ledger_pool *pool,
			  uint64_t tokens)
{
	ledger->pooled -= held(ledger, pool);
	ledger->pooled += tokens;
	*pool = (struct shunt_ledger_pool) { .number = ledger->number, .tokens = tokens };
}

static uint64_t gone(const struct shunt_ledger *ledger, uint64_t now)
{
	uint64_t ns = now > ledger->began ? now - ledger->began : 0;

	return ns < ledger->period_ns ? ns : ledger->period_ns;
}

/* The part of `tokens` for the rest of the period. */
static uint64_t rest_of(const struct shunt_ledger *ledger, uint64_t tokens, uint64_t now)
{
	return (uint64_t)((unsigned __int128)tokens * (ledger->period_ns - gone(ledger, now)) /
			  ledger->period_ns);
}

/* The part of the pools that is released by now, and was not drawn; what was returned is released at once. */
static uint64_t released(const struct shunt_ledger *ledger, uint64_t now)
{
	uint64_t all = ledger->capacity > ledger->reserved ? ledger->capacity - ledger->reserved :
							     0,
		 part = (uint64_t)((unsigned __int128)all * gone(ledger, now) / ledger->period_ns) +
			all / SHUNT_LEDGER_AHEAD + ledger->returned;

	return part > ledger->drawn ? part - ledger->drawn : 0;
}

uint64_t shunt_ledger_target(const struct shunt_ledger *ledger, uint64_t now, bool convert)
{
	uint64_t most = ledger_room(ledger), due, residual;

	if (ledger->paced && released(ledger, now) < most)
		most = released(ledger, now);
	if (!convert)
		return most > ledger->returned ? most - ledger->returned : 0;
	due = rest_of(ledger, ledger->capacity, now);
	residual = ledger->residual + rest_of(ledger, ledger->unheard, now);
	due = due > residual ? due - residual : 0;
	return due < most ? due : most;
}

uint64_t shunt_ledger_most(const struct shunt_ledger *ledger, const struct shunt_ledger_pool *pool,
			   uint64_t now, bool convert)
{
	uint64_t target = shunt_ledger_target(ledger, now, convert),
		 others = ledger->pooled - held(ledger, pool);

	return target > others ? target - others : 0;
}
