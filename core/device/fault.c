/* SPDX-License-Identifier: MIT */
#include "core/device/fault.h"
#include "core/device/fault_device.h"
#include "core/device/fault_rules.h"
#include <errno.h>
#include <string.h>
#include "core/base/deadline.h"
#include "core/engine.h"
#include "core/service.h"

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
					  uint32_t what, const struct shunt_lane *lane)
{
	for (uint32_t i = 0; i < plan->count; i++) {
		struct shunt_fault_rule *rule = &plan->rules[i];

		if (rule->action != action || (rule->what != SHUNT_FAULT_ANY && rule->what != what) ||
		    (lane && rule->lane != SHUNT_FAULT_ANY && rule->lane != lane->serial) ||
		    (lane && rule->bytes > atomic_load_explicit(&lane->window.posted, memory_order_relaxed)))
			continue;
		if (takes(plan, rule))
			return rule;
	}
	return NULL;
}

/* Each is logged: with the seed it can be had again. */
static void fault_note(uint32_t action, const struct shunt_fault_rule *rule,
		       const struct shunt_lane *lane)
{
	int saved = errno;

	if (lane)
		shunt_log(SHUNT_LOG_INFO, "fault: %s at opportunity %llu, lane %u after %llu bytes", shunt_fault_name(action),
			  (unsigned long long)atomic_load(&rule->seen), lane->serial,
			  (unsigned long long)atomic_load(&lane->window.posted));
	else
		shunt_log(SHUNT_LOG_INFO, "fault: %s at opportunity %llu", shunt_fault_name(action),
			  (unsigned long long)atomic_load(&rule->seen));
	errno = saved;
}

bool shunt_fault_strikes(struct shunt_fault *fault, enum shunt_fault_action action, uint32_t what,
			 const struct shunt_lane *lane, uint64_t *ns)
{
	struct shunt_fault_plan *plan = atomic_load(&fault->plan);
	struct shunt_fault_rule *rule = plan ? rule_find(plan, action, what, lane) : NULL;

	if (!rule)
		return false;
	*ns = rule->ns;
	atomic_fetch_add(&fault->struck, 1);
	fault_note(action, rule, lane);
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

bool shunt_fault_hurries(struct shunt_engine *engine)
{
	bool any;

	if (!atomic_load_explicit(&engine->fault.plan, memory_order_relaxed))
		return false;
	shunt_lock_take(&engine->group.lock);
	any = shunt_fault_release(&engine->fault);
	shunt_lock_leave(&engine->group.lock);
	return any;
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

static void put_in_force(struct shunt_fault *fault, const struct shunt_fault_plan *plan)
{
	struct shunt_fault_plan *spare = atomic_load(&fault->plan) == &fault->plans[0] ? &fault->plans[1] :
											  &fault->plans[0];

	memcpy(spare, plan, sizeof(*plan));
	atomic_store(&fault->plan, has(plan, false) ? spare : NULL);
}

void shunt_fault_begin(struct shunt_engine *engine)
{
	struct shunt_fault_plan plan;

	if (engine->config.fault[0] && !shunt_fault_parse(engine->config.fault, &plan, NULL, 0))
		put_in_force(&engine->fault, &plan);
}

int shunt_fault_set(struct shunt_engine *engine, const char *text, char *error, size_t bytes)
{
	struct shunt_fault *fault = &engine->fault;
	struct shunt_group *group = &engine->group;
	struct shunt_fault_plan plan;
	int result = shunt_fault_parse(text, &plan, error, bytes);

	if (result)
		return result;
	if (!engine->manual)	/* a simulated engine shares its process with another */
		shunt_fault_set_memory(text);
	put_in_force(fault, &plan);
	shunt_lock_take(&group->lock);
	shunt_fault_release(fault);
	for (int i = 0; i < SHUNT_DEVICES; i++)
		if (group->devices[i].open)
			shunt_fault_attach(&group->devices[i]);
	shunt_lock_leave(&group->lock);
	if (engine->service)
		shunt_fault_look_at(engine, shunt_now(engine));
	return 0;
}

/* --- time --- */

void shunt_fault_look_at(struct shunt_engine *engine, uint64_t when)
{
	uint64_t due = atomic_load(&engine->fault.due);

	while ((!due || due > when) && !atomic_compare_exchange_weak(&engine->fault.due, &due, when))
		;
	shunt_loop_wake(&engine->loop);
}

/* The filter is not needed any more. group.lock held. */
static void take_down(struct shunt_engine *engine)
{
	struct shunt_group *group = &engine->group;

	if (atomic_load(&engine->fault.plan) || engine->fault.first)
		return;
	for (struct shunt_lane *lane = group->lanes; lane; lane = lane->next_in_group)
		if (atomic_load(&lane->mute_since))
			return;
	for (int i = 0; i < SHUNT_DEVICES; i++)
		if (group->devices[i].open)
			shunt_fault_detach(&group->devices[i]);
}

/* The peer sees an engine that does not answer, as one does that is stopped or starved. */
static void freeze(struct shunt_engine *engine)
{
	struct timespec left;
	uint64_t ns, until;

	if (!shunt_fault_strikes(&engine->fault, SHUNT_FAULT_FREEZE, SHUNT_FAULT_ANY, NULL, &ns) || engine->manual)
		return;
	until = shunt_now(engine) + ns;
	while (shunt_now(engine) < until)
		engine->sys->ppoll(NULL, 0, shunt_deadline_left(engine, until, &left), NULL);
}

void shunt_fault_run(struct shunt_task *task)
{
	struct shunt_engine *engine = shunt_service_of(task, fault)->engine;
	struct shunt_fault *fault = &engine->fault;
	struct shunt_group *group = &engine->group;
	uint64_t due;

	if (atomic_load_explicit(&fault->plan, memory_order_relaxed))
		freeze(engine);
	due = atomic_load_explicit(&fault->due, memory_order_relaxed);
	if (due && due <= shunt_now(engine)) {
		atomic_store(&fault->due, 0);
		shunt_lock_take(&group->lock);
		shunt_fault_expire(engine, shunt_now(engine));
		shunt_lock_leave(&group->lock);
		shunt_group_poll_fully(engine);
		shunt_lock_take(&group->lock);
		take_down(engine);
		shunt_lock_leave(&group->lock);
		due = atomic_load(&fault->due);
	}
	if (due)
		shunt_task_at(task, due);
}
