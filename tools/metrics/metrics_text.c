/* SPDX-License-Identifier: MIT */
/* The lines of a text of metrics. */
#include <string.h>

#include "tools/metrics/metrics.h"
#include "tools/common/output.h"

static const char *const types[] = {
	[SHUNT_COUNTER] = "counter", [SHUNT_GAUGE] = "gauge", [SHUNT_HISTOGRAM] = "histogram"
};

static const char *suffix_of(const struct shunt_metric *metric)
{
	return metric->type == SHUNT_COUNTER ? "_total" : "";
}

/* shunt_escape() leaves backslashes, and no other byte but quotes that a label would have to escape. */
bool shunt_metrics_label(const json_t *value, char buf[SHUNT_METRICS_LABEL])
{
	char text[SHUNT_METRICS_LABEL];
	size_t length = 0;

	if (json_is_integer(value)) {
		snprintf(buf, SHUNT_METRICS_LABEL, "%lld", (long long)json_integer_value(value));
		return true;
	}
	if (!json_is_string(value) || json_string_length(value) >= SHUNT_METRICS_LABEL)
		return false;
	shunt_escape(json_string_value(value), text, sizeof(text));
	if (strlen(text) < json_string_length(value) || strlen(text) > SHUNT_METRICS_LABEL - 5)
		return false;
	for (const char *c = text; *c; c++) {
		if (length + 3 > SHUNT_METRICS_LABEL)
			return false;
		if (*c == '"' || *c == '\\')
			buf[length++] = '\\';
		buf[length++] = *c;
	}
	buf[length] = '\0';
	return true;
}

void shunt_metrics_head(FILE *file, const struct shunt_metric *metric,
			enum shunt_metrics_format format)
{
	const char *suffix = format == SHUNT_METRICS_OPEN ? "" : suffix_of(metric);

	fprintf(file, "# HELP %s%s %s\n# TYPE %s%s %s\n", metric->name, suffix, metric->help,
		metric->name, suffix, types[metric->type]);
}

void shunt_metrics_line(FILE *file, const struct shunt_metric *metric, const char *suffix,
			const char *labels, json_int_t number)
{
	long long n = number;

	fprintf(file, "%s%s", metric->name, *suffix ? suffix : suffix_of(metric));
	if (*labels)
		fprintf(file, "{%s}", labels);
	if (metric->scale == SHUNT_UNIT || metric->type == SHUNT_HISTOGRAM)
		fprintf(file, " %lld\n", n);
	else if (metric->scale == SHUNT_MS)
		fprintf(file, " %lld.%03lld\n", n / 1000, n % 1000);
	else
		fprintf(file, " %lld.%09lld\n", n / 1000000000, n % 1000000000);
}
