/* SPDX-License-Identifier: MIT */
#include "core/qos/meter.h"
#include "core/qos/tokens.h"

#define PARTS 6 /* as in tokens.c */
#define BEFORE 86400000000000ull /* ns before the first reading: no time is below 0 */
/* tokens: a client's bucket saves two, and gives back those of a request that was cut */
#define LEAST 4

static uint64_t time_of(const struct shunt_meter *meter, uint64_t now)
{
	return (now - meter->origin) << PARTS;
}

static uint64_t depth_of(const struct shunt_meter *meter)
{
	uint64_t depth = SHUNT_METER_DEPTH << PARTS, least = LEAST * meter->cost;

	return depth > least ? depth : least;
}

/* At a low rate the client's bucket saves tokens, not time: where they cost more from now on, so does what it has saved. */
static void set_rate(struct shunt_meter *meter, uint64_t rate, uint64_t now)
{
	uint64_t before = depth_of(meter), more, least;

	meter->rate = rate;
	meter->cost = rate ? shunt_token_cost(rate) : 0;
	if (depth_of(meter) <= before)
		return;
	more = depth_of(meter) - before;
	least = time_of(meter, now) - depth_of(meter);
	if (meter->full_at > least + more)
		meter->full_at -= more;
	else if (meter->full_at > least)
		meter->full_at = least;
}

/* No limit is the highest. */
static bool is_lower(uint64_t rate, uint64_t than)
{
	return rate && (!than || rate < than);
}

void shunt_meter_begin(struct shunt_meter *meter, uint64_t rate, uint64_t now)
{
	*meter = (struct shunt_meter) { .origin = now - BEFORE,
					.told = rate,
					.cut_at = SHUNT_METER_NEVER,
					.rest_until = SHUNT_METER_NEVER };
	set_rate(meter, rate, now);
	meter->full_at = time_of(meter, now) - depth_of(meter);
}

void shunt_meter_tell(struct shunt_meter *meter, uint64_t rate, uint64_t now)
{
	meter->told = rate;
	if (!is_lower(rate, meter->rate)) {
		set_rate(meter, rate, now);
		meter->cut_at = SHUNT_METER_NEVER;
	} else if (meter->cut_at == SHUNT_METER_NEVER) {
		meter->next = rate;
		meter->cut_at = now + SHUNT_METER_NEWS;
	} else if (is_lower(meter->next, rate)) {
		meter->next = rate;
	}
}

/* The rest of the former period is what has not arrived yet; the new period's tokens lie on top of it. */
static void expire_rest(struct shunt_meter *meter)
{
	uint64_t arrived = atomic_load_explicit(&meter->arrived, memory_order_relaxed);

	if (meter->rest_until != SHUNT_METER_NEVER && arrived < meter->former)
		meter->ceiling -= meter->former - arrived;
	meter->rest_until = SHUNT_METER_NEVER;
}

void shunt_meter_allow(struct shunt_meter *meter, uint64_t tokens, uint64_t now)
{
	expire_rest(meter); /* of the period before the former */
	if (!meter->grants)
		meter->ceiling = atomic_load_explicit(&meter->arrived, memory_order_relaxed);
	meter->grants = true;
	meter->former = meter->ceiling;
	meter->rest_until = now + SHUNT_METER_NEWS;
	meter->ceiling += tokens;
}

void shunt_meter_add(struct shunt_meter *meter, uint64_t tokens)
{
	meter->ceiling += tokens;
}

/* Later arrivals were posted after `emptied`, so cuts and rests that were due by then take effect. */
static void meter_pass(struct shunt_meter *meter, uint64_t emptied)
{
	if (emptied >= meter->rest_until)
		expire_rest(meter);
	if (emptied < meter->cut_at)
		return;
	set_rate(meter, meter->next, emptied);
	meter->cut_at = SHUNT_METER_NEVER;
	shunt_meter_tell(meter, meter->told, emptied); /* a lower one was told meanwhile */
}

void shunt_meter_take(struct shunt_meter *meter, uint32_t bytes, uint64_t emptied)
{
	uint64_t least, tokens = shunt_tokens_of(bytes);

	meter_pass(meter, emptied);
	least = time_of(meter, emptied) - depth_of(meter);
	atomic_store_explicit(&meter->arrived,
			      atomic_load_explicit(&meter->arrived, memory_order_relaxed) + tokens,
			      memory_order_relaxed);
	if (emptied > meter->origin + BEFORE && meter->full_at < least)
		meter->full_at = least;
	meter->full_at += meter->cost * tokens;
}

static uint64_t beyond_grants(const struct shunt_meter *meter)
{
	uint64_t arrived = atomic_load_explicit(&meter->arrived, memory_order_relaxed);

	return meter->grants && arrived > meter->ceiling ? arrived - meter->ceiling : 0;
}

bool shunt_meter_is_beyond(const struct shunt_meter *meter, uint64_t spare, uint64_t now)
{
	return beyond_grants(meter) > spare ||
	       (meter->rate && meter->full_at > time_of(meter, now) + spare * meter->cost);
}

uint64_t shunt_meter_excess(const struct shunt_meter *meter, uint64_t now)
{
	uint64_t time = time_of(meter, now), excess = beyond_grants(meter), late = 0;

	if (meter->rate && meter->full_at > time)
		late = (meter->full_at - time + meter->cost - 1) / meter->cost;
	return late > excess ? late : excess;
}

uint64_t shunt_meter_due(const struct shunt_meter *meter, uint64_t now)
{
	uint64_t time = time_of(meter, now);

	if (beyond_grants(meter))
		return SHUNT_METER_NEVER;
	if (!meter->rate || meter->full_at <= time)
		return now;
	return now + ((meter->full_at - time) >> PARTS) + 1;
}
