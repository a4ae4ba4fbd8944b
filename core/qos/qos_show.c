/* SPDX-License-Identifier: MIT */
/* The classes of a node for people, and in the statistics. */
#include "core/qos/qos.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/base/answer.h"
#include "core/engine.h"
#include "core/qos/throttle.h"
#include "core/service.h"

#define LINKS 64 /* that are listed each; beyond them there is only the count */
#define CLASS_ROOM 704 /* bytes of a class or a link as JSON, at most, without its tally */
#define LIMITS_HOLD_ON "link, tcp"
#define RESERVES_HOLD_ON "link"

/* The use of a class: its links, and those that have gone. Of clients, as they have reported last. */
struct use {
	uint64_t out_tokens, out_waits, in_tokens, in_waits;
	uint64_t out_rate, in_rate;
};

struct writer {
	char *text;
	size_t length, room;
};

__attribute__((format(printf, 2, 3))) static void put(struct writer *writer, const char *format,
						      ...)
{
	va_list args;
	int wanted;

	va_start(args, format);
	wanted = vsnprintf(writer->text + writer->length, writer->room - writer->length, format,
			   args);
	va_end(args);
	if (wanted > 0)
		writer->length += (size_t)wanted < writer->room - writer->length ?
					  (size_t)wanted :
					  writer->room - writer->length - 1;
}

/* The next throttle of a link that is up, behind that of `lane`. group.lock held. */
static struct shunt_lane *lane_next(struct shunt_group *group, struct shunt_lane *lane)
{
	for (lane = lane ? lane->next_in_group : group->lanes; lane; lane = lane->next_in_group)
		if (!lane->number && lane->link->throttle)
			return lane;
	return NULL;
}

/* group.lock held. */
static struct use use_of(struct shunt_engine *engine, struct shunt_qos *qos, uint32_t class)
{
	struct shunt_qos_state *state = &qos->classes[class];
	struct use use = { .out_tokens = state->tokens,
			   .out_waits = state->waits,
			   .in_tokens = state->told_tokens,
			   .in_waits = state->told_waits };
	uint64_t now = shunt_now(engine);

	for (struct shunt_lane *lane = lane_next(&engine->group, NULL); lane;
	     lane = lane_next(&engine->group, lane)) {
		const struct shunt_throttle *throttle = lane->link->throttle;

		if (throttle->class != class)
			continue;
		use.out_tokens += atomic_load(&throttle->tokens);
		use.out_waits += atomic_load(&throttle->waits);
		use.in_tokens += throttle->in.taken;
		use.in_waits += throttle->in.waits;
		use.in_rate += shunt_qos_is_silent(qos, throttle, now) ? 0 : throttle->in.used;
	}
	use.out_rate = shunt_pace_look(&state->pace, use.out_tokens, qos->since, now);
	return use;
}

#define N(number) ((unsigned long long)(number))

/* Nothing for rules without a capacity. */
static void put_tally(struct writer *writer, const struct shunt_qos *qos, uint32_t class)
{
	char text[SHUNT_TALLY_ROOM];

	if (qos->rules.capacity_kind == SHUNT_QOS_CAPACITY_NONE)
		return;
	shunt_tally_class_json(&qos->rules.classes[class], &qos->classes[class].tally, text);
	put(writer, "%s", text);
}

static void put_node(struct writer *writer, const struct shunt_qos *qos)
{
	const struct shunt_qos_period *period;
	char text[SHUNT_TALLY_ROOM];

	if (qos->rules.capacity_kind == SHUNT_QOS_CAPACITY_NONE)
		return;
	shunt_tally_node_json(&qos->rules, &qos->node, text);
	put(writer, "\"reserves_hold_on\":\"" RESERVES_HOLD_ON "\",%s\"periods\":[", text);
	for (uint32_t n = 0; (period = shunt_tally_period(&qos->node, n)); n++) {
		shunt_tally_period_json(period, qos->rules.count, text);
		put(writer, "%s%s", n ? "," : "", text);
	}
	put(writer, "],");
}

static void put_classes(struct writer *writer, struct shunt_engine *engine, struct shunt_qos *qos)
{
	put_node(writer, qos);
	put(writer, "\"period_ms\":%u,\"classes\":[", qos->rules.period_ms);
	for (uint32_t i = 0; i < qos->rules.count; i++) {
		const struct shunt_qos_class *class = &qos->rules.classes[i];
		const struct shunt_paced *paced = &qos->classes[i].paced;
		struct use use = use_of(engine, qos, i);

		put(writer,
		    "%s{\"name\":\"%s\",\"limit\":%llu,\"clients\":%u,\"cheats\":%llu,",
		    i ? "," : "", class->name, N(class->limit), qos->classes[i].clients,
		    N(qos->classes[i].cheats));
		put_tally(writer, qos, i);
		put(writer,
		    "\"in\":{\"tokens\":%llu,\"waits\":%llu,\"achieved\":%llu},"
		    "\"out\":{\"tokens\":%llu,\"waits\":%llu,\"achieved\":%llu},"
		    "\"tcp\":{\"connections\":%u,\"limit\":%llu,\"achieved\":%llu,\"arrived\":%llu}}",
		    N(use.in_tokens), N(use.in_waits), N(use.in_rate), N(use.out_tokens),
		    N(use.out_waits), N(use.out_rate), paced->count, N(paced->rate),
		    N(paced->used), N(paced->arrived));
	}
	put(writer, "],");
}

