/* SPDX-License-Identifier: MIT */
/* Causes that the statistics of a run show. */
#include "tools/advise/advise.h"

#include <string.h>

#include "core/base/reason.h"

static const struct {
	const char *sign, *of;
	double least;
	struct advise_cause cause;
} causes_known[] = {
#define CAUSE(sign, of, least, settings, text) { sign, of, least, { settings, text } },
#include "tools/advise/advise_table.h"
#undef CAUSE
};

double advise_brief(const json_t *signs)
{
	const json_t *totals = json_object_get(signs, "totals");
	double brief = (double)(json_integer_value(json_object_get(totals, "streams")) -
				json_integer_value(json_object_get(totals, "linked")));
	const char *key;
	json_t *value;

	json_object_foreach(json_object_get(signs, "reasons"), key,
			    value) if (strcmp(key, shunt_reason_text(SHUNT_REASON_CLOSED)))
		brief -= (double)json_integer_value(value);
	return brief > 0 ? brief : 0;
}

/* "stalls.ring" of one end, or "brief". */
static double number_of(const json_t *signs, const char *name)
{
	const char *point = strchr(name, '.');
	char part[32];

	if (!point)
		return advise_brief(signs);
	snprintf(part, sizeof(part), "%.*s", (int)(point - name), name);
	return (double)json_integer_value(json_object_get(json_object_get(signs, part), point + 1));
}

static bool shows(const json_t *signs, size_t row)
{
	double sign = number_of(signs, causes_known[row].sign);
	double of = *causes_known[row].of ? number_of(signs, causes_known[row].of) : 1;

	return of > 0 && sign > causes_known[row].least * of;
}

size_t advise_causes(const json_t *client, const json_t *server,
		     struct advise_cause causes[ADVISE_CAUSES_MAX])
{
	size_t count = 0;

	for (size_t i = 0;
	     i < sizeof(causes_known) / sizeof(causes_known[0]) && count < ADVISE_CAUSES_MAX; i++) {
		bool again = false;

		for (size_t j = 0; j < count; j++)
			again |= !strcmp(causes[j].settings, causes_known[i].cause.settings);
		if (!again && (shows(client, i) || shows(server, i)))
			causes[count++] = causes_known[i].cause;
	}
	return count;
}

const char *advise_bound(const json_t *client, const json_t *server)
{
	const json_t *ends[2] = { json_object_get(client, "stalls"),
				  json_object_get(server, "stalls") };
	json_int_t most = 0;
	const char *bound = NULL, *key;
	json_t *value;

	for (int i = 0; i < 2; i++) {
		json_object_foreach((json_t *)ends[i], key, value)
		{
			if (json_integer_value(value) > most) {
				most = json_integer_value(value);
				bound = key;
			}
		}
	}
	return bound;
}
