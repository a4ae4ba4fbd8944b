/* SPDX-License-Identifier: MIT */
#include "core/qos/monitor.h"
#include <stdlib.h>
#include <string.h>
#include "core/engine.h"
#include "core/qos/grants.h"
#include "core/qos/pool.h"
#include "core/qos/pools.h"
#include "core/qos/qos.h"
#include "core/qos/throttle.h"
#include "core/service.h"

#define LOOK_EACH 1000000ull /* ns: the paper's check interval */
#define LOOK_QUIET 8000000ull /* ns: the same when nothing happens, */
#define QUIET 16 /* for so many looks */

static uint64_t *report_of(const struct shunt_link *link)
{
	return &((struct shunt_control *)link->arena_base)->word[SHUNT_CONTROL_REPORT];
}

static struct shunt_throttle *member(const struct shunt_link *link)
{
	return link->throttle && link->throttle->member ? link->throttle : NULL;
}

/* --- what clients are told --- */

static void tell_period(const struct shunt_qos *qos, struct shunt_throttle *throttle)
{
	const struct shunt_monitor *monitor = qos->monitor;
	struct shunt_message message = {
		.type = SHUNT_MSG_QOS_PERIOD,
		.period = { .rate = shunt_monitor_rate(qos), .number = monitor->ledger.number,
			    .period_ms = qos->rules.period_ms,
			    .reservation = throttle->tokens_of.reservation, .batch = monitor->batch,
			    .paced = throttle->link->engine->config.qos_pace },
	};

	shunt_link_send(throttle->link, &message, NULL, 0);
}

static void tell_pool(struct shunt_throttle *throttle)
{
	struct shunt_message message = {
		.type = SHUNT_MSG_QOS_POOL,
		.pool = { .address = throttle->loan.address, .rkey = throttle->loan.rkey },
	};
	int fd = throttle->pool->page.fd;

	shunt_link_send(throttle->link, &message, &fd, fd >= 0);
}

static void ask_all(struct shunt_service *service)
{
	struct shunt_monitor *monitor = service->qos->monitor;
	struct shunt_message message = { .type = SHUNT_MSG_QOS_ASK, .period.number = monitor->ledger.number };

	monitor->asked = true;
	for (struct shunt_link *link = service->links; link; link = link->next)
		if (member(link))
			shunt_link_send(link, &message, NULL, 0);
}

/* --- a period --- */

/* Reports of the period before must not be taken for this one's, whatever their tag. */
static void forget_report(struct shunt_link *link, uint16_t number)
{
	__atomic_store_n(report_of(link), shunt_report_word((uint8_t)(number - 1), 0, 0), __ATOMIC_RELAXED);
}

static void hear_reports(struct shunt_service *service)
{
	struct shunt_monitor *monitor = service->qos->monitor;

	for (struct shunt_link *link = service->links; link; link = link->next)
		if (member(link))
			shunt_ledger_heard(&monitor->ledger, &link->throttle->tokens_of,
					   __atomic_load_n(report_of(link), __ATOMIC_RELAXED));
}

static void begin_period(struct shunt_service *service, uint64_t now)
{
	struct shunt_qos *qos = service->qos;
	struct shunt_monitor *monitor = qos->monitor;
	uint16_t number = (uint16_t)(monitor->ledger.number + 1);

	shunt_ledger_begin(&monitor->ledger, number, monitor->capacity.estimate, shunt_qos_period_ns(qos), now);
	shunt_grants_make(service, now);
	monitor->batch = shunt_pool_batch(monitor->ledger.capacity - monitor->ledger.reserved, qos->rules.batch);
	monitor->asked = false;
	for (struct shunt_link *link = service->links; link; link = link->next) {
		if (!member(link))
			continue;
		forget_report(link, number);
		tell_period(qos, link->throttle);
	}
	shunt_pools_fill(monitor, now, service->engine->config.qos_convert);
}

static void end_period(struct shunt_service *service, uint64_t now)
{
	struct shunt_monitor *monitor = service->qos->monitor;
	uint64_t used;

	shunt_pools_read(monitor);
	hear_reports(service);
	used = shunt_grants_settle(service, now);
	shunt_capacity_adapt(&monitor->capacity, used);
}

