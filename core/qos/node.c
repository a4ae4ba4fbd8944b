/* SPDX-License-Identifier: MIT */
/* The classes of a node, and their clients. */
#include "core/qos/qos.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/engine.h"
#include "core/stream/streams.h"
#include "core/qos/facts.h"
#include "core/qos/monitor.h"
#include "core/qos/throttle.h"
#include "core/service.h"
#include "core/stream/tuple.h"

#define ANEW 8 /* portions are found anew at most so often in a period */
#define FEW 8 /* part of a class's clients: so many new ones find all portions anew at once */
#define SILENT 2 /* periods after which a client without a report sends nothing */

static uint64_t period_of(const struct shunt_qos *qos)
{
	return qos->rules.period_ms * 1000000ull;
}

static struct shunt_throttle *member(struct shunt_link *link, uint32_t class)
{
	struct shunt_throttle *throttle = link->throttle;

	return throttle && throttle->class == class && class != SHUNT_QOS_NO_CLASS ? throttle :
										     NULL;
}

static void set_uneven(struct shunt_service *service, uint32_t class)
{
	service->qos->classes[class].uneven = true;
	shunt_task_at(&service->tasks.qos, 0);
}

/* --- portions --- */

static void client_tell(struct shunt_throttle *throttle, const char *name, uint64_t rate,
			uint32_t period_ms)
{
	struct shunt_message message = { .type = SHUNT_MSG_QOS,
					 .qos = { .rate = rate, .period_ms = period_ms } };

	memcpy(message.qos.name, name, strlen(name));
	throttle->told = rate;
	shunt_holding_tell(throttle, rate, shunt_now(throttle->link->engine));
	shunt_link_send(throttle->link, &message, NULL, 0);
}

/* A small change is not worth a message, unless it is less: the sum must not exceed the limit. */
static bool is_worth_telling(uint64_t told, uint64_t rate)
{
	return rate < told || rate > told + told / 32;
}

bool shunt_qos_is_silent(const struct shunt_qos *qos, const struct shunt_throttle *throttle,
			 uint64_t now)
{
	return now - throttle->in.at > SILENT * period_of(qos);
}

/* The client's use is known by QOS_REPORT, until it is silent; our own is read here. */
static void look_at_use(const struct shunt_qos *qos, struct shunt_throttle *throttle, uint64_t now)
{
	if (shunt_qos_is_silent(qos, throttle, now))
		shunt_portion_used(&throttle->in, throttle->in.taken, throttle->in.waits, now);
	if (shunt_portion_is_due(&throttle->out, period_of(qos) / ANEW, now))
		shunt_portion_used(&throttle->out, atomic_load(&throttle->tokens),
				   atomic_load(&throttle->waits), now);
}

/* Those who get less are told first. */
static void apply(struct shunt_service *service, uint32_t class, bool less)
{
	const struct shunt_qos_class *rule = &service->qos->rules.classes[class];
	struct shunt_throttle *throttle;

	for (struct shunt_link *link = service->links; link; link = link->next) {
		if (!(throttle = member(link, class)))
			continue;
		if ((throttle->in.rate < throttle->told) == less &&
		    is_worth_telling(throttle->told, throttle->in.rate))
			client_tell(throttle, rule->name, throttle->in.rate,
				    service->qos->rules.period_ms);
		if ((throttle->out.rate < throttle->rate) == less &&
		    is_worth_telling(throttle->rate, throttle->out.rate))
			shunt_throttle_set(throttle, throttle->out.rate);
	}
}

/* The rest of the limit when all have been told: small raises are not worth a message. */
static void find_free(struct shunt_service *service, uint32_t class, uint64_t limit)
{
	struct shunt_qos_state *state = &service->qos->classes[class];
	struct shunt_throttle *throttle;
	uint64_t in = 0, out = state->paced.rate;

	for (struct shunt_link *link = service->links; link; link = link->next) {
		if (!(throttle = member(link, class)))
			continue;
		in += throttle->told;
		out += throttle->rate;
	}
	state->free_in = in < limit ? limit - in : 0;
	state->free_out = out < limit ? limit - out : 0;
}

