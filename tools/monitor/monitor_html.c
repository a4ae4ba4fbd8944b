/* SPDX-License-Identifier: MIT */
/* Text and figures in HTML. */
#include <stdlib.h>
#include <string.h>

#include "tools/common/html.h"
#include "tools/monitor/monitor.h"
#include "tools/common/output.h"

#define TEXT_MAX 256

void monitor_html(FILE *file, const char *text)
{
	char plain[TEXT_MAX];

	shunt_html_text(file, shunt_escape(text ? text : "", plain, sizeof(plain)));
}

void monitor_html_member(FILE *file, const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	if (json_is_integer(value))
		fprintf(file, "%lld", (long long)json_integer_value(value));
	else if (json_is_string(value))
		monitor_html(file, json_string_value(value));
}

void monitor_html_amount(FILE *file, double amount, const char *unit)
{
	static const char prefixes[] = " kMGTPE";
	int prefix = 0;

	for (; amount >= 999.5 && prefix < 6; prefix++)
		amount /= 1000;
	fprintf(file, prefix && amount < 99.95 ? "%.1f %.*s%s" : "%.0f %.*s%s", amount, prefix > 0,
		prefixes + prefix, unit);
}
