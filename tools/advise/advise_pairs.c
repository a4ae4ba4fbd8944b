/* SPDX-License-Identifier: MIT */
/*
 * Pairs of runs. Both ways of a pair see the same machine, and the way that begins alternates. So
 * drift (clocks, caches, other load) favours neither.
 */
#include "tools/advise/advise.h"

#include <math.h>
#include <string.h>

/* Numbers of `from`, added to those of the same name, also in objects below. */
static void add_numbers(json_t *into, const json_t *from, int sign)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)from, key, value)
	{
		json_t *old = json_object_get(into, key);

		if (json_is_integer(value)) {
			json_object_set_new(into, key,
					    json_integer(json_integer_value(old) +
							 sign * json_integer_value(value)));
		} else if (json_is_object(value)) {
			if (!json_is_object(old)) {
				json_object_set_new(into, key, json_object());
				old = json_object_get(into, key);
			}
			add_numbers(old, value, sign);
		}
	}
}

void advise_signs_add(json_t *sum, const json_t *statistics, int sign)
{
	static const char *const names[] = { "counters", "stalls", "reasons", "totals" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const json_t *part = json_object_get(statistics, names[i]);

		if (!json_is_object(part))
			continue;
		if (!json_object_get(sum, names[i]))
			json_object_set_new(sum, names[i], json_object());
		add_numbers(json_object_get(sum, names[i]), part, sign);
	}
}

void advise_pairs_init(struct advise_pairs *pairs)
{
	*pairs = (struct advise_pairs) { .client = json_object(), .server = json_object() };
}

void advise_pairs_free(struct advise_pairs *pairs)
{
	json_decref(pairs->client);
	json_decref(pairs->server);
}

static double ratio_of(const struct advise_bench *bench, const struct advise_run *first,
		       const struct advise_run *second)
{
	double up = advise_is_lower(bench) ? first->figure : second->figure;
	double down = advise_is_lower(bench) ? second->figure : first->figure;

	return down > 0 ? up / down : 1;
}

static int measure_pair(struct advise_bench *bench, const struct advise_way ways[2],
			struct advise_pairs *pairs, char why[SHUNT_WHY_MAX])
{
	int first = pairs->count % 2, rc = 0;

	for (int i = 0; i < 2 && !rc; i++) {
		int way = (first + i) % 2;

		rc = advise_run(bench, &ways[way], &pairs->runs[way][pairs->count],
				way ? pairs->client : NULL, way ? pairs->server : NULL, why);
	}
	if (!rc) {
		pairs->ratios[pairs->count] = ratio_of(bench, &pairs->runs[0][pairs->count],
						       &pairs->runs[1][pairs->count]);
		pairs->count++;
	}
	return rc;
}

int advise_pairs_measure(struct advise_bench *bench, const struct advise_way ways[2],
			 const char *title, struct advise_pairs *pairs, char why[SHUNT_WHY_MAX])
{
	int rc = 0;

	while (!rc && pairs->verdict == ADVISE_MORE) {
		advise_progress(title, pairs, bench->rounds);
		rc = measure_pair(bench, ways, pairs, why);
		if (!rc)
			pairs->verdict = advise_judge(pairs->ratios, pairs->count, bench->rounds);
	}
	advise_progress(NULL, NULL, 0);
	return rc;
}

const char *advise_column_name(const struct advise_bench *bench, enum advise_column column)
{
	const char *unit = advise_unit(bench);
	size_t length = strlen(unit);
	bool rate = length > 2 && !strcmp(unit + length - 2, "/s");

	switch (column) {
	case ADVISE_FIGURE:
		return bench->metric_count ? unit : NULL;
	case ADVISE_SECONDS:
		return "seconds of a run";
	case ADVISE_EACH:
		return !rate		      ? NULL :
		       !strcmp(unit, "bit/s") ? "CPU seconds, per Gbit" :
						"CPU us, per operation";
	case ADVISE_CLIENT:
		return "client's CPU seconds";
	default:
		return "server's CPU seconds";
	}
}

static double value_of(const struct advise_bench *bench, const struct advise_run *run,
		       enum advise_column column)
{
	double operations = run->figure * run->seconds;

	switch (column) {
	case ADVISE_FIGURE:
		return run->figure;
	case ADVISE_SECONDS:
		return run->seconds;
	case ADVISE_EACH:
		return (run->client_cpu + (isnan(run->server_cpu) ? 0 : run->server_cpu)) /
		       operations * (strcmp(advise_unit(bench), "bit/s") ? 1e6 : 1e9);
	case ADVISE_CLIENT:
		return run->client_cpu;
	default:
		return run->server_cpu;
	}
}

struct shunt_spread advise_pairs_spread(const struct advise_bench *bench,
					const struct advise_pairs *pairs, int way,
					enum advise_column column)
{
	double values[ADVISE_PAIRS_MAX];

	for (int i = 0; i < pairs->count; i++)
		values[i] = value_of(bench, &pairs->runs[way][i], column);
	return shunt_spread_of(values, (size_t)pairs->count);
}

struct shunt_spread advise_pairs_ratio(const struct advise_pairs *pairs)
{
	double values[ADVISE_PAIRS_MAX];

	memcpy(values, pairs->ratios, sizeof(values));
	return shunt_spread_of(values, (size_t)pairs->count);
}

int advise_pairs_agree(const struct advise_pairs *pairs)
{
	int up = 0, down = 0;

	for (int i = 0; i < pairs->count; i++) {
		up += pairs->ratios[i] > 1;
		down += pairs->ratios[i] < 1;
	}
	return up > down ? up : down;
}
