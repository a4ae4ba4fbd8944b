/* SPDX-License-Identifier: MIT */
/* Says rules of classes again, as a text that is parsed to the same. */
#include <string.h>
#include "core/base/text.h"
#include "core/qos/rules.h"

static void put_rate(struct shunt_text *text, const char *before, uint64_t rate)
{
	char said[32];

	if (rate)
		shunt_text_put(text, " %s%s", before,
			       shunt_qos_exact_text(rate, said, sizeof(said)));
}

static void put_share(struct shunt_text *text, const char *before, uint32_t share)
{
	shunt_text_put(text, " %s%u.%u%%", before, share / 10, share % 10);
}

static void put_host(struct shunt_text *text, const struct shunt_qos_class *class)
{
	char host[SHUNT_NETWORK_TEXT];

	shunt_text_put(text, " host=%s", shunt_network_text(&class->host, host, sizeof(host)));
}

static void put_class(struct shunt_text *text, const struct shunt_qos_class *class)
{
	shunt_text_put(text, "class %s", class->name);
	if (class->by & SHUNT_QOS_BY_USER && class->user[0])
		shunt_text_put(text, " user=%s", class->user);
	else if (class->by & SHUNT_QOS_BY_USER)
		shunt_text_put(text, " user=%u", class->uid);
	if (class->by & SHUNT_QOS_BY_PROGRAM)
		shunt_text_put(text, " program=%s", class->program);
	if (class->by & SHUNT_QOS_BY_HOST)
		put_host(text, class);
	if (class->by & SHUNT_QOS_BY_PORT)
		shunt_text_put(text, " port=%u", class->port);
	if (class->by & SHUNT_QOS_BY_DECLARED)
		shunt_text_put(text, " declared=%s", class->declared);
	put_rate(text, "reserve=", class->reserve);
	if (class->reserve_share)
		put_share(text, "reserve=", class->reserve_share);
	put_rate(text, "limit=", class->limit);
	shunt_text_put(text, "\n");
}

static void put_capacity(struct shunt_text *text, const struct shunt_qos_rules *rules)
{
	if (rules->capacity_kind == SHUNT_QOS_CAPACITY_NONE)
		return;
	shunt_text_put(text, "capacity%s",
		       rules->capacity_kind == SHUNT_QOS_CAPACITY_FIXED ? "" : " auto");
	put_rate(text, "", rules->capacity);
	if (rules->capacity_kind == SHUNT_QOS_CAPACITY_AUTO_FROM)
		put_share(text, "", rules->sigma);
	put_rate(text, "local=", rules->local);
	shunt_text_put(text, "\n");
}

void shunt_qos_text(const struct shunt_qos_rules *rules, char said[SHUNT_QOS_TEXT])
{
	struct shunt_text text;

	shunt_text_begin(&text, said, SHUNT_QOS_TEXT);
	shunt_text_put(&text, "period %ums\n", rules->period_ms);
	put_capacity(&text, rules);
	if (rules->batch != SHUNT_QOS_BATCH)
		shunt_text_put(&text, "batch %u\n", rules->batch);
	for (uint32_t i = 0; i < rules->count; i++)
		put_class(&text, &rules->classes[i]);
}
