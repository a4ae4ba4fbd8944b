/* SPDX-License-Identifier: MIT */
#include "core/qos/pools.h"
#include <string.h>
#include "core/engine.h"
#include "core/fd/own_fds.h"
#include "core/link/link.h"
#include "core/qos/monitor.h"
#include "core/qos/pool.h"

#define TRIES 8 /* to write a word that clients change meanwhile */

#define each_pool(monitor, pool)                                              \
	for ((pool) = (monitor)->pools; (pool) < (monitor)->pools + SHUNT_POOLS; (pool)++) \
		if ((pool)->links)

static bool is_remote(const struct shunt_link *link)
{
	return link->channel.kind != SHUNT_CHANNEL_UNIX || link->channel.other_netns;
}

static bool is_of(const struct shunt_pool *pool, const struct shunt_link *link)
{
	return pool->page.device == link->device && pool->remote == is_remote(link) &&
	       (pool->remote || pool->user == link->peer_user);
}

struct shunt_pool *shunt_pools_of(struct shunt_monitor *monitor, const struct shunt_link *link)
{
	struct shunt_pool *pool, *vacant = NULL;

	for (pool = monitor->pools; pool < monitor->pools + SHUNT_POOLS; pool++) {
		if (pool->links && is_of(pool, link)) {
			pool->links++;
			return pool;
		}
		if (!pool->links && !vacant)
			vacant = pool;
	}
	if (!vacant || shunt_page_make(link->device, &vacant->page))
		return NULL;
	vacant->remote = is_remote(link);
	vacant->user = link->peer_user;
	vacant->links = 1;
	vacant->tokens = (struct shunt_ledger_pool) { .number = (uint16_t)(monitor->ledger.number - 1) };
	/* A word of zeroes would have less than no tokens, and a draw would borrow of its tag. Nobody reaches it yet. */
	atomic_store(&vacant->page.words[0], shunt_pool_word(vacant->tokens.number, 0));
	return vacant;
}

/* The pool's tokens are free again, once nobody can draw on it any more. */
void shunt_pools_left(struct shunt_monitor *monitor, struct shunt_pool *pool)
{
	if (--pool->links)
		return;
	shunt_ledger_read(&monitor->ledger, &pool->tokens, shunt_page_load(&pool->page, 0));
	shunt_ledger_written(&monitor->ledger, &pool->tokens, 0);
	shunt_page_free(&pool->page);
	memset(pool, 0, sizeof(*pool));
}

/* --- reading --- */

static void accuse(struct shunt_pool *pool)
{
	if (!pool->accused)
		shunt_log(SHUNT_LOG_WARN,
			  "a client of user %u has changed the tokens of all by itself",
			  (unsigned int)pool->user);
	pool->accused = true;
}

static uint64_t read_one(struct shunt_monitor *monitor, struct shunt_pool *pool)
{
	uint64_t drawn = monitor->ledger.drawn, word = shunt_page_load(&pool->page, 0);

	if (!shunt_ledger_read(&monitor->ledger, &pool->tokens, word))
		accuse(pool);
	pool->drawn |= monitor->ledger.drawn > drawn;
	return word;
}

bool shunt_pools_read(struct shunt_monitor *monitor)
{
	uint64_t drawn = monitor->ledger.drawn;
	struct shunt_pool *pool;

	each_pool(monitor, pool) read_one(monitor, pool);
	return monitor->ledger.drawn > drawn;
}

/* --- writing --- */

/* A client that draws meanwhile is seen, and leaves less to be written. */
static void write_one(struct shunt_monitor *monitor, struct shunt_pool *pool, uint64_t tokens,
		      uint64_t now, bool convert)
{
	uint64_t word = read_one(monitor, pool), next, most;

	for (int i = 0; i < TRIES; i++) {
		uint64_t seen = word;

		most = shunt_ledger_most(&monitor->ledger, &pool->tokens, now, convert);
		if (tokens > most)
			tokens = most;
		next = shunt_pool_word(monitor->ledger.number, (int64_t)tokens);
		if (word == next ||
		    (!shunt_page_cas(&pool->page, 0, &seen, next) && seen == word)) {
			shunt_ledger_written(&monitor->ledger, &pool->tokens, tokens);
			return;
		}
		word = read_one(monitor, pool);
	}
}

/* Target of this pool, if the pools that were drawn on share the rest of the others. */
static uint64_t part_of(const struct shunt_pool *pool, uint64_t target, uint32_t pools,
			uint32_t drawn)
{
	uint64_t idle = target / pools / 2; /* of one that nobody draws on */

	if (!drawn || drawn == pools)
		return target / pools;
	return pool->drawn ? (target - idle * (pools - drawn)) / drawn : idle;
}

void shunt_pools_fill(struct shunt_monitor *monitor, uint64_t now, bool convert)
{
	uint64_t target = shunt_ledger_target(&monitor->ledger, now, convert);
	uint32_t pools = 0, drawn = 0;
	struct shunt_pool *pool;

	each_pool(monitor, pool)
	{
		pools++;
		drawn += pool->drawn;
	}
	if (!pools)
		return;
	/* Those that get less come first: what they leave is there for the others. */
	for (int more = 0; more < 2; more++) {
		each_pool(monitor, pool)
		{
			uint64_t part = part_of(pool, target, pools, drawn);

			if ((part > pool->tokens.tokens ||
			     pool->tokens.number != monitor->ledger.number) == more)
				write_one(monitor, pool, part, now, convert);
		}
	}
	each_pool(monitor, pool) pool->drawn = false;
}

bool shunt_pools_by_device(const struct shunt_monitor *monitor)
{
	const struct shunt_pool *pool;

	each_pool(monitor, pool) if (pool->page.cas) return true;
	return false;
}

void shunt_pools_free(struct shunt_monitor *monitor)
{
	struct shunt_pool *pool;

	each_pool(monitor, pool) shunt_page_free(&pool->page);
}

void shunt_pools_abandon(struct shunt_engine *engine, struct shunt_monitor *monitor)
{
	struct shunt_pool *pool;

	each_pool(monitor, pool) if (pool->page.fd >= 0)
		shunt_own_fds_close(&engine->fds, pool->page.fd);
}
