/* SPDX-License-Identifier: MIT */
/* A flow as text, on its way from the command to the end that makes it. */
#include "tools/perf_end.h"

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
	snprintf(text, PERF_FLOW_TEXT_MAX, "%u:%u:%u:%u:%u:%u", flow->request, flow->reply, flow->burst,
		 flow->depth, flow->interval_us, flow->conns);
}

int perf_flow_parse(const char *text, struct perf_flow *flow)
{
	const struct {
		uint32_t *field;
		uint64_t min, max;
	} fields[] = {
		{ &flow->request, 1, PERF_MESSAGE_MAX }, { &flow->reply, 0, PERF_MESSAGE_MAX },
		{ &flow->burst, 0, PERF_DEPTH_MAX }, { &flow->depth, 1, PERF_DEPTH_MAX },
		{ &flow->interval_us, 0, PERF_INTERVAL_MAX }, { &flow->conns, 1, PERF_CONNS_MAX },
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
	return rest || (!flow->reply && flow->burst) ? -1 : 0;
}
