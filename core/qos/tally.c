/* SPDX-License-Identifier: MIT */
#include "core/qos/tally.h"
#include <stdio.h>
#include <string.h>
#include "core/base/answer.h"

#define N(number) ((unsigned long long)(number))

struct shunt_qos_period *shunt_tally_ended(struct shunt_qos_node *node)
{
	struct shunt_qos_period *period = &node->periods[node->ended++ % SHUNT_TALLY_PERIODS];

	memset(period, 0, sizeof(*period));
	period->number = node->period;
	period->capacity = node->capacity;
	return period;
}

const struct shunt_qos_period *shunt_tally_period(const struct shunt_qos_node *node, uint32_t n)
{
	if (n >= SHUNT_TALLY_PERIODS || n >= node->ended)
		return NULL;
	return &node->periods[(node->ended - 1 - n) % SHUNT_TALLY_PERIODS];
}

static const char *kind_name(const struct shunt_qos_rules *rules)
{
	switch (rules->capacity_kind) {
	case SHUNT_QOS_CAPACITY_FIXED:
		return "fixed";
	case SHUNT_QOS_CAPACITY_AUTO:
		return "auto";
	case SHUNT_QOS_CAPACITY_AUTO_FROM:
		return "auto from";
	case SHUNT_QOS_CAPACITY_NONE:
		break;
	}
	return "none";
}

static const char *monitor_name(const struct shunt_qos_node *node)
{
	switch (node->monitor) {
	case SHUNT_QOS_MONITOR_PROCESSOR:
		return "processor";
	case SHUNT_QOS_MONITOR_DEVICE:
		return "device";
	case SHUNT_QOS_MONITOR_NONE:
		break;
	}
	return "none";
}

/* --- JSON --- */

void shunt_tally_class_json(const struct shunt_qos_class *class,
			    const struct shunt_qos_tally *tally, char text[SHUNT_TALLY_ROOM])
{
	snprintf(text, SHUNT_TALLY_ROOM,
		 "\"reserve\":%llu,\"reserve_share\":%u,\"reserved\":%llu,\"achieved\":%llu,"
		 "\"granted\":%llu,\"taken\":%llu,\"pooled\":%llu,\"converted\":%llu,"
		 "\"returned\":%llu,\"periods\":%u,\"missed\":%u,\"unused_in_a_row\":%u,"
		 "\"refused\":%u,",
		 N(class->reserve), class->reserve_share, N(tally->reserved), N(tally->achieved),
		 N(tally->granted), N(tally->taken), N(tally->pooled), N(tally->converted),
		 N(tally->returned), tally->periods, tally->missed, tally->unused_in_a_row,
		 tally->refused);
}

void shunt_tally_node_json(const struct shunt_qos_rules *rules, const struct shunt_qos_node *node,
			   char text[SHUNT_TALLY_ROOM])
{
	snprintf(text, SHUNT_TALLY_ROOM,
		 "\"monitor\":\"%s\",\"batch\":%u,\"capacity\":{\"kind\":\"%s\",\"rate\":%llu,"
		 "\"local\":%llu,\"tokens\":%llu,\"mean\":%llu,\"sigma\":%llu},"
		 "\"pool\":%llu,\"period\":%llu,",
		 monitor_name(node), rules->batch, kind_name(rules), N(rules->capacity),
		 N(rules->local), N(node->capacity), N(node->mean), N(node->sigma), N(node->pool),
		 N(node->period));
}

void shunt_tally_period_json(const struct shunt_qos_period *period, uint32_t classes,
			     char text[SHUNT_TALLY_ROOM])
{
	int length = snprintf(text, SHUNT_TALLY_ROOM,
			      "{\"number\":%llu,\"capacity\":%llu,\"classes\":[", N(period->number),
			      N(period->capacity));

	for (uint32_t i = 0; i < classes; i++)
		length += snprintf(text + length, SHUNT_TALLY_ROOM - (size_t)length,
				   "%s[%llu,%llu]", i ? "," : "", N(period->reserved[i]),
				   N(period->taken[i]));
	snprintf(text + length, SHUNT_TALLY_ROOM - (size_t)length, "]}");
}

/* --- for people --- */

void shunt_tally_class_show(const struct shunt_qos_class *class,
			    const struct shunt_qos_tally *tally, struct shunt_answer *answer)
{
	char achieved[32];

	if (!class->reserve && !class->reserve_share && !tally->taken)
		return;
	shunt_answer_put(
		answer,
		"    reserved %llu tokens of this period; missed in %u of %u periods; had %s in the last\n",
		N(tally->reserved), tally->missed, tally->periods,
		shunt_qos_rate_text(tally->achieved, achieved, sizeof(achieved)));
	shunt_answer_put(
		answer,
		"    tokens: %llu granted, %llu taken, %llu of them from the pool, %llu returned, %llu converted\n",
		N(tally->granted), N(tally->taken), N(tally->pooled), N(tally->returned),
		N(tally->converted));
	if (tally->refused)
		shunt_answer_put(answer, "    %u clients have no reservation: it did not fit\n",
				 tally->refused);
	if (tally->unused_in_a_row >= SHUNT_TALLY_ALERT)
		shunt_answer_put(answer,
				 "    has not used its reservation for %u periods: less would do\n",
				 tally->unused_in_a_row);
}

void shunt_tally_node_show(const struct shunt_qos_rules *rules, const struct shunt_qos_node *node,
			   struct shunt_answer *answer)
{
	if (!node->capacity)
		shunt_answer_put(answer, "capacity %s: not known yet; monitor %s\n",
				 kind_name(rules), monitor_name(node));
	else
		shunt_answer_put(
			answer,
			"capacity %s: %llu tokens in period %llu of %u ms (mean %llu, sigma %llu); pool %llu; monitor %s\n",
			kind_name(rules), N(node->capacity), N(node->period), rules->period_ms,
			N(node->mean), N(node->sigma), N(node->pool), monitor_name(node));
}

void shunt_tally_periods_show(const struct shunt_qos_rules *rules,
			      const struct shunt_qos_node *node, struct shunt_answer *answer)
{
	const struct shunt_qos_period *period;

	shunt_answer_put(answer, "period  capacity");
	for (uint32_t i = 0; i < rules->count; i++)
		shunt_answer_put(answer, "  %s", rules->classes[i].name);
	shunt_answer_put(answer, "  (tokens taken/reserved)\n");
	for (uint32_t n = 0; (period = shunt_tally_period(node, n)); n++) {
		shunt_answer_put(answer, "%6llu  %8llu", N(period->number), N(period->capacity));
		for (uint32_t i = 0; i < rules->count; i++)
			shunt_answer_put(answer, "  %llu/%llu", N(period->taken[i]),
					 N(period->reserved[i]));
		shunt_answer_put(answer, "\n");
	}
}
