/* SPDX-License-Identifier: MIT */
/* A client talks to its node: its words, and the answers. */
#include "core/qos/qos.h"
#include <string.h>
#include "core/engine.h"
#include "core/qos/monitor.h"
#include "core/qos/pool.h"
#include "core/qos/throttle.h"
#include "core/service.h"

#define SOONER 8 /* part of a period after which a client that has become short reports */

void shunt_qos_introduce(struct shunt_link *link)
{
	const char *wanted = link->engine->config.qos_class;
	struct shunt_message message = { .type = SHUNT_MSG_QOS };

	if (!link->initiator)
		return;
	shunt_channel_expect_fd(&link->channel); /* the node may lend us a page of its pool */
	if (!wanted[0])
		return;
	memcpy(message.qos.name, wanted, strlen(wanted)); /* config.c has checked its length */
	shunt_link_send(link, &message, NULL, 0);
}

static void client_ask_for_look(struct shunt_link *link)
{
	shunt_task_at(&link->engine->service->tasks.qos, 0);
}

/* --- what it is told --- */

/* The lanes are one who shares with the streams on TCP, those that a look has found (pacing.h). */
void shunt_qos_share(struct shunt_link *link, uint64_t now)
{
	struct shunt_throttle *throttle = link->throttle;
	struct shunt_portion *lanes = &throttle->out;

	if (!throttle->limit) {
		shunt_throttle_set(throttle, 0);
		return;
	}
	if (!lanes->at)
		shunt_portion_begin(lanes, atomic_load(&throttle->tokens),
				    atomic_load(&throttle->waits), now);
	else if (shunt_portion_is_due(lanes, throttle->period / SOONER, now))
		shunt_portion_used(lanes, atomic_load(&throttle->tokens),
				   atomic_load(&throttle->waits), now);
	lanes->least = SHUNT_PACING_LEAST;
	lanes->next = NULL;
	shunt_portion_split(shunt_pacing_join(&throttle->paced, lanes), throttle->limit);
	shunt_pacing_apply(&throttle->paced, true);
	shunt_throttle_set(throttle, lanes->rate);
	shunt_pacing_apply(&throttle->paced, false);
	if (throttle->paced.first)
		shunt_task_at(&link->engine->service->tasks.qos, 0); /* a report may be due */
}

static bool is_zero(const char name[SHUNT_QOS_NAME])
{
	static const char none[SHUNT_QOS_NAME];

	return !memcmp(name, none, sizeof(none));
}

static bool is_sound(const struct shunt_qos_word *word)
{
	if (word->taken || word->waits)
		return false;
	if (is_zero(word->name))
		return !word->rate && !word->period_ms;
	return shunt_qos_name_is_sound(word->name) && word->period_ms >= SHUNT_QOS_PERIOD_LEAST &&
	       word->period_ms <= SHUNT_QOS_PERIOD_MOST &&
	       (!word->rate || (word->rate >= SHUNT_RATE_MIN && word->rate <= SHUNT_RATE_MAX));
}

static void say_class(const struct shunt_link *link, const struct shunt_qos_word *word)
{
	char rate[32];

	shunt_log(SHUNT_LOG_INFO, "process %u%s has put us into the class '%s', with the limit %s",
		  link->peer_pid, shunt_link_where(link), word->name,
		  shunt_qos_rate_text(word->rate, rate, sizeof(rate)));
}

static void hear_class(struct shunt_link *link, const struct shunt_qos_word *word)
{
	struct shunt_throttle *throttle = shunt_throttle_of(link);

	if (!throttle)
		return; /* out of memory: we send without a limit */
	if (memcmp(throttle->name, word->name, sizeof(throttle->name)))
		say_class(link, word);
	shunt_lock_take(&link->engine->group.lock);
	memcpy(throttle->name, word->name, sizeof(throttle->name));
	throttle->period = word->period_ms * 1000000ull;
	throttle->limit = word->rate;
	shunt_lock_leave(&link->engine->group.lock);
	if (!throttle->period)
		atomic_store(&throttle->report_at, SHUNT_NEVER);
	else if (!throttle->rate)
		atomic_store(&throttle->report_at, shunt_now(link->engine) + throttle->period);
	shunt_qos_share(link, shunt_now(link->engine));
	shunt_pacing_rules_changed(link->engine->service);
}

/* --- tokens that the node hands out --- */

static bool period_is_sound(const struct shunt_qos_grant *period)
{
	if (!period->period_ms)
		return !period->rate && !period->number && !period->reservation && !period->batch &&
		       !period->paced && !period->zero;
	return period->period_ms >= SHUNT_QOS_PERIOD_LEAST &&
	       period->period_ms <= SHUNT_QOS_PERIOD_MOST && period->rate >= SHUNT_RATE_MIN &&
	       period->rate <= SHUNT_RATE_MAX && period->number <= UINT16_MAX &&
	       period->reservation <= SHUNT_ACCOUNT_MOST && period->batch &&
	       period->batch <= SHUNT_POOL_BATCH && period->paced <= 1 && !period->zero;
}

