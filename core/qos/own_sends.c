/* SPDX-License-Identifier: MIT */
#include "core/qos/own_sends.h"
#include "core/engine.h"
#include "core/qos/monitor.h"
#include "core/qos/qos.h"
#include "core/qos/throttle.h"
#include "core/service.h"

#define WEIGHTS 1000u /* of all classes together */

/* Those that reserve nothing, and the clients of no class, share what is left. */
static void weigh(const struct shunt_qos_rules *rules, uint64_t rate,
		  uint32_t weights[SHUNT_DRR_CLASSES])
{
	uint32_t left = WEIGHTS, free = 1, i;

	for (i = 0; i < rules->count; i++) {
		uint64_t reserved = shunt_qos_reserved(&rules->classes[i], rate);

		weights[i] = (uint32_t)((unsigned __int128)reserved * WEIGHTS / rate);
		if (weights[i] > left)
			weights[i] = left;
		left -= weights[i];
		free += !weights[i];
	}
	weights[i] = 0;
	for (i = 0; i <= rules->count; i++)
		if (!weights[i])
			weights[i] = left / free ? left / free : 1;
}

void shunt_own_sends_begin(struct shunt_own_sends *own, const struct shunt_qos_rules *rules,
			   uint64_t rate, uint64_t now)
{
	uint32_t weights[SHUNT_DRR_CLASSES];

	_Static_assert(SHUNT_DRR_CLASSES > SHUNT_QOS_CLASSES, "one more, for clients of no class");
	weigh(rules, rate, weights);
	shunt_drr_begin(&own->drr, weights, rules->count + 1);
	shunt_bucket_begin(&own->bucket, rate, now);
}

void shunt_own_sends_change(struct shunt_own_sends *own, uint64_t rate)
{
	shunt_bucket_change(&own->bucket, rate);
}

static bool take_handed(struct shunt_throttle *throttle, uint32_t tokens)
{
	uint32_t handed = atomic_load(&throttle->handed);

	do {
		if (handed < tokens)
			return false;
	} while (!atomic_compare_exchange_weak(&throttle->handed, &handed, handed - tokens));
	return true;
}

bool shunt_own_sends_take(struct shunt_throttle *throttle, uint64_t now, uint32_t tokens)
{
	struct shunt_own_sends *own = atomic_load(&throttle->own);

	if (!own) /* no more, since the caller looked */
		return true;
	return take_handed(throttle, tokens) ||
	       (!atomic_load_explicit(&own->busy, memory_order_relaxed) &&
		shunt_bucket_take(&own->bucket, now, tokens, false));
}

/* --- who waits --- */

static uint32_t row_of(const struct shunt_qos *qos, const struct shunt_throttle *throttle)
{
	return throttle->class < qos->rules.count ? throttle->class : qos->rules.count;
}

static bool throttle_waits(const struct shunt_throttle *throttle)
{
	return throttle && throttle->own && atomic_load(&throttle->wait) == SHUNT_THROTTLE_WAITS &&
	       shunt_throttle_is_ripe(throttle);
}

/* The first link of each class that waits, behind the one that was served last; what each class wants. False: nobody does. */
static bool heads_gather(struct shunt_service *service, struct shunt_throttle *heads[],
			 uint32_t wanted[])
{
	bool any = false;

	for (struct shunt_link *link = service->links; link; link = link->next) {
		struct shunt_throttle *throttle = link->throttle;
		uint32_t row;

		if (!throttle_waits(throttle))
			continue;
		row = row_of(service->qos, throttle);
		if (heads[row] && heads[row]->served_at <= throttle->served_at)
			continue;
		heads[row] = throttle;
		wanted[row] = atomic_load(&throttle->need);
		if (!wanted[row])
			wanted[row] = 1;
		any = true;
	}
	return any;
}

void shunt_own_sends_serve(struct shunt_service *service, struct shunt_task *task, uint64_t now)
{
	struct shunt_own_sends *own = service->monitor ? &service->monitor->own : NULL;

	while (own && service->qos && atomic_load(&own->busy)) {
		struct shunt_throttle *heads[SHUNT_DRR_CLASSES] = { NULL };
		uint32_t wanted[SHUNT_DRR_CLASSES] = { 0 }, tokens, row;

		atomic_store(&own->busy, false); /* a new waiter sets it again, and asks for another look */
		if (!heads_gather(service, heads, wanted))
			return;
		atomic_store(&own->busy, true);
		row = shunt_drr_next(&own->drr, wanted, shunt_bucket_rest(&own->bucket, now),
				     &tokens);
		if (row == SHUNT_DRR_NONE) {
			shunt_task_at(task, shunt_bucket_due(&own->bucket, now, tokens));
			return;
		}
		shunt_bucket_take(&own->bucket, now, tokens, true);
		atomic_fetch_add(&heads[row]->handed, tokens);
		heads[row]->served_at = ++own->turn;
		shunt_throttle_release(heads[row]);
	}
}