void shunt_qos_split(struct shunt_service *service, uint32_t class, uint64_t now)
{
	struct shunt_qos *qos = service->qos;
	uint64_t limit = qos->rules.classes[class].limit;
	struct shunt_portion *in = NULL, *out = NULL;
	struct shunt_throttle *throttle;

	qos->classes[class].uneven = false;
	qos->classes[class].split_at = now;
	qos->classes[class].joined = 0;
	if (!limit)
		return;
	for (struct shunt_link *link = service->links; link; link = link->next) {
		if (!(throttle = member(link, class)))
			continue;
		look_at_use(qos, throttle, now);
		throttle->out.least = qos->classes[class].paced.first ? SHUNT_PACING_LEAST : 0;
		throttle->in.next = in;
		throttle->out.next = out;
		in = &throttle->in;
		out = &throttle->out;
	}
	shunt_portion_split(in, limit);
	shunt_portion_split(shunt_pacing_join(&qos->classes[class].paced, out), limit);
	shunt_pacing_apply(&qos->classes[class].paced, true);
	apply(service, class, true);
	apply(service, class, false);
	shunt_pacing_apply(&qos->classes[class].paced, false);
	find_free(service, class, limit);
}

/* Connections on TCP have a part of the limit that only a look finds. */
static void split(struct shunt_service *service, uint32_t class, uint64_t now)
{
	if (service->qos->classes[class].paced.count)
		shunt_pacing_look(service, now);
	else
		shunt_qos_split(service, class, now);
}

/* A part of what is free; it is not more than an equal one. */
static uint64_t take_free(uint64_t *free, uint64_t equal)
{
	uint64_t part = *free < equal ? *free : equal;

	if (part < SHUNT_RATE_MIN)
		part = SHUNT_RATE_MIN;
	*free -= part < *free ? part : *free;
	return part;
}

/*
 * A client has come. All portions are found anew at once if many have come since, or none for a
 * while. So clients that come together cost a few messages each, not one to each of the others.
 * Else it gets of what is free until then.
 */
static void client_join(struct shunt_service *service, struct shunt_throttle *throttle,
			uint64_t now)
{
	struct shunt_qos *qos = service->qos;
	struct shunt_qos_state *state = &qos->classes[throttle->class];
	uint64_t limit = qos->rules.classes[throttle->class].limit, equal;

	if (!limit)
		return;
	if (++state->joined >= state->clients / FEW ||
	    now - state->split_at >= period_of(qos) / ANEW) {
		split(service, throttle->class, now);
		return;
	}
	equal = limit / state->clients;
	throttle->in.rate = take_free(&state->free_in, equal);
	throttle->out.rate = take_free(&state->free_out, equal);
	client_tell(throttle, throttle->name, throttle->in.rate, qos->rules.period_ms);
	shunt_throttle_set(throttle, throttle->out.rate);
	set_uneven(service, throttle->class);
}

/* A class of which nobody is short stays as it is. */
void shunt_qos_balance(struct shunt_service *service, struct shunt_task *task, uint64_t now)
{
	struct shunt_qos *qos = service->qos;

	for (uint32_t i = 0; qos && i < qos->rules.count; i++) {
		uint64_t next = qos->classes[i].split_at + period_of(qos) / ANEW;

		if (!qos->classes[i].uneven)
			continue;
		if (next <= now)
			split(service, i, now);
		else
			shunt_task_at(task, next);
	}
}

/* --- classes --- */

static void keep_counts(struct shunt_qos_state *state, const struct shunt_throttle *throttle)
{
	state->tokens += atomic_load(&throttle->tokens);
	state->waits += atomic_load(&throttle->waits);
	state->told_tokens += throttle->in.taken;
	state->told_waits += throttle->in.waits;
}

static void take_out(struct shunt_service *service, struct shunt_throttle *throttle)
{
	uint32_t class = throttle->class;

	if (class == SHUNT_QOS_NO_CLASS)
		return;
	shunt_lock_take(&service->engine->group.lock);
	service->qos->classes[class].clients--;
	keep_counts(&service->qos->classes[class], throttle);
	throttle->class = SHUNT_QOS_NO_CLASS;
	shunt_lock_leave(&service->engine->group.lock);
	set_uneven(service, class);
}