static void put_links(struct writer *writer, struct shunt_engine *engine)
{
	int count = 0;

	put(writer, "\"links\":[");
	for (struct shunt_lane *lane = lane_next(&engine->group, NULL); lane && count < LINKS;
	     lane = lane_next(&engine->group, lane)) {
		struct shunt_throttle *throttle = lane->link->throttle;
		uint64_t tokens = atomic_load(&throttle->tokens);

		if (!throttle->name[0])
			continue;
		put(writer,
		    "%s{\"peer\":%u,\"class\":\"%s\",\"told\":%s,\"limit\":%llu,\"tokens\":%llu,\"bytes\":%llu,"
		    "\"waits\":%llu,\"achieved\":%llu,\"arrived\":%llu,\"held\":%llu,"
		    "\"fetches\":%llu,\"reports\":%llu,"
		    "\"tcp\":{\"connections\":%u,\"limit\":%llu,\"arrived\":%llu}}",
		    count++ ? "," : "", lane->link->peer_pid, throttle->name,
		    lane->link->initiator ? "true" : "false",
		    N(lane->link->initiator ? throttle->limit : throttle->rate), N(tokens),
		    N(shunt_throttle_bytes(throttle)), N(atomic_load(&throttle->waits)),
		    N(shunt_pace_look(&throttle->pace, tokens, throttle->since, shunt_now(engine))),
		    N(atomic_load(&throttle->holding.meter.arrived)), N(throttle->holding.times),
		    N(atomic_load(&throttle->fetch.fetches)),
		    N(atomic_load(&throttle->fetch.reports)), throttle->paced.count,
		    N(throttle->paced.rate), N(throttle->paced.arrived));
	}
	put(writer, "]");
}

static bool is_told(struct shunt_engine *engine)
{
	struct shunt_lane *lane = lane_next(&engine->group, NULL);

	while (lane && !lane->link->throttle->name[0])
		lane = lane_next(&engine->group, lane);
	return lane != NULL;
}

char *shunt_qos_json(struct shunt_engine *engine)
{
	struct shunt_qos *qos = engine->service ? engine->service->qos : NULL;
	struct writer writer = { .room = (SHUNT_QOS_CLASSES + LINKS) * CLASS_ROOM +
					 (SHUNT_QOS_CLASSES + 1 + SHUNT_TALLY_PERIODS) *
						 SHUNT_TALLY_ROOM };

	if (!qos && !is_told(engine))
		return NULL;
	writer.text = malloc(writer.room);
	if (!writer.text)
		return NULL;
	put(&writer, "\"qos\":{\"node\":%s,\"holds_on\":\"" LIMITS_HOLD_ON "\",",
	    qos ? "true" : "false");
	if (qos)
		put_classes(&writer, engine, qos);
	put_links(&writer, engine);
	put(&writer, "},");
	return writer.text;
}

/* --- for people --- */

/* The service thread's own: no lock. */
static void show_paced(const struct shunt_paced *paced, struct shunt_answer *answer)
{
	char rate[32], used[32];

	if (paced->count)
		shunt_answer_put(answer, "    %u connections on TCP may be sent %s, and are %s\n",
				 paced->count,
				 shunt_qos_rate_text(paced->rate, rate, sizeof(rate)),
				 shunt_qos_rate_text(paced->used, used, sizeof(used)));
	if (paced->arrived)
		shunt_answer_put(answer,
				 "    TCP has brought %llu tokens, which no limit here holds\n",
				 N(paced->arrived));
}

static void show_class(struct shunt_engine *engine, struct shunt_qos *qos, uint32_t i,
		       struct shunt_answer *answer)
{
	const struct shunt_qos_class *class = &qos->rules.classes[i];
	char limit[32], in[32], out[32];
	struct use use;

