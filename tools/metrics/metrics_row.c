/* SPDX-License-Identifier: MIT */
/* Samples of one process for one row of the table. */
#include <stdint.h>
#include <string.h>

#include "tools/metrics/metrics.h"

#define LABELS_ROOM 1024

/* ---- looking up ---- */

static const json_t *member_of(const json_t *object, const char *name, size_t length)
{
	char key[64];

	snprintf(key, sizeof(key), "%.*s", (int)length, name);
	return json_object_get(object, key);
}

static const json_t *find(const json_t *object, const char *path)
{
	while (object && path && *path) {
		size_t length = strcspn(path, ".");

		object = member_of(object, path, length);
		path += length + (path[length] == '.');
	}
	return object;
}

/* -1: none. */
static json_int_t number_at(const json_t *object, const char *path)
{
	const json_t *number = find(object, path);

	if (json_is_boolean(number))
		return json_is_true(number);
	return json_is_integer(number) && json_integer_value(number) >= 0 ?
		       json_integer_value(number) :
		       -1;
}

/* ---- labels ---- */

struct labels {
	char text[LABELS_ROOM];
	size_t length;
	bool whole;
};

static void append(struct labels *labels, const char *name, size_t bytes, const char *value)
{
	size_t room = sizeof(labels->text) - labels->length;
	int wanted = snprintf(labels->text + labels->length, room, "%s%.*s=\"%s\"",
			      labels->length ? "," : "", (int)bytes, name, value);

	if (wanted < 0 || (size_t)wanted >= room)
		labels->whole = false;
	else
		labels->length += (size_t)wanted;
}

static void begin(struct labels *labels, const struct shunt_metrics_row *row)
{
	*labels = (struct labels) { .whole = true };
	labels->length = (size_t)snprintf(labels->text, sizeof(labels->text), "%s%s%s", row->owner,
					  row->metric->fixed ? "," : "",
					  row->metric->fixed ? row->metric->fixed : "");
}

/* Labels of `names`, "LABEL=MEMBER LABEL=MEMBER". A member that is missing or too long makes an empty one. */
static void append_members(struct labels *labels, const json_t *object, const char *names)
{
	while (names && *names) {
		size_t length = strcspn(names, "="), member = strcspn(names + length + 1, " ");
		char value[SHUNT_METRICS_LABEL];

		if (!shunt_metrics_label(member_of(object, names + length + 1, member), value))
			*value = '\0';
		append(labels, names, length, value);
		names += length + 1 + member;
		names += *names == ' ';
	}
}

/* ---- shapes ---- */

static void put_line(const struct shunt_metrics_row *row, const char *suffix,
		     const struct labels *labels, json_int_t number)
{
	if (number < 0 || !labels->whole)
		return;
	if (!*row->begun)
		shunt_metrics_head(row->file, row->metric, row->format);
	*row->begun = true;
	shunt_metrics_line(row->file, row->metric, suffix, labels->text, number);
}

static void put(const struct shunt_metrics_row *row, const struct labels *labels, json_int_t number)
{
	put_line(row, "", labels, number);
}

static void put_one(const struct shunt_metrics_row *row)
{
	json_int_t number = number_at(row->process, row->metric->path);
	json_int_t less = row->metric->less ? number_at(row->process, row->metric->less) : 0;
	struct labels labels;

	begin(&labels, row);
	if (number >= 0)
		put(row, &labels, less > 0 ? number - less : number);
}

/* `before`: the labels that all keys have. */
static void put_object(const struct shunt_metrics_row *row, const struct labels *before,
		       const json_t *object)
{
	size_t count = 0;
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)object, key, value)
	{
		json_t *name = json_string(key);
		char text[SHUNT_METRICS_LABEL];
		struct labels labels = *before;

		if (count < SHUNT_METRICS_NAMES && shunt_metrics_label(name, text)) {
			append(&labels, row->metric->key, strlen(row->metric->key), text);
			put(row, &labels, number_at(value, ""));
			count++;
		}
		json_decref(name);
	}
}

static void put_keys(const struct shunt_metrics_row *row)
{
	struct labels labels;

	begin(&labels, row);
	put_object(row, &labels, find(row->process, row->metric->path));
}

/* How many of an array's elements are looked at. */
static size_t elements(const json_t *array)
{
	size_t count = json_array_size(array);

	return count < SHUNT_METRICS_ELEMENTS ? count : SHUNT_METRICS_ELEMENTS;
}

/* An element that has the labels of one before it has no line. */
static void put_element(const struct shunt_metrics_row *row, const json_t *element)
{
	struct labels labels;

	begin(&labels, row);
	append_members(&labels, element, row->metric->labels);
	if (json_object_get(row->seen, labels.text))
		return;
	json_object_set_new(row->seen, labels.text, json_true());
	if (row->metric->shape == SHUNT_EACH_KEYS)
		put_object(row, &labels, find(element, row->metric->member));
	else
		put(row, &labels, number_at(element, row->metric->member));
}

