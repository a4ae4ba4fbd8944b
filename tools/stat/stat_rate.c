/* SPDX-License-Identifier: MIT */
/* Rates between two looks. */
#include "tools/stat/stat.h"

#include <string.h>

const struct shunt_stat *shunt_look_find(const struct shunt_look *before, const struct shunt_stat *now)
{
	for (size_t i = 0; i < before->count; i++) {
		const struct shunt_stat *then = &before->processes[i];

		if (then->host == now->host && then->process && now->at > then->at &&
		    !strcmp(then->door.identity, now->door.identity))
			return then;
	}
	return NULL;
}

double shunt_rate(const json_t *before, const json_t *now, const char *key, double seconds)
{
	double grown = (double)json_integer_value(json_object_get(now, key)) -
		       (double)json_integer_value(json_object_get(before, key));

	return grown > 0 && seconds > 0 ? grown / seconds : 0;
}

static bool same(const json_t *a, const json_t *b, const char *key)
{
	return json_equal(json_object_get(a, key), json_object_get(b, key));
}

/* A descriptor's number alone may be another connection's by now. */
const json_t *shunt_rate_stream(const json_t *before, const json_t *stream)
{
	const json_t *then;
	size_t i;

	json_array_foreach(json_object_get(before, "streams"), i, then)
		if (same(then, stream, "fd") && same(then, stream, "local") && same(then, stream, "peer"))
			return then;
	return NULL;
}