	shunt_lock_take(&engine->group.lock);
	use = use_of(engine, qos, i);
	shunt_lock_leave(&engine->group.lock);
	shunt_answer_put(answer, "class %s limit=%s: %u clients\n", class->name,
			 shunt_qos_rate_text(class->limit, limit, sizeof(limit)),
			 qos->classes[i].clients);
	if (qos->rules.capacity_kind != SHUNT_QOS_CAPACITY_NONE) {
		shunt_lock_take(&engine->group.lock);
		shunt_tally_class_show(class, &qos->classes[i].tally, answer);
		shunt_lock_leave(&engine->group.lock);
	}
	if (!class->limit)
		return;
	shunt_answer_put(answer,
			 "    they send %s, %llu tokens in all, and have waited %llu times\n",
			 shunt_qos_rate_text(use.in_rate, in, sizeof(in)), N(use.in_tokens),
			 N(use.in_waits));
	shunt_answer_put(answer,
			 "    are sent %s, %llu tokens in all, which has waited %llu times\n",
			 shunt_qos_rate_text(use.out_rate, out, sizeof(out)), N(use.out_tokens),
			 N(use.out_waits));
	show_paced(&qos->classes[i].paced, answer);
}

/* Clients that have sent beyond their limit. */
static void show_held(struct shunt_engine *engine, struct shunt_answer *answer)
{
	shunt_lock_take(&engine->group.lock);
	for (struct shunt_lane *lane = lane_next(&engine->group, NULL); lane;
	     lane = lane_next(&engine->group, lane)) {
		const struct shunt_throttle *throttle = lane->link->throttle;

		if (!throttle->holding.named)
			continue;
		shunt_answer_put(
			answer,
			"process %u breaks the limit of class %s: it was held %llu times%s\n",
			lane->link->peer_pid, throttle->name, N(throttle->holding.times),
			throttle->holding.state == SHUNT_HOLDS_LINK ? ", and is now" : "");
	}
	shunt_lock_leave(&engine->group.lock);
}

/* Where this process is a client. */
static void show_told(struct shunt_engine *engine, struct shunt_answer *answer)
{
	char limit[32], rate[32];

	shunt_lock_take(&engine->group.lock);
	for (struct shunt_lane *lane = lane_next(&engine->group, NULL); lane;
	     lane = lane_next(&engine->group, lane)) {
		struct shunt_throttle *throttle = lane->link->throttle;
		uint64_t tokens = atomic_load(&throttle->tokens),
			 waits = atomic_load(&throttle->waits);

		if (!lane->link->initiator || !throttle->name[0])
			continue;
		shunt_qos_rate_text(shunt_pace_look(&throttle->pace, tokens, throttle->since,
						    shunt_now(engine)),
				    rate, sizeof(rate));
		shunt_answer_put(
			answer,
			"of process %u: class %s, limit %s; sends %s, %llu tokens in all, and has waited %llu times\n",
			lane->link->peer_pid, throttle->name,
			shunt_qos_rate_text(throttle->limit, limit, sizeof(limit)), rate,
			N(tokens), N(waits));
	}
	shunt_lock_leave(&engine->group.lock);
}

static void show_node(struct shunt_engine *engine, struct shunt_qos *qos,
		      struct shunt_answer *answer)
{
	if (qos->rules.capacity_kind == SHUNT_QOS_CAPACITY_NONE)
		return;
	shunt_lock_take(&engine->group.lock);
	shunt_tally_node_show(&qos->rules, &qos->node, answer);
	shunt_lock_leave(&engine->group.lock);
	shunt_answer_put(answer, "Reservations hold on: " RESERVES_HOLD_ON ".\n");
}

void shunt_qos_show(struct shunt_service *service, struct shunt_answer *answer)
{
	struct shunt_qos *qos = service->qos;

	for (uint32_t i = 0; qos && i < qos->rules.count; i++)
		show_class(service->engine, qos, i, answer);
	if (!qos) {
		shunt_answer_put(answer, "no rules\n");
	} else {
		show_node(service->engine, qos, answer);
	}
	show_held(service->engine, answer);
	show_told(service->engine, answer);
}

void shunt_qos_show_periods(struct shunt_service *service, struct shunt_answer *answer)
{
	struct shunt_qos *qos = service->qos;

	if (!qos || qos->rules.capacity_kind == SHUNT_QOS_CAPACITY_NONE) {
		shunt_answer_put(answer, "no rules with a capacity\n");
		return;
	}
	shunt_lock_take(&service->engine->group.lock);
	shunt_tally_periods_show(&qos->rules, &qos->node, answer);
	shunt_lock_leave(&service->engine->group.lock);
}

void shunt_qos_show_rules(struct shunt_service *service, struct shunt_answer *answer)
{
	char text[SHUNT_QOS_TEXT];

	if (!service->qos) {
		shunt_answer_put(answer, "# no rules\n");
		return;
	}
	shunt_qos_text(&service->qos->rules, text);
	shunt_answer_put(answer, "%s", text);
}