static const char *hear_period(struct shunt_link *link, const struct shunt_qos_grant *period)
{
	struct shunt_throttle *throttle;
	uint64_t now = shunt_now(link->engine);

	if (!period_is_sound(period))
		return "a QOS_PERIOD that makes no sense";
	throttle = shunt_throttle_of(link);
	if (!throttle)
		return NULL; /* out of memory: we send without tokens */
	if (period->period_ms) {
		throttle->account.paced = period->paced;
		shunt_account_begin(&throttle->account, (uint16_t)period->number,
				    period->reservation, period->period_ms * 1000000ull, now);
		shunt_throttle_renew(throttle);
		shunt_fetch_begin(&throttle->fetch, period->batch, now);
	}
	shunt_throttle_count(throttle, period->rate);
	client_ask_for_look(link);
	return NULL;
}

static const char *hear_pool(struct shunt_link *link, const struct shunt_qos_pool *pool,
			     const int *fds, int count)
{
	struct shunt_throttle *throttle = shunt_throttle_of(link);

	shunt_channel_expect_no_fd(&link->channel);
	if (!throttle)
		return NULL; /* out of memory: we send without tokens */
	if (throttle->fetch.reachable)
		return "a second QOS_POOL";
	if (pool->address % sizeof(uint64_t) || pool->zero)
		return "a QOS_POOL that makes no sense";
	if (shunt_page_reach(link->device, link->lanes[0].qp, fds, count))
		return "a QOS_POOL that cannot be reached";
	throttle->fetch.reachable = true;
	throttle->fetch.address = pool->address;
	throttle->fetch.rkey = pool->rkey;
	return NULL;
}

static const char *hear_ask(struct shunt_link *link, const struct shunt_qos_grant *period)
{
	struct shunt_throttle *throttle = link->throttle;

	if (!throttle || period->number > UINT16_MAX || period->rate || period->period_ms ||
	    period->reservation || period->batch || period->paced || period->zero)
		return "a QOS_REPORT that makes no sense";
	if (!throttle->counted || period->number != throttle->account.number)
		return NULL;
	throttle->fetch.asked = true;
	throttle->fetch.report_at = 0;
	client_ask_for_look(link);
	return NULL;
}

/* --- */

static const char *hear_as_client(struct shunt_link *link, const struct shunt_message *message,
				  const int *fds, int count)
{
	switch (message->type) {
	case SHUNT_MSG_QOS:
		if (!is_sound(&message->qos))
			return "a QOS that makes no sense";
		hear_class(link, &message->qos);
		return NULL;
	case SHUNT_MSG_QOS_POOL:
		return hear_pool(link, &message->pool, fds, count);
	case SHUNT_MSG_QOS_PERIOD:
		return hear_period(link, &message->period);
	case SHUNT_MSG_QOS_REPORT:
		return hear_ask(link, &message->period);
	default:
		return "a QOS from the wrong end";
	}
}

void shunt_qos_hear(struct shunt_link *link, const struct shunt_message *message, const int *fds,
		    int count)
{
	const char *wrong;

	if (message->stream)
		wrong = "a QOS of a stream";
	else
		wrong = link->initiator ? hear_as_client(link, message, fds, count) :
					  shunt_qos_node_hears(link, message);
	if (wrong)
		shunt_link_distrust(link, wrong);
}

/* --- what it says --- */

/* It has become short: the node need not wait for the period's end to give it what others leave. */
static bool is_news(const struct shunt_throttle *throttle, uint64_t waits, uint64_t now)
{
	return !throttle->reported_short && waits > throttle->reported_waits &&
	       now - throttle->reported_at >= throttle->period / SOONER;
}

/* No lane says so where TCP alone carries bytes. */
static bool is_due_on_tcp(const struct shunt_throttle *throttle, uint64_t now)
{
	return throttle->paced.tokens != throttle->reported_tcp &&
	       now - throttle->reported_at >= throttle->period;
}

static void report(struct shunt_throttle *throttle, uint64_t now)
{
	struct shunt_message message = { .type = SHUNT_MSG_QOS_REPORT };
	uint64_t waits = atomic_load(&throttle->waits) + throttle->paced.waits;

	if (!throttle->period ||
	    (!atomic_exchange(&throttle->report_due, false) && !is_due_on_tcp(throttle, now) &&
	     !is_news(throttle, waits, now)))
		return;
	message.qos.taken = atomic_load(&throttle->tokens) + throttle->paced.tokens;
	message.qos.waits = waits;
	shunt_link_send(throttle->link, &message, NULL, 0);
	throttle->reported_tcp = throttle->paced.tokens;
	throttle->reported_short = waits > throttle->reported_waits;
	throttle->reported_waits = waits;
	throttle->reported_at = now;
	atomic_store(&throttle->report_at, now + throttle->period);
}

void shunt_qos_run(struct shunt_task *task)
{
	struct shunt_service *service = shunt_service_of(task, qos);
	uint64_t now = shunt_now(service->engine);

	for (struct shunt_link *link = service->links; link; link = link->next) {
		struct shunt_throttle *throttle = link->throttle;

		if (!throttle)
			continue;
		shunt_throttle_serve(throttle, task, now);
		shunt_holding_serve(throttle, task, now);
		if (link->initiator && atomic_load(&link->state) == SHUNT_LINK_UP)
			report(throttle, now);
		else if (throttle->class != SHUNT_QOS_NO_CLASS &&
			 atomic_load(&throttle->waits) > throttle->out.waits)
			service->qos->classes[throttle->class].uneven = true;
	}
	shunt_own_sends_serve(service, task, now);
	shunt_monitor_run(service, task, now);
	shunt_qos_balance(service, task, now);
}
