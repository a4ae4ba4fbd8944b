/* SPDX-License-Identifier: MIT */
#include "core/qos/grants.h"
#include "core/engine.h"
#include "core/qos/admission.h"
#include "core/qos/monitor.h"
#include "core/qos/qos.h"
#include "core/qos/throttle.h"
#include "core/service.h"

#define SLACK 64 /* part of the capacity that a client may be ahead of what the monitor has seen */

#define each_member(service, of)                                                              \
	for (struct shunt_link *link_ = (service)->links; link_; link_ = link_->next)         \
		if (((of) = link_->throttle) != NULL && (of)->member)

static uint64_t arrived(const struct shunt_throttle *throttle)
{
	return atomic_load_explicit(&throttle->holding.meter.arrived, memory_order_relaxed);
}

/* --- who has how much --- */

/* Tokens of a period that a class is to have: no more than its limit. */
static uint64_t wanted_by(const struct shunt_qos *qos, uint32_t class, uint64_t capacity)
{
	const struct shunt_qos_class *rule = &qos->rules.classes[class];
	uint64_t limit = shunt_qos_tokens(rule->limit, qos->rules.period_ms),
		 wanted = rule->reserve_share ?
				  capacity * rule->reserve_share / 1000 :
				  shunt_qos_tokens(rule->reserve, qos->rules.period_ms);

	return rule->limit && wanted > limit ? limit : wanted;
}

static void divide(struct shunt_service *service, uint32_t class, uint64_t tokens, uint64_t now)
{
	uint32_t period_ms = service->qos->rules.period_ms;
	struct shunt_portion *first = NULL;
	struct shunt_throttle *throttle;

	each_member(service, throttle)
	{
		if (throttle->class != class)
			continue;
		shunt_portion_used(&throttle->reserved, arrived(throttle), throttle->short_periods,
				   now);
		throttle->reserved.next = first;
		first = &throttle->reserved;
	}
	shunt_portion_split(first, tokens * 1000000 / period_ms);
	each_member(service, throttle)
	{
		if (throttle->class == class)
			throttle->part = shunt_qos_tokens(throttle->reserved.rate, period_ms);
	}
}

/* Statistics read the tally under the lock. */
static void grant_note(struct shunt_service *service, uint32_t class, uint64_t reserved,
		       uint64_t granted, uint32_t refused)
{
	struct shunt_qos_tally *tally = &service->qos->classes[class].tally;

	shunt_lock_take(&service->engine->group.lock);
	tally->reserved += reserved;
	tally->granted += granted;
	tally->refused += refused;
	shunt_lock_leave(&service->engine->group.lock);
}

static void class_refuse(struct shunt_service *service, uint32_t class)
{
	grant_note(service, class, 0, 0, 1);
	if (service->qos->classes[class].tally.refused == 1)
		shunt_log(SHUNT_LOG_WARN,
			  "class '%s' does not fit the capacity: it is served as best effort",
			  service->qos->rules.classes[class].name);
}

/* Aggregate constraint by class, in the order of the rules; `local` is asked of each client. */
static uint64_t admit(struct shunt_service *service, uint32_t class, uint64_t reserved)
{
	struct shunt_qos *qos = service->qos;
	uint64_t capacity = qos->monitor->ledger.capacity, wanted = wanted_by(qos, class, capacity);

	if (!wanted || !qos->classes[class].clients)
		return 0;
	if (shunt_admission_aggregate(reserved, wanted, capacity))
		return wanted;
	class_refuse(service, class);
	return 0;
}

static bool is_local(const struct shunt_qos *qos, uint64_t reservation, uint64_t gone)
{
	uint64_t local = shunt_qos_tokens(qos->rules.local, qos->rules.period_ms);

	return !qos->rules.local ||
	       shunt_admission_local(reservation, 0, local, gone, qos->monitor->ledger.period_ns);
}

static uint64_t min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void grant(struct shunt_service *service, struct shunt_throttle *throttle, uint64_t tokens,
		  uint64_t now)
{
	struct shunt_qos *qos = service->qos;
	struct shunt_ledger *ledger = &qos->monitor->ledger;
	bool fits = is_local(qos, tokens, now > ledger->began ? now - ledger->began : 0);

	if (!fits)
		class_refuse(service, throttle->class);
	throttle->granted = shunt_ledger_grant(
		ledger, &throttle->tokens_of,
		(uint32_t)(fits ? min(tokens, SHUNT_ACCOUNT_MOST) : 0));
	throttle->arrived_before = arrived(throttle);
}

