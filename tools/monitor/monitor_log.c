/* SPDX-License-Identifier: MIT */
/* The last events of all processes as one stream: each process' own ring, a line of JSON for each event. */
#include <stdlib.h>
#include <string.h>

#include "tools/ask/ask.h"
#include "tools/ask/budget.h"
#include "tools/monitor/monitor.h"

#define LINE "log"
#define PATIENCE 1.0 /* seconds: scrapes wait meanwhile */
#define EVENTS_OF_ONE 1024 /* more than a ring holds is not an engine's answer */

static void add_events(json_t *all, const struct shunt_reply *reply, const json_t *answer)
{
	const json_t *events = json_object_get(answer, "events");
	size_t count = json_array_size(events);

	for (size_t i = count < EVENTS_OF_ONE ? 0 : count - EVENTS_OF_ONE; i < count; i++) {
		json_t *event = json_object();

		json_object_set_new(event, "pid", json_integer(reply->door.pid));
		json_object_set(event, "program", json_object_get(answer, "program"));
		if (!json_object_update_missing(event, json_array_get(events, i)))
			json_array_append(all, event);
		json_decref(event);
	}
}

static json_int_t time_of(const json_t *event)
{
	return json_integer_value(json_object_get(event, "time_ns"));
}

static int compare(const void *a, const void *b)
{
	const json_t *const *x = a, *const *y = b;

	return (time_of(*x) > time_of(*y)) - (time_of(*x) < time_of(*y));
}

/* All processes have one clock, CLOCK_MONOTONIC. */
static json_t *sorted(json_t *all)
{
	size_t count = json_array_size(all);
	json_t **list = calloc(count + 1, sizeof(json_t *)), *result = json_array();

	if (!list)
		abort();
	for (size_t i = 0; i < count; i++)
		list[i] = json_array_get(all, i);
	if (count)
		qsort(list, count, sizeof(json_t *), compare);
	for (size_t i = 0; i < count; i++)
		json_array_append(result, list[i]);
	free(list);
	json_decref(all);
	return result;
}

static struct shunt_budget_user *user_of(struct shunt_budget *budget,
					 const struct shunt_reply *reply)
{
	return shunt_budget_of(budget, reply->door.user, false);
}

static size_t weight_of(const struct shunt_reply *reply)
{
	return reply->text && !reply->refused ? shunt_budget_weigh(reply->text, reply->length) : 0;
}

static void take(json_t *all, const struct shunt_reply *reply, struct shunt_budget_user *user)
{
	size_t weight = weight_of(reply);
	json_t *answer = weight ? shunt_budget_parse(reply->text, reply->length, user->values, 0,
						     NULL) :
				  NULL;

	if (!answer)
		return;
	user->values -= weight;
	add_events(all, reply, answer);
	json_decref(answer);
}

json_t *monitor_log(void)
{
	static const struct shunt_budget_limits limits = { 4U << 20, 8U << 20 };
	struct shunt_budget budget = { .limits = &limits };
	struct shunt_replies replies = { 0 };
	json_t *all = json_array();

	if (shunt_ask_within(NULL, 0, LINE, PATIENCE, &limits, &replies))
		return all;
	for (size_t i = 0; i < replies.count; i++)
		user_of(&budget, &replies.of[i])->wanted += weight_of(&replies.of[i]);
	shunt_budget_share(&budget);
	for (size_t i = 0; i < replies.count; i++)
		take(all, &replies.of[i], user_of(&budget, &replies.of[i]));
	shunt_budget_free(&budget);
	shunt_ask_free(&replies);
	return sorted(all);
}

char *monitor_log_text(const json_t *events, size_t *bytes)
{
	char *text = NULL;
	FILE *file = open_memstream(&text, bytes);
	const json_t *event;
	size_t i;

	if (!file)
		abort();
	json_array_foreach(events, i, event)
	{
		json_dumpf(event, file, JSON_COMPACT | JSON_ENSURE_ASCII);
		putc('\n', file);
	}
	if (fclose(file))
		abort();
	return text;
}
