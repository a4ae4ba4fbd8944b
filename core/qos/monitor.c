/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "core/qos/monitor.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/engine.h"
#include "core/qos/grants.h"
#include "core/qos/own_sends.h"
#include "core/qos/pool.h"
#include "core/qos/pools.h"
#include "core/qos/profile.h"
#include "core/qos/qos.h"
#include "core/qos/throttle.h"
#include "core/service.h"

#define LOOK_EACH 1000000ull /* ns: the paper's check interval */
#define LOOK_QUIET 8000000ull /* ns: the same when nothing happens, */
#define QUIET 16 /* for so many looks */
#define FALLBACK 305175781ull /* 10 Gbit/s, as in tokens.h */

static uint64_t *report_of(const struct shunt_link *link)
{
	return &((struct shunt_control *)link->arena_base)->word[SHUNT_CONTROL_REPORT];
}

static struct shunt_throttle *member(const struct shunt_link *link)
{
	return link->throttle && link->throttle->member ? link->throttle : NULL;
}

/* --- the capacity --- */

static uint64_t tokens_of_rate(uint64_t rate, uint32_t period_ms)
{
	uint64_t tokens = shunt_qos_tokens(rate, period_ms);

	return tokens < SHUNT_ACCOUNT_MOST ? tokens : SHUNT_ACCOUNT_MOST;
}

static uint64_t rate_of(const struct shunt_qos *qos)
{
	uint64_t rate = qos->monitor->ledger.capacity * 1000000 / qos->rules.period_ms;

	return rate < SHUNT_RATE_MIN ? SHUNT_RATE_MIN :
	       rate < SHUNT_RATE_MAX ? rate :
				       SHUNT_RATE_MAX;
}

static void begin_capacity(struct shunt_monitor *monitor, const struct shunt_qos_rules *rules,
			   uint64_t mean, uint64_t sigma)
{
	shunt_capacity_begin(&monitor->capacity, tokens_of_rate(mean, rules->period_ms),
			     tokens_of_rate(sigma, rules->period_ms));
	monitor->profiled = true;
}

static const char *why_not(int error)
{
	const char *name = strerrordesc_np(error);

	if (error == ETIMEDOUT)
		return "the device is too slow, or this process did not run";
	return name ? name : "unknown error";
}

/* The device of the first client is measured, unless the rules say what it can do. */
static void profile(struct shunt_service *service, struct shunt_device *device)
{
	struct shunt_qos *qos = service->qos;
	uint64_t mean, sigma;
	int result;

	if (qos->monitor->profiled)
		return;
	result = shunt_profile(device, &mean, &sigma);
	if (result) {
		mean = FALLBACK;
		sigma = mean / 4;
		shunt_log(SHUNT_LOG_WARN,
			  "the capacity cannot be measured (%s): it is taken for 10 Gbit/s",
			  why_not(-result));
	}
	begin_capacity(qos->monitor, &qos->rules, mean, sigma);
}

/* --- what clients are told --- */

/* A peer that does not read is told once, and not again in each period. */
static bool hears(struct shunt_link *link)
{
	return !shunt_channel_waits(&link->channel);
}