static void put_each(struct shunt_metrics_row *row)
{
	const json_t *array = find(row->process, row->metric->path);
	size_t count = elements(array);

	if (!count)
		return;
	row->seen = json_object();
	for (size_t i = 0; i < count; i++)
		put_element(row, json_array_get(array, i));
	json_decref(row->seen);
}

/* No element has the number: no line. */
static void put_sum(const struct shunt_metrics_row *row)
{
	const json_t *array = find(row->process, row->metric->path);
	json_int_t sum = -1;
	struct labels labels;

	for (size_t i = 0; i < json_array_size(array); i++) {
		json_int_t number = number_at(json_array_get(array, i), row->metric->member);

		if (number < 0 || number > INT64_MAX / 2 || sum > INT64_MAX / 2)
			continue;
		sum = sum < 0 ? number : sum + number;
	}
	begin(&labels, row);
	put(row, &labels, sum);
}

static void put_count(const struct shunt_metrics_row *row)
{
	const json_t *array = find(row->process, row->metric->path);
	json_int_t count = 0;
	struct labels labels;

	if (!json_is_array(array))
		return;
	for (size_t i = 0; i < json_array_size(array); i++) {
		const char *text = json_string_value(
			find(json_array_get(array, i), row->metric->member));

		count += text && !strcmp(text, row->metric->labels);
	}
	begin(&labels, row);
	put(row, &labels, count);
}

static void put_count_keys(const struct shunt_metrics_row *row)
{
	const json_t *array = find(row->process, row->metric->path);
	json_t *counts = json_object();
	struct labels labels;

	for (size_t i = 0; i < json_array_size(array); i++) {
		const char *text = json_string_value(
			find(json_array_get(array, i), row->metric->member));
		json_int_t before = text ? json_integer_value(json_object_get(counts, text)) : 0;

		if (text && *text)
			json_object_set_new(counts, text, json_integer(before + 1));
	}
	begin(&labels, row);
	put_object(row, &labels, counts);
	json_decref(counts);
}

static void put_info(const struct shunt_metrics_row *row)
{
	struct labels labels;

	begin(&labels, row);
	append_members(&labels, row->process, row->metric->labels);
	put(row, &labels, 1);
}

/* Bucket i has values below 2^(i+1), so that what `le` names is the last of them; the last one has no end. */
static void put_bucket(const struct shunt_metrics_row *row, size_t i, json_int_t sum)
{
	uint64_t last = (2ULL << i) - 1;
	struct labels labels;
	char le[48];

	if (row->metric->scale == SHUNT_NS)
		snprintf(le, sizeof(le), "%llu.%09llu", (unsigned long long)last / 1000000000,
			 (unsigned long long)last % 1000000000);
	else
		snprintf(le, sizeof(le), "%llu.0", (unsigned long long)last);
	begin(&labels, row);
	append(&labels, "le", 2, le);
	put_line(row, "_bucket", &labels, sum);
}

static void put_buckets(const struct shunt_metrics_row *row)
{
	const json_t *array = find(row->process, row->metric->path);
	size_t count = json_array_size(array);
	struct labels labels;
	json_int_t sum = 0;

	if (!count || count > SHUNT_METRICS_BUCKETS)
		return;
	for (size_t i = 0; i < count; i++) {
		json_int_t more = number_at(json_array_get(array, i), "");

		sum += more > 0 && more < INT64_MAX / SHUNT_METRICS_BUCKETS ? more : 0;
		if (i >= row->metric->first && i < row->metric->last && i + 1 < count)
			put_bucket(row, i, sum);
	}
	begin(&labels, row);
	append(&labels, "le", 2, "+Inf");
	put_line(row, "_bucket", &labels, sum);
	begin(&labels, row);
	put_line(row, "_count", &labels, sum);
}

void shunt_metrics_row(struct shunt_metrics_row *row)
{
	switch (row->metric->shape) {
	case SHUNT_ONE:
		put_one(row);
		break;
	case SHUNT_KEYS:
		put_keys(row);
		break;
	case SHUNT_EACH:
	case SHUNT_EACH_KEYS:
		put_each(row);
		break;
	case SHUNT_SUM:
		put_sum(row);
		break;
	case SHUNT_COUNT:
		put_count(row);
		break;
	case SHUNT_COUNT_KEYS:
		put_count_keys(row);
		break;
	case SHUNT_BUCKETS:
		put_buckets(row);
		break;
	case SHUNT_INFO:
		put_info(row);
		break;
	}
}
