/* SPDX-License-Identifier: MIT */
#include "core/qos/throttle.h"
#include <stdlib.h>
#include "core/engine.h"
#include "core/qos/own_sends.h"
#include "core/qos/rules.h"
#include "core/service.h"

#define AHEAD 64u /* tokens that a lane takes for its next work requests, at most; all lanes no more than 1 ms has */

static struct shunt_throttle *throttle_of(struct shunt_gate *gate)
{
	return (struct shunt_throttle *)((char *)gate - offsetof(struct shunt_throttle, gate));
}

static void throttle_ask_for_look(struct shunt_engine *engine)
{
	struct shunt_service *service = engine->service;

	if (service)
		shunt_loop_post(&engine->loop, &service->tasks.qos);
}

/* Only the first waiter asks: the task looks again as long as somebody does. */
static void tokens_refuse(struct shunt_throttle *throttle, uint32_t tokens)
{
	struct shunt_own_sends *own;

	atomic_store_explicit(&throttle->need, tokens, memory_order_relaxed);
	if (atomic_exchange(&throttle->wait, SHUNT_THROTTLE_WAITS) != SHUNT_THROTTLE_CLEAR)
		return;
	atomic_fetch_add_explicit(&throttle->waits, 1, memory_order_relaxed);
	own = atomic_load(&throttle->own);
	if (own)
		atomic_store(&own->busy, true);
	throttle_ask_for_look(throttle->link->engine);
}

static void report_is_due(struct shunt_throttle *throttle)
{
	atomic_store_explicit(&throttle->report_at, SHUNT_NEVER, memory_order_relaxed);
	if (!atomic_exchange(&throttle->report_due, true))
		throttle_ask_for_look(throttle->link->engine);
}

/* Few pooled tokens are left: more are fetched before the last one is used. */
static void look_at_rest(struct shunt_throttle *throttle)
{
	if (shunt_account_pooled(&throttle->account) * 4 < throttle->fetch.batch &&
	    shunt_fetch_want(&throttle->fetch))
		throttle_ask_for_look(throttle->link->engine);
}

/* Of the account, where the node hands out tokens; of the node's own, where we are that. */
static bool pay(struct shunt_throttle *throttle, uint64_t now, uint32_t tokens)
{
	enum shunt_taken taken;
	uint8_t tag;

	if (atomic_load_explicit(&throttle->own, memory_order_acquire))
		return shunt_own_sends_take(throttle, now, tokens);
	if (!atomic_load_explicit(&throttle->counted, memory_order_acquire))
		return true;
	taken = shunt_account_take(&throttle->account, now, tokens, &tag);
	if (taken == SHUNT_TAKEN_POOLED)
		look_at_rest(throttle);
	return taken != SHUNT_TAKEN_NONE;
}

static bool tokens_take(struct shunt_throttle *throttle, uint64_t now, uint32_t tokens)
{
	bool limited = atomic_load_explicit(&throttle->rate, memory_order_acquire);
	bool waited = atomic_load_explicit(&throttle->wait, memory_order_relaxed) !=
		      SHUNT_THROTTLE_CLEAR;

	if (limited && !shunt_bucket_take(&throttle->bucket, now, tokens, waited))
		return false;
	if (pay(throttle, now, tokens))
		return true;
	if (limited)
		shunt_bucket_give(&throttle->bucket, tokens);
	return false;
}

static uint32_t in_hand(const struct shunt_throttle *throttle, const struct shunt_gate_hand *hand)
{
	return hand->epoch == atomic_load_explicit(&throttle->epoch, memory_order_relaxed) ?
		       hand->units :
		       0;
}

/* Some for the next work requests, too: most of them need no clock and no word that others write. */
static bool refill(struct shunt_throttle *throttle, struct shunt_gate_hand *hand, uint32_t tokens)
{
	uint64_t now = shunt_now(throttle->link->engine);
	uint32_t epoch = atomic_load(&throttle->epoch),
		 left = hand->epoch == epoch ? hand->units : 0,
		 more = tokens - left +
			atomic_load_explicit(&throttle->ahead, memory_order_relaxed);

	if (__builtin_expect(
		    now >= atomic_load_explicit(&throttle->report_at, memory_order_relaxed), 0))
		report_is_due(throttle);
	if (!tokens_take(throttle, now, more)) {
		more = tokens - left;
		if (!tokens_take(throttle, now, more))
			return false;
	}
	*hand = (struct shunt_gate_hand) { left + more, epoch };
	atomic_fetch_add_explicit(&throttle->tokens, more, memory_order_relaxed);
	return true;
}

