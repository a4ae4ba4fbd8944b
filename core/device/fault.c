/* SPDX-License-Identifier: MIT */
#include "core/device/fault.h"
#include "core/base/fault_rules.h"
#include <errno.h>
#include <string.h>
#include "core/base/log.h"

_Atomic(struct shunt_fault_plan *) shunt_fault_memory;
static struct shunt_fault_plan memory_plan;	/* of the process, as its memory is */

/* splitmix64: whether a rule strikes depends on its seed and on how often it could have, on nothing else. */
static uint64_t roll(uint64_t seed, uint64_t rule, uint64_t turn)
{
	uint64_t x = seed * 0x9e3779b97f4a7c15ull + (rule << 56) + turn * 0xd1342543de82ef95ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return (x ^ x >> 31) >> 32;
}

/* One more opportunity: is it taken? */
static bool takes(const struct shunt_fault_plan *plan, struct shunt_fault_rule *rule)
{
	uint64_t turn = atomic_fetch_add(&rule->seen, 1) + 1;

	if (rule->nth && turn != rule->nth)
		return false;
	if (roll(plan->seed, (uint64_t)(rule - plan->rules), turn) >= rule->odds)
		return false;
	return atomic_fetch_add(&rule->struck, 1) < rule->count || !rule->count;
}

/* The rule that strikes; NULL: none. */
static struct shunt_fault_rule *rule_find(struct shunt_fault_plan *plan, uint32_t action,
					  uint32_t what, const struct shunt_fault_at *at)
{
	for (uint32_t i = 0; i < plan->count; i++) {
		struct shunt_fault_rule *rule = &plan->rules[i];

		if (rule->action != action || (rule->what != SHUNT_FAULT_ANY && rule->what != what) ||
		    (at && rule->lane != SHUNT_FAULT_ANY && rule->lane != at->lane) ||
		    (at && rule->bytes > at->posted))
			continue;
		if (takes(plan, rule))
			return rule;
	}
	return NULL;
}

/* Each is logged: with the seed it can be had again. */
static void fault_note(uint32_t action, const struct shunt_fault_rule *rule,
		       const struct shunt_fault_at *at)
{
	int saved = errno;

	if (at)
		shunt_log(SHUNT_LOG_INFO, "fault: %s at opportunity %llu, lane %u after %llu bytes",
			  shunt_fault_name(action), (unsigned long long)atomic_load(&rule->seen),
			  at->lane, (unsigned long long)at->posted);
	else
		shunt_log(SHUNT_LOG_INFO, "fault: %s at opportunity %llu", shunt_fault_name(action),
			  (unsigned long long)atomic_load(&rule->seen));
	errno = saved;
}

bool shunt_fault_strikes(struct shunt_fault *fault, enum shunt_fault_action action, uint32_t what,
			 const struct shunt_fault_at *at, uint64_t *ns)
{
	struct shunt_fault_plan *plan = atomic_load(&fault->plan);
	struct shunt_fault_rule *rule = plan ? rule_find(plan, action, what, at) : NULL;

	if (!rule)
		return false;
	*ns = rule->ns;
	atomic_fetch_add(&fault->struck, 1);
	fault_note(action, rule, at);
	return true;
}

bool shunt_fault_denies_slow(uint32_t what)
{
	static const int errors[] = { [SHUNT_DENY_MALLOC] = ENOMEM, [SHUNT_DENY_MAP] = ENOMEM, [SHUNT_DENY_FD] = EMFILE,
				      [SHUNT_DENY_MR] = ENOMEM, [SHUNT_DENY_THREAD] = EAGAIN };
	struct shunt_fault_plan *plan = atomic_load(&shunt_fault_memory);
	struct shunt_fault_rule *rule = plan ? rule_find(plan, SHUNT_FAULT_DENY, what, NULL) : NULL;

	if (!rule)
		return false;
	fault_note(SHUNT_FAULT_DENY, rule, NULL);
	errno = errors[what];
	return true;
}

/* --- switching --- */

static bool has(const struct shunt_fault_plan *plan, bool memory)
{
	for (uint32_t i = 0; i < plan->count; i++)
		if ((plan->rules[i].action == SHUNT_FAULT_DENY) == memory)
			return true;
	return false;
}

void shunt_fault_set_memory(const char *text)
{
	struct shunt_fault_plan plan;

	atomic_store(&shunt_fault_memory, NULL);
	if (shunt_fault_parse(text, &plan, NULL, 0) || !has(&plan, true))
		return;
	memcpy(&memory_plan, &plan, sizeof(plan));
	atomic_store(&shunt_fault_memory, &memory_plan);
}

void shunt_fault_put_in_force(struct shunt_fault *fault, const struct shunt_fault_plan *plan)
{
	struct shunt_fault_plan *spare = atomic_load(&fault->plan) == &fault->plans[0] ? &fault->plans[1] :
											  &fault->plans[0];

	memcpy(spare, plan, sizeof(*plan));
	atomic_store(&fault->plan, has(plan, false) ? spare : NULL);
}

void shunt_fault_begin(struct shunt_fault *fault, const char *rules)
{
	struct shunt_fault_plan plan;

	if (rules[0] && !shunt_fault_parse(rules, &plan, NULL, 0))
		shunt_fault_put_in_force(fault, &plan);
}

/* --- time --- */
