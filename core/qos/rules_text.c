/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "core/qos/rules.h"

struct text {
	char *to;
	size_t length, room;
};

__attribute__((format(printf, 2, 3))) static void put(struct text *text, const char *format, ...)
{
	va_list args;
	int wanted;

	va_start(args, format);
	wanted = vsnprintf(text->to + text->length, text->room - text->length, format, args);
	va_end(args);
	if (wanted < 0 || (size_t)wanted >= text->room - text->length)
		text->length = text->room - 1;
	else
		text->length += (size_t)wanted;
}

static void put_rate(struct text *text, const char *before, uint64_t rate)
{
	char said[32];

	if (rate)
		put(text, " %s%s", before, shunt_qos_exact_text(rate, said, sizeof(said)));
}

static void put_share(struct text *text, const char *before, uint32_t share)
{
	put(text, " %s%u.%u%%", before, share / 10, share % 10);
}

static void put_host(struct text *text, const struct shunt_qos_class *class)
{
	char host[SHUNT_NETWORK_TEXT];

	put(text, " host=%s", shunt_network_text(&class->host, host, sizeof(host)));
}

static void put_class(struct text *text, const struct shunt_qos_class *class)
{
	put(text, "class %s", class->name);
	if (class->by & SHUNT_QOS_BY_USER && class->user[0])
		put(text, " user=%s", class->user);
	else if (class->by & SHUNT_QOS_BY_USER)
		put(text, " user=%u", class->uid);
	if (class->by & SHUNT_QOS_BY_PROGRAM)
		put(text, " program=%s", class->program);
	if (class->by & SHUNT_QOS_BY_HOST)
		put_host(text, class);
	if (class->by & SHUNT_QOS_BY_PORT)
		put(text, " port=%u", class->port);
	if (class->by & SHUNT_QOS_BY_DECLARED)
		put(text, " declared=%s", class->declared);
	put_rate(text, "reserve=", class->reserve);
	if (class->reserve_share)
		put_share(text, "reserve=", class->reserve_share);
	put_rate(text, "limit=", class->limit);
	put(text, "\n");
}

static void put_capacity(struct text *text, const struct shunt_qos_rules *rules)
{
	if (rules->capacity_kind == SHUNT_QOS_CAPACITY_NONE)
		return;
	put(text, "capacity%s", rules->capacity_kind == SHUNT_QOS_CAPACITY_FIXED ? "" : " auto");
	put_rate(text, "", rules->capacity);
	if (rules->capacity_kind == SHUNT_QOS_CAPACITY_AUTO_FROM)
		put_share(text, "", rules->sigma);
	put_rate(text, "local=", rules->local);
	put(text, "\n");
}

void shunt_qos_text(const struct shunt_qos_rules *rules, char said[SHUNT_QOS_TEXT])
{
	struct text text = { .to = said, .room = SHUNT_QOS_TEXT };

	put(&text, "period %ums\n", rules->period_ms);
	put_capacity(&text, rules);
	if (rules->batch != SHUNT_QOS_BATCH)
		put(&text, "batch %u\n", rules->batch);
	for (uint32_t i = 0; i < rules->count; i++)
		put_class(&text, &rules->classes[i]);
}