static bool admit(struct shunt_gate *gate, struct shunt_gate_hand *hand, uint32_t bytes)
{
	struct shunt_throttle *throttle = throttle_of(gate);
	uint32_t tokens = shunt_tokens_of(bytes);

	if (__builtin_expect(in_hand(throttle, hand) < tokens, 0) &&
	    !refill(throttle, hand, tokens)) {
		if (atomic_load_explicit(&throttle->open, memory_order_relaxed))
			return true;
		tokens_refuse(throttle, tokens - in_hand(throttle, hand));
		return false;
	}
	hand->units -= tokens;
	return true;
}

static void shorten(struct shunt_gate *gate, struct shunt_gate_hand *hand, uint32_t admitted,
		    uint32_t posted)
{
	(void)gate;
	hand->units += shunt_tokens_of(admitted) - (posted ? shunt_tokens_of(posted) : 0);
}

/* --- life --- */

struct shunt_throttle *shunt_throttle_of(struct shunt_link *link)
{
	struct shunt_throttle *throttle = link->throttle;

	if (throttle)
		return throttle;
	throttle = calloc(1, sizeof(*throttle));
	if (!throttle)
		return NULL;
	throttle->gate = (struct shunt_gate) { .admit = admit, .shorten = shorten };
	throttle->link = link;
	throttle->since = shunt_now(link->engine);
	throttle->report_at = SHUNT_NEVER;
	throttle->class = SHUNT_QOS_NO_CLASS;
	shunt_lock_take(&link->engine->group.lock);
	link->throttle = throttle;
	shunt_lock_leave(&link->engine->group.lock);
	return throttle;
}

void shunt_throttle_free(struct shunt_link *link)
{
	if (link->throttle)
		shunt_holding_end(link->throttle);
	free(link->throttle);
	link->throttle = NULL;
}

static bool is_up(const struct shunt_link *link)
{
	return atomic_load(&link->state) == SHUNT_LINK_UP && !atomic_load(&link->failed);
}

static void serve_lanes(struct shunt_link *link)
{
	for (uint32_t i = 0; is_up(link) && i < link->lane_count; i++)
		shunt_lane_kick(&link->lanes[i]);
}

static void begin_rate(struct shunt_throttle *throttle, uint64_t rate)
{
	struct shunt_link *link = throttle->link;

	if (rate && throttle->rate)
		shunt_bucket_change(&throttle->bucket, rate);
	else if (rate)
		shunt_bucket_begin(&throttle->bucket, rate, shunt_now(link->engine));
	shunt_lock_take(&link->engine->group.lock);
	throttle->rate = rate;
	shunt_lock_leave(&link->engine->group.lock);
}

void shunt_throttle_renew(struct shunt_throttle *throttle)
{
	atomic_fetch_add(&throttle->epoch, 1);
}

static uint32_t ahead_of(const struct shunt_throttle *throttle)
{
	uint32_t most = AHEAD * SHUNT_TOKEN_BYTES, bytes = most;

	if (throttle->rate)
		bytes = shunt_tokens_piece(throttle->rate, most);
	if (throttle->node_rate && shunt_tokens_piece(throttle->node_rate, most) < bytes)
		bytes = shunt_tokens_piece(throttle->node_rate, most);
	return bytes / SHUNT_TOKEN_BYTES /
	       (throttle->link->lane_count ? throttle->link->lane_count : 1);
}

/* The largest work request under both, and the gate if there is one of them. */
static void arrange(struct shunt_throttle *throttle)
{
	struct shunt_link *link = throttle->link;
	uint32_t most = shunt_narrow_u32(link->engine->config.frag_bytes), piece = most;
	bool gated = throttle->rate || throttle->counted || atomic_load(&throttle->own);

	if (throttle->rate)
		piece = shunt_tokens_piece(throttle->rate, most);
	if (throttle->node_rate && shunt_tokens_piece(throttle->node_rate, most) < piece)
		piece = shunt_tokens_piece(throttle->node_rate, most);
	atomic_store(&throttle->ahead, gated ? ahead_of(throttle) : 0);
	shunt_throttle_renew(throttle);
	for (uint32_t i = 0; i < link->lane_count; i++)
		shunt_lane_set_gate(&link->lanes[i], gated ? &throttle->gate : NULL,
				    gated ? piece : 0);
	serve_lanes(link);
	throttle_ask_for_look(link->engine); /* waiters may have less to wait for */
}