static void put_in(struct shunt_service *service, struct shunt_throttle *throttle, uint32_t class)
{
	uint64_t now = shunt_now(service->engine);

	shunt_lock_take(&service->engine->group.lock);
	throttle->class = class;
	memcpy(throttle->name, service->qos->rules.classes[class].name, sizeof(throttle->name));
	shunt_portion_begin(&throttle->in, throttle->in.taken, throttle->in.waits, now);
	shunt_portion_begin(&throttle->out, atomic_load(&throttle->tokens),
			    atomic_load(&throttle->waits), now);
	throttle->told = 0;
	service->qos->classes[class].clients++;
	shunt_lock_leave(&service->engine->group.lock);
	client_join(service, throttle, now);
	if (!throttle->told) /* of a class without a limit, too, a client learns */
		client_tell(throttle, throttle->name, 0, service->qos->rules.period_ms);
}

/* Gathers all that is known of the peer's process; `stream` is its first connection on the link. */
static void learn(struct shunt_link *link, const struct shunt_stream *stream,
		  struct shunt_qos_client *client)
{
	memset(client, 0, sizeof(*client));
	if (link->channel.kind == SHUNT_CHANNEL_UNIX) {
		client->has_user = true;
		client->uid = link->peer_user;
		shunt_facts_program(link->engine, link->peer_pid, client);
	}
	memcpy(client->host, stream->tuple.peer, sizeof(client->host));
	client->port = ntohs(stream->tuple.local_port);
	if (link->throttle)
		memcpy(client->declared, link->throttle->declared, sizeof(client->declared));
}

static bool has_class(const struct shunt_link *link)
{
	return link->throttle && link->throttle->class != SHUNT_QOS_NO_CLASS;
}

static bool is_known(const struct shunt_link *link)
{
	return has_class(link) || (link->throttle && link->throttle->member);
}

void shunt_qos_granted(struct shunt_link *link, const struct shunt_stream *stream)
{
	struct shunt_service *service = link->engine->service;
	struct shunt_throttle *throttle;
	struct shunt_qos_client client;
	uint32_t class;

	if (!service->qos || link->initiator || is_known(link))
		return;
	learn(link, stream, &client);
	class = shunt_qos_match(&service->qos->rules, &client);
	if (class == SHUNT_QOS_NO_CLASS && !service->qos->monitor)
		return;
	throttle = shunt_throttle_of(link);
	if (!throttle) {
		shunt_log(SHUNT_LOG_WARN, "process %u%s has no limit: out of memory",
			  link->peer_pid, shunt_link_where(link));
		return;
	}
	if (class != SHUNT_QOS_NO_CLASS)
		put_in(service, throttle, class);
	if (service->qos->monitor)
		shunt_monitor_join(link);
}

void shunt_qos_left(struct shunt_link *link)
{
	shunt_monitor_leave(link);
	if (has_class(link))
		take_out(link->engine->service, link->throttle);
	shunt_engine_paces(link->engine);
}

/* --- rules --- */

static void take_all_out(struct shunt_service *service)
{
	for (struct shunt_link *link = service->links; link; link = link->next) {
		shunt_monitor_dismiss(link);
		if (has_class(link))
			take_out(service, link->throttle);
	}
}

/* Each accepted link by one of its streams: which class is it of now? Without one, it is of none any more. */
static void classify_all(struct shunt_service *service)
{
	for (struct shunt_link *link = service->links; link; link = link->next) {
		struct shunt_stream *stream, *known = NULL;

		if (link->initiator || atomic_load(&link->state) != SHUNT_LINK_UP)
			continue;
		shunt_streams_seated(link, stream) if (shunt_tuple_is_known(&stream->tuple) &&
						       !known) known = stream;
		if (known && service->qos)
			shunt_qos_granted(link, known);
		if (!link->throttle || has_class(link) || !link->throttle->name[0])
			continue;
		link->throttle->name[0] = 0;
		client_tell(link->throttle, "", 0, 0);
		shunt_throttle_set(link->throttle, 0);
	}
}