static void look(struct shunt_service *service, uint64_t now)
{
	struct shunt_monitor *monitor = service->qos->monitor;
	bool drawn = shunt_pools_read(monitor);

	monitor->quiet = drawn ? 0 : monitor->quiet + 1;
	if (monitor->ledger.drawn && !monitor->asked)
		ask_all(service);
	if (monitor->asked)
		hear_reports(service);
	shunt_pools_fill(monitor, now, service->engine->config.qos_convert);
	monitor->look_at = now + (monitor->quiet < QUIET ? LOOK_EACH : LOOK_QUIET);
}

void shunt_monitor_run(struct shunt_service *service, struct shunt_task *task, uint64_t now)
{
	struct shunt_monitor *monitor = service->qos ? service->qos->monitor : NULL;
	uint64_t end;

	if (!monitor || !monitor->members)
		return;
	end = monitor->ledger.began + monitor->ledger.period_ns;
	if (now >= end) {
		end_period(service, now);
		/* Periods keep their beat, unless the thread came a whole period late. */
		begin_period(service, now - end < monitor->ledger.period_ns ? end : now);
		monitor->look_at = now + LOOK_EACH;
		end = monitor->ledger.began + monitor->ledger.period_ns;
	} else if (now >= monitor->look_at) {
		look(service, now);
	}
	shunt_task_at(task, monitor->look_at < end ? monitor->look_at : end);
}

/* --- members --- */

/* Without a pool a client has its reservation alone. */
static void join_pool(struct shunt_monitor *monitor, struct shunt_link *link)
{
	struct shunt_throttle *throttle = link->throttle;

	throttle->pool = shunt_pools_of(monitor, link);
	if (!throttle->pool)
		return;
	if (shunt_page_lend(&throttle->pool->page, link->pd, &throttle->loan)) {
		shunt_pools_left(monitor, throttle->pool);
		throttle->pool = NULL;
		return;
	}
	tell_pool(throttle);
}

void shunt_monitor_join(struct shunt_link *link)
{
	struct shunt_service *service = link->engine->service;
	struct shunt_monitor *monitor = service->qos->monitor;
	struct shunt_throttle *throttle = link->throttle;
	uint64_t now = shunt_now(link->engine);

	if (!monitor->members)
		begin_period(service, now); /* nobody has seen the former one end */
	monitor->members++;
	throttle->member = true;
	memset(&throttle->tokens_of, 0, sizeof(throttle->tokens_of));
	shunt_portion_begin(&throttle->reserved, throttle->arrived, 0, now);
	forget_report(link, monitor->ledger.number);
	shunt_grants_newcomer(service, throttle, now);
	tell_period(service->qos, throttle);
	join_pool(monitor, link);
	shunt_pools_fill(monitor, now, service->engine->config.qos_convert);
	monitor->quiet = 0;
	monitor->look_at = now + LOOK_EACH;
	shunt_task_at(&service->tasks.qos, 0);
}

void shunt_monitor_leave(struct shunt_link *link, bool told)
{
	struct shunt_monitor *monitor = link->engine->service->qos->monitor;
	struct shunt_throttle *throttle = member(link);
	struct shunt_message message = { .type = SHUNT_MSG_QOS_PERIOD };

	if (!throttle)
		return;
	if (told)
		shunt_link_send(link, &message, NULL, 0);
	shunt_ledger_gone(&monitor->ledger, &throttle->tokens_of);
	throttle->member = false;
	monitor->members--;
	if (!throttle->pool)
		return;
	shunt_page_take_back(&throttle->pool->page, &throttle->loan);
	shunt_pools_left(monitor, throttle->pool);
	throttle->pool = NULL;
}

/* --- life --- */

struct shunt_monitor *shunt_monitor_make(struct shunt_service *service, const struct shunt_qos_rules *rules)
{
	struct shunt_monitor *monitor = calloc(1, sizeof(*monitor));

	if (monitor)
		shunt_capacity_of_rules(service, &monitor->capacity, rules);
	return monitor;
}

void shunt_monitor_free(struct shunt_monitor *monitor)
{
	if (!monitor)
		return;
	shunt_pools_free(monitor);
	free(monitor);
}