void shunt_throttle_set(struct shunt_throttle *throttle, uint64_t rate)
{
	if (rate == throttle->rate)
		return;
	begin_rate(throttle, rate);
	arrange(throttle);
}

void shunt_throttle_count(struct shunt_throttle *throttle, uint64_t rate)
{
	if (rate == throttle->node_rate)
		return;
	throttle->node_rate = rate;
	atomic_store(&throttle->counted, rate != 0);
	arrange(throttle);
}

void shunt_throttle_own(struct shunt_throttle *throttle, struct shunt_own_sends *own, uint64_t rate)
{
	if (own == atomic_load(&throttle->own) && rate == throttle->node_rate)
		return;
	atomic_store(&throttle->own, own);
	throttle->node_rate = rate;
	arrange(throttle);
}

void shunt_throttle_open_all(struct shunt_engine *engine)
{
	struct shunt_group *group = &engine->group;

	shunt_lock_take(&group->lock);
	for (struct shunt_lane *lane = group->lanes; lane; lane = lane->next_in_group)
		if (lane->link->throttle)
			atomic_store(&lane->link->throttle->open, true);
	shunt_lock_leave(&group->lock);
}

/* --- who waits --- */

/* When the limit and the account allow what was refused last. Of tokens in the pool fetch.c says when to look. */
static uint64_t due_at(const struct shunt_throttle *throttle, uint64_t now)
{
	uint32_t need = atomic_load(&throttle->need);
	uint64_t due = throttle->rate ? shunt_bucket_due(&throttle->bucket, now, need) : now, paid;

	if (due > now || !throttle->counted)
		return due;
	paid = shunt_account_due(&throttle->account, now, need);
	return paid > now && throttle->fetch.at > now && throttle->fetch.at < paid ?
		       throttle->fetch.at :
		       paid;
}

bool shunt_throttle_is_ripe(const struct shunt_throttle *throttle)
{
	uint64_t now = shunt_now(throttle->link->engine);

	return due_at(throttle, now) <= now;
}

bool shunt_throttle_release(struct shunt_throttle *throttle)
{
	uint8_t state = SHUNT_THROTTLE_WAITS;

	atomic_compare_exchange_strong(&throttle->wait, &state, SHUNT_THROTTLE_SERVES);
	serve_lanes(throttle->link);
	state = SHUNT_THROTTLE_SERVES;
	return atomic_compare_exchange_strong(&throttle->wait, &state, SHUNT_THROTTLE_CLEAR);
}

static bool lacks_tokens(const struct shunt_throttle *throttle, uint64_t now)
{
	return atomic_load(&throttle->wait) != SHUNT_THROTTLE_CLEAR &&
	       shunt_account_due(&throttle->account, now, atomic_load(&throttle->need)) > now;
}

/* Tokens that a waiter needs and the account has not got are fetched; a waiter for its limit alone needs none. */
static void fetch(struct shunt_throttle *throttle, struct shunt_task *task, uint64_t now)
{
	if (!throttle->counted || !is_up(throttle->link))
		return;
	if (lacks_tokens(throttle, now))
		shunt_fetch_want(&throttle->fetch);
	shunt_fetch_run(throttle, task, now);
}

void shunt_throttle_serve(struct shunt_throttle *throttle, struct shunt_task *task, uint64_t now)
{
	uint64_t due;

	fetch(throttle, task, now);
	if (atomic_load(&throttle->wait) == SHUNT_THROTTLE_CLEAR)
		return;
	due = due_at(throttle, now);
	if (due <= now || !is_up(throttle->link)) {
		if (atomic_load(&throttle->own) && is_up(throttle->link))
			return; /* own_sends.c serves it in its turn */
		if (shunt_throttle_release(throttle))
			return;
		fetch(throttle, task, now);
		due = due_at(throttle, now);
	}
	shunt_task_at(task, due);
}

uint64_t shunt_throttle_bytes(const struct shunt_throttle *throttle)
{
	const struct shunt_link *link = throttle->link;
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < link->lane_count; i++)
		bytes += atomic_load_explicit(&link->lanes[i].window.posted, memory_order_relaxed);
	return bytes;
}