void shunt_grants_make(struct shunt_service *service, uint64_t now)
{
	struct shunt_qos *qos = service->qos;
	struct shunt_throttle *throttle;
	uint64_t reserved = 0, admitted[SHUNT_QOS_CLASSES + 1] = { 0 };

	for (uint32_t i = 0; i < qos->rules.count; i++) {
		admitted[i] = admit(service, i, reserved);
		reserved += admitted[i];
		grant_note(service, i, admitted[i] - qos->classes[i].tally.reserved, 0, 0);
		if (admitted[i])
			divide(service, i, admitted[i], now);
	}
	each_member(service, throttle)
	{
		uint64_t part = admitted[throttle->class] ?
					min(throttle->part, admitted[throttle->class]) :
					0;

		grant(service, throttle, part, now);
		/* No two of a class get more than the class has. */
		if (throttle->class < SHUNT_QOS_CLASSES) {
			admitted[throttle->class] -= throttle->granted;
			grant_note(service, throttle->class, 0, throttle->granted, 0);
		}
	}
	each_member(service, throttle) shunt_holding_allow(
		throttle,
		throttle->granted + qos->monitor->ledger.capacity / SLACK + 2 * qos->rules.batch,
		now);
}

void shunt_grants_newcomer(struct shunt_service *service, struct shunt_throttle *throttle,
			   uint64_t now)
{
	struct shunt_qos *qos = service->qos;
	struct shunt_ledger *ledger = &qos->monitor->ledger;
	uint64_t wanted = 0, left = ledger->period_ns, others = 0;
	struct shunt_throttle *other;

	if (now > ledger->began)
		left -= min(now - ledger->began, left);
	if (throttle->class != SHUNT_QOS_NO_CLASS) {
		wanted = wanted_by(qos, throttle->class, ledger->capacity);
		each_member(service, other) if (other->class == throttle->class)
			others += other->granted;
		wanted = wanted > others ? wanted - others : 0;
	}
	grant(service, throttle, (uint64_t)((unsigned __int128)wanted * left / ledger->period_ns),
	      now);
	if (throttle->class != SHUNT_QOS_NO_CLASS)
		grant_note(service, throttle->class, throttle->granted, throttle->granted, 0);
	shunt_holding_allow(
		throttle, throttle->granted + ledger->capacity / SLACK + 2 * qos->rules.batch, now);
}

/* --- the end of a period --- */

static void settle_member(struct shunt_qos *qos, struct shunt_throttle *throttle, uint64_t used,
			  bool convert)
{
	const struct shunt_ledger_client *client = &throttle->tokens_of;
	struct shunt_qos_tally *tally;
	bool short_of = used + client->returned < throttle->granted - throttle->granted / 100;

	throttle->short_periods += used >= throttle->granted;
	if (throttle->class == SHUNT_QOS_NO_CLASS)
		return;
	tally = &qos->classes[throttle->class].tally;
	tally->taken += used;
	tally->pooled += used > throttle->granted ? used - throttle->granted : 0;
	tally->returned += client->returned;
	tally->converted += convert ? client->returned : 0;
	tally->missed += short_of && client->heard;
}

static void settle_class(struct shunt_qos *qos, uint32_t class, uint64_t used,
			 struct shunt_qos_period *row)
{
	struct shunt_qos_state *state = &qos->classes[class];
	struct shunt_qos_tally *tally = &state->tally;

	row->reserved[class] = tally->reserved;
	row->taken[class] = used;
	if (!state->clients)
		return;
	tally->periods++;
	tally->achieved = used * 1000000 / qos->rules.period_ms;
	if (tally->reserved &&
	    shunt_capacity_unused(&tally->unused_in_a_row, used, tally->reserved))
		shunt_log(SHUNT_LOG_INFO,
			  "class '%s' has not used its reservation for %u periods: less would do",
			  qos->rules.classes[class].name, tally->unused_in_a_row);
}

uint64_t shunt_grants_settle(struct shunt_service *service)
{
	struct shunt_qos *qos = service->qos;
	uint64_t all = 0, used[SHUNT_QOS_CLASSES + 1] = { 0 };
	struct shunt_qos_period *row;
	struct shunt_throttle *throttle;

	shunt_lock_take(&service->engine->group.lock);
	row = shunt_tally_ended(&qos->node);
	each_member(service, throttle)
	{
		uint64_t of_it = arrived(throttle) - throttle->arrived_before;

		settle_member(qos, throttle, of_it, service->engine->config.qos_convert);
		used[throttle->class] += of_it;
		all += of_it;
	}
	for (uint32_t i = 0; i < qos->rules.count; i++)
		settle_class(qos, i, used[i], row);
	shunt_lock_leave(&service->engine->group.lock);
	return all;
}
