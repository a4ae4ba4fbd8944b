/* SPDX-License-Identifier: MIT */
/*
 * A flow as text, from the command to the end that makes it, and as a greeting to the other end.
 * The sizes of messages.
 */
#include "tools/perf/end/perf_end.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int perf_number(const char *text, uint64_t min, uint64_t max, uint64_t *number)
{
	unsigned long long n;
	uint64_t unit = 1;
	char *end;

	if (!isdigit((unsigned char)*text) || strlen(text) > 12)
		return -1;
	n = strtoull(text, &end, 10);
	if (*end == 'K' || *end == 'k')
		unit = 1 << 10;
	else if (*end == 'M' || *end == 'm')
		unit = 1 << 20;
	if (end[unit > 1] || n * unit < min || n * unit > max)
		return -1;
	*number = n * unit;
	return 0;
}

void perf_flow_text(const struct perf_flow *flow, char text[PERF_FLOW_TEXT_MAX])
{
	snprintf(text, PERF_FLOW_TEXT_MAX, "%u:%u:%u:%u:%u:%u:%u", flow->sizes.request,
		 flow->sizes.reply, flow->sizes.writes, flow->burst, flow->depth, flow->interval_us,
		 flow->conns);
}

int perf_flow_parse(const char *text, struct perf_flow *flow)
{
	const struct {
		uint32_t *field;
		uint64_t min, max;
	} fields[] = {
		{ &flow->sizes.request, 1, PERF_LARGE_MAX },
		{ &flow->sizes.reply, 0, PERF_LARGE_MAX },
		{ &flow->sizes.writes, 0, 99 },
		{ &flow->burst, 0, PERF_DEPTH_MAX },
		{ &flow->depth, 1, PERF_DEPTH_MAX },
		{ &flow->interval_us, 0, PERF_INTERVAL_MAX },
		{ &flow->conns, 0, PERF_CONNS_MAX },
	};
	char copy[PERF_FLOW_TEXT_MAX], *rest = copy;

	if (strlen(text) >= sizeof(copy))
		return -1;
	strcpy(copy, text);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		const char *word = strsep(&rest, ":");
		uint64_t number;

		if (!word || perf_number(word, fields[i].min, fields[i].max, &number))
			return -1;
		*fields[i].field = (uint32_t)number;
	}
	/* A stream has no replies whose coming could end a cluster. */
	return rest || (!flow->sizes.reply && (flow->burst || flow->sizes.writes)) ? -1 : 0;
}

bool perf_is_write(const struct perf_sizes *sizes, uint64_t request)
{
	uint64_t of = request % 100;

	return (of + 1) * sizes->writes / 100 > of * sizes->writes / 100;
}

uint32_t perf_size(const struct perf_sizes *sizes, enum perf_direction direction, uint64_t message)
{
	bool swapped = sizes->writes && perf_is_write(sizes, message);

	return (direction == PERF_REQUESTS) != swapped ? sizes->request : sizes->reply;
}

void perf_greeting_make(struct perf_greeting *greeting, const struct perf_sizes *sizes)
{
	memset(greeting, 0, sizeof(*greeting));
	memcpy(greeting->magic, PERF_MAGIC, sizeof(greeting->magic));
	greeting->version = PERF_VERSION;
	greeting->sizes = *sizes;
	greeting->conns = 1;
}

bool perf_greeting_waits(const struct perf_greeting *greeting)
{
	return greeting->work.buffers != PERF_BUFFERS_TABLE;
}

bool perf_greeting_valid(const struct perf_greeting *greeting)
{
	const struct perf_sizes *sizes = &greeting->sizes;

	return !memcmp(greeting->magic, PERF_MAGIC, sizeof(greeting->magic)) &&
	       greeting->version == PERF_VERSION && greeting->index < PERF_CONNS_MAX &&
	       sizes->request >= 1 && sizes->request <= PERF_LARGE_MAX &&
	       sizes->reply <= PERF_LARGE_MAX && sizes->writes < 100 &&
	       (sizes->reply || !sizes->writes) && greeting->skip <= PERF_MESSAGE_MAX &&
	       greeting->conns >= 1 && greeting->conns <= PERF_CONNS_MAX &&
	       perf_work_valid(&greeting->work);
}

void perf_account_add(struct perf_account *sum, const struct perf_account *account)
{
	sum->touched += account->touched;
	sum->dummies += account->dummies;
	sum->scanned += account->scanned;
	sum->checked += account->checked;
}