/* `left`: ns of the period. */
static void tell_period(const struct shunt_qos *qos, struct shunt_throttle *throttle, uint64_t left)
{
	const struct shunt_monitor *monitor = qos->monitor;
	uint32_t left_ms = (uint32_t)(left / 1000000);
	struct shunt_message message = {
		.type = SHUNT_MSG_QOS_PERIOD,
		.period = { .rate = rate_of(qos), .number = monitor->ledger.number,
			    .period_ms = left_ms < SHUNT_QOS_PERIOD_LEAST ? SHUNT_QOS_PERIOD_LEAST : left_ms,
			    .reservation = throttle->tokens_of.reservation, .batch = monitor->batch,
			    .paced = monitor->ledger.paced },
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
	struct shunt_message message = { .type = SHUNT_MSG_QOS_REPORT, .period.number = monitor->ledger.number };

	monitor->asked = true;
	for (struct shunt_link *link = service->links; link; link = link->next)
		if (member(link) && hears(link))
			shunt_link_send(link, &message, NULL, 0);
}

/* --- a period --- */

static void put_node(struct shunt_service *service)
{
	struct shunt_qos *qos = service->qos;
	const struct shunt_monitor *monitor = qos->monitor;

	shunt_lock_take(&service->engine->group.lock);
	qos->node.monitor = shunt_pools_by_device(monitor) ? SHUNT_QOS_MONITOR_DEVICE : SHUNT_QOS_MONITOR_PROCESSOR;
	qos->node.capacity = monitor->ledger.capacity;
	qos->node.mean = monitor->capacity.mean;
	qos->node.sigma = monitor->capacity.sigma;
	qos->node.period = monitor->ledger.number;
	shunt_lock_leave(&service->engine->group.lock);
}

/* Reports of the period before must not be taken for this one's, whatever their tag. */
static void forget_report(struct shunt_link *link, uint16_t number)
{
	__atomic_store_n(report_of(link), shunt_report_word((uint8_t)(number - 1), 0, 0),
			 __ATOMIC_RELAXED);
}

/* It has no more right to tokens that it has given back. */
static void hear_report(struct shunt_monitor *monitor, struct shunt_link *link)
{
	struct shunt_ledger_client *client = &link->throttle->tokens_of;
	uint32_t before = client->returned;

	shunt_ledger_heard(&monitor->ledger, client,
			   __atomic_load_n(report_of(link), __ATOMIC_RELAXED));
	if (client->returned != before)
		shunt_holding_add(link->throttle, -(uint64_t)(client->returned - before));
}

static void hear_reports(struct shunt_service *service)
{
	for (struct shunt_link *link = service->links; link; link = link->next)
		if (member(link))
			hear_report(service->qos->monitor, link);
}

static void fill(struct shunt_service *service, uint64_t now)
{
	struct shunt_monitor *monitor = service->qos->monitor;

	shunt_pools_fill(monitor, now, service->engine->config.qos_convert);
	shunt_lock_take(&service->engine->group.lock);
	service->qos->node.pool = monitor->ledger.pooled;
	shunt_lock_leave(&service->engine->group.lock);
}

/*
 * The batch for all that the pools get in the period, however slowly. The rest of reservations is
 * not known yet, so the batch is at least what the largest work request needs (shunt_tokens_piece).
 */
static uint32_t batch_of(const struct shunt_qos *qos)
{
	const struct shunt_ledger *ledger = &qos->monitor->ledger;
	uint64_t pool = ledger->capacity > ledger->reserved ? ledger->capacity - ledger->reserved :
							      0;
	uint32_t batch = shunt_pool_batch(pool, qos->rules.batch),
		 least = shunt_pool_batch(8 * (ledger->capacity / qos->rules.period_ms),
					  qos->rules.batch);

	return batch > least ? batch : least;
}

static void begin_period(struct shunt_service *service, uint64_t now)
{
	struct shunt_qos *qos = service->qos;
	struct shunt_monitor *monitor = qos->monitor;
	uint16_t number = (uint16_t)(monitor->ledger.number + 1);

	shunt_ledger_begin(&monitor->ledger, number, monitor->capacity.estimate,
			   qos->rules.period_ms * 1000000ull, now);
	monitor->ledger.paced = service->engine->config.qos_pace;
	shunt_own_sends_change(&monitor->own, rate_of(qos));
	shunt_grants_make(service, now);
	monitor->batch = batch_of(qos);
	put_node(service);
	monitor->asked = false;
	monitor->allowed = 0;
	for (struct shunt_link *link = service->links; link; link = link->next) {
		if (!member(link))
			continue;
		forget_report(link, number);
		if (hears(link))
			tell_period(qos, link->throttle, monitor->ledger.period_ns);
		shunt_throttle_own(link->throttle, &monitor->own, rate_of(qos));
	}
	fill(service, now);
}

static void end_period(struct shunt_service *service)
{
	struct shunt_monitor *monitor = service->qos->monitor;
	uint64_t used;

	shunt_pools_read(monitor);
	hear_reports(service);
	used = shunt_grants_settle(service);
	if (!monitor->fixed)
		shunt_capacity_step(&monitor->capacity, used);
}

/* Any client may use drawn tokens. */
static void allow(struct shunt_service *service)
{
	struct shunt_monitor *monitor = service->qos->monitor;
	uint64_t more = monitor->ledger.drawn - monitor->allowed;

	for (struct shunt_link *link = service->links; more && link; link = link->next)
		if (member(link))
			shunt_holding_add(link->throttle, more);
	monitor->allowed = monitor->ledger.drawn;
}

static void pools_look(struct shunt_service *service, uint64_t now)
{
	struct shunt_monitor *monitor = service->qos->monitor;
	bool drawn = shunt_pools_read(monitor);

	monitor->quiet = drawn ? 0 : monitor->quiet + 1;
	if (monitor->ledger.drawn && !monitor->asked)
		ask_all(service);
	if (monitor->asked)
		hear_reports(service);
	fill(service, now);
	allow(service);
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
		end_period(service);
		/* Periods keep their beat, unless the thread came a whole period late. */
		begin_period(service, now - end < monitor->ledger.period_ns ? end : now);
		monitor->look_at = now + LOOK_EACH;
		end = monitor->ledger.began + monitor->ledger.period_ns;
	} else if (now >= monitor->look_at) {
		pools_look(service, now);
	}
	shunt_task_at(task, monitor->look_at < end ? monitor->look_at : end);
}