static bool has_capacity(const struct shunt_qos *qos)
{
	return qos && qos->rules.capacity_kind != SHUNT_QOS_CAPACITY_NONE;
}

/* 0 or -ENOMEM, and one line. */
static int rules_replace(struct shunt_service *service, struct shunt_qos *qos, char *error,
			 size_t bytes)
{
	struct shunt_qos *former = service->qos;
	int result = 0;

	if (former)
		take_all_out(service);
	if (has_capacity(qos))
		qos->monitor = shunt_monitor_begin(service, &qos->rules);
	if (has_capacity(qos) && !qos->monitor) { /* limits hold all the same */
		strncpy(error, "out of memory: nothing is reserved", bytes);
		result = -ENOMEM;
	}
	shunt_lock_take(&service->engine->group.lock);
	service->qos = qos;
	shunt_lock_leave(&service->engine->group.lock);
	free(former);
	classify_all(service);
	shunt_pacing_rules_changed(service);
	return result;
}

int shunt_qos_set(struct shunt_service *service, const char *text, char *error, size_t bytes)
{
	struct shunt_qos *qos = *text ? calloc(1, sizeof(*qos)) : NULL;
	int result = 0;

	if (*text && !qos) {
		strncpy(error, "out of memory", bytes);
		return -ENOMEM;
	}
	if (qos)
		result = shunt_facts_rules(service->engine, text, &qos->rules, error, bytes);
	if (result) {
		free(qos);
		return result;
	}
	if (qos) {
		qos->number = ++service->qos_count;
		qos->since = shunt_now(service->engine);
	}
	return rules_replace(service, qos, error, bytes);
}

void shunt_qos_begin(struct shunt_service *service)
{
	char error[SHUNT_QOS_ERROR];

	if (!service->engine->config.qos_rules[0])
		return;
	if (!shunt_qos_set(service, service->engine->config.qos_rules, error, sizeof(error)))
		shunt_task_at(&service->engine->work.tasks.pacing, 0); /* connections came before all was made */
	else
		shunt_log(SHUNT_LOG_WARN, "SHUNT_QOS: no rules are in force: %s", error);
}

void shunt_qos_end(struct shunt_service *service, bool copy)
{
	free(service->qos);
	service->qos = NULL;
	shunt_monitor_free(service, copy);
}

/* --- what clients say --- */

static const char *hear_declaration(struct shunt_link *link, const struct shunt_qos_word *word)
{
	struct shunt_throttle *throttle = link->throttle;

	if (!shunt_qos_name_is_sound(word->name) || word->rate || word->taken || word->waits ||
	    word->period_ms)
		return "a QOS without a class";
	if (throttle && (throttle->declared[0] || throttle->class != SHUNT_QOS_NO_CLASS))
		return "a QOS out of turn";
	throttle = shunt_throttle_of(link);
	if (throttle) /* else it has the class of who declares nothing */
		memcpy(throttle->declared, word->name, sizeof(throttle->declared));
	return NULL;
}

/* Counts are of the link, whatever its class was. */
static const char *hear_report(struct shunt_link *link, const struct shunt_qos_word *word)
{
	struct shunt_service *service = link->engine->service;
	struct shunt_throttle *throttle = link->throttle;
	bool short_of;

	if (!throttle || word->rate || word->period_ms || word->name[0])
		return "a QOS_REPORT out of turn";
	if (!has_class(link))
		return NULL; /* it crossed the news that there is no class any more */
	shunt_lock_take(&service->engine->group.lock);
	short_of = word->waits > throttle->in.waits;
	shunt_portion_used(&throttle->in, word->taken, word->waits, shunt_now(service->engine));
	shunt_lock_leave(&service->engine->group.lock);
	if (short_of)
		set_uneven(service, throttle->class);
	return NULL;
}

const char *shunt_qos_node_hears(struct shunt_link *link, const struct shunt_message *message)
{
	switch (message->type) {
	case SHUNT_MSG_QOS:
		return hear_declaration(link, &message->qos);
	case SHUNT_MSG_QOS_REPORT:
		return hear_report(link, &message->qos);
	default:
		return "a QOS from the wrong end";
	}
}