/* --- members --- */

/* Without a pool a client has its reservation alone. */
static void join_pool(struct shunt_monitor *monitor, struct shunt_link *link)
{
	struct shunt_throttle *throttle = link->throttle;

	if (throttle->pool)
		return; /* under former rules */
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

/* Nobody has seen the former period end. */
static void join_first(struct shunt_service *service, struct shunt_link *link, uint64_t now)
{
	profile(service, link->device);
	begin_period(service, now);
}

static void join_others(struct shunt_service *service, struct shunt_throttle *throttle,
			uint64_t now)
{
	struct shunt_monitor *monitor = service->qos->monitor;
	uint64_t gone = now - monitor->ledger.began;

	forget_report(throttle->link, monitor->ledger.number);
	shunt_grants_newcomer(service, throttle, now);
	tell_period(service->qos, throttle,
		    gone < monitor->ledger.period_ns ? monitor->ledger.period_ns - gone : 0);
	shunt_throttle_own(throttle, &monitor->own, rate_of(service->qos));
}

void shunt_monitor_join(struct shunt_link *link)
{
	struct shunt_service *service = link->engine->service;
	struct shunt_monitor *monitor = service->qos->monitor;
	struct shunt_throttle *throttle = link->throttle;
	uint64_t now = shunt_now(link->engine);

	throttle->member = true;
	shunt_holding_allow(throttle, 0, now); /* what arrives is counted, and differences are taken from here on */
	memset(&throttle->tokens_of, 0, sizeof(throttle->tokens_of));
	shunt_portion_begin(&throttle->reserved, throttle->holding.meter.arrived,
			    throttle->short_periods, now);
	if (!monitor->members++)
		join_first(service, link, now);
	else
		join_others(service, throttle, now);
	join_pool(monitor, link);
	fill(service, now);
	monitor->quiet = 0;
	monitor->look_at = now + LOOK_EACH;
	shunt_task_at(&service->tasks.qos, 0);
}

static void stop(struct shunt_link *link)
{
	struct shunt_monitor *monitor = link->engine->service->monitor;
	struct shunt_throttle *throttle = link->throttle;

	shunt_throttle_own(throttle, NULL, 0);
	shunt_holding_end_periods(throttle);
	shunt_ledger_gone(&monitor->ledger, &throttle->tokens_of);
	throttle->member = false;
	monitor->members--;
}

/* It keeps the pool that it was lent: there may be rules with a capacity again. */
void shunt_monitor_dismiss(struct shunt_link *link)
{
	struct shunt_message message = { .type = SHUNT_MSG_QOS_PERIOD };

	if (!member(link))
		return;
	shunt_link_send(link, &message, NULL, 0);
	stop(link);
}

void shunt_monitor_leave(struct shunt_link *link)
{
	struct shunt_monitor *monitor = link->engine->service->monitor;
	struct shunt_throttle *throttle = link->throttle;

	if (member(link))
		stop(link);
	if (!throttle || !throttle->pool)
		return;
	shunt_page_take_back(&throttle->pool->page, &throttle->loan);
	shunt_pools_left(monitor, throttle->pool);
	throttle->pool = NULL;
}

/* --- life --- */

struct shunt_monitor *shunt_monitor_begin(struct shunt_service *service,
					  const struct shunt_qos_rules *rules)
{
	struct shunt_monitor *monitor = service->monitor;

	if (!monitor)
		monitor = service->monitor = calloc(1, sizeof(*monitor));
	if (!monitor)
		return NULL;
	monitor->fixed = rules->capacity_kind == SHUNT_QOS_CAPACITY_FIXED;
	monitor->profiled = false;
	if (rules->capacity)
		begin_capacity(monitor, rules, rules->capacity,
			       rules->capacity / 1000 * rules->sigma);
	shunt_own_sends_begin(&monitor->own, rules, rules->capacity ? rules->capacity : FALLBACK,
			      shunt_now(service->engine));
	return monitor;
}

void shunt_monitor_free(struct shunt_service *service, bool copy)
{
	if (service->monitor && copy)
		shunt_pools_abandon(service->engine, service->monitor);
	else if (service->monitor)
		shunt_pools_free(service->monitor);
	free(service->monitor);
	service->monitor = NULL;
}
