/* SPDX-License-Identifier: MIT */
/* The result of shunt advise as JSON. */
#include "tools/advise/advise.h"

#include <math.h>
#include <unistd.h>

#include "core/api.h"
#include "tools/common/output.h"

static json_t *number_json(double number)
{
	return isnan(number) ? json_null() : json_real(number);
}

static json_t *runs_json(const struct advise_pairs *pairs, int way)
{
	json_t *runs = json_array();

	for (int i = 0; i < pairs->count; i++) {
		const struct advise_run *run = &pairs->runs[way][i];

		json_array_append_new(runs, json_pack("{s:f, s:f, s:f, s:o}", "figure", run->figure,
						      "seconds", run->seconds, "client_cpu_seconds",
						      run->client_cpu, "server_cpu_seconds",
						      number_json(run->server_cpu)));
	}
	return runs;
}

static json_t *ratio_json(const struct advise_pairs *pairs)
{
	struct shunt_spread ratio = advise_pairs_ratio(pairs);

	return json_pack("{s:f, s:f, s:f, s:i, s:i}", "median", ratio.median, "min", ratio.min,
			 "max", ratio.max, "pairs", pairs->count, "agree",
			 advise_pairs_agree(pairs));
}

static json_t *tries_json(const struct advise_result *result)
{
	json_t *tries = json_array();

	for (size_t i = 0; i < result->try_count; i++) {
		const struct advise_try *try = &result->tries[i];
		json_t *object = json_pack("{s:s, s:s}", "settings", try->cause.settings, "because",
					   try->cause.text);

		if (try->failed)
			json_object_set_new(object, "failed", json_string(try->why));
		else
			json_object_update_new(object,
					       json_pack("{s:s, s:o}", "verdict",
							 advise_verdict_words[try->pairs.verdict],
							 "ratio", ratio_json(&try->pairs)));
		json_array_append_new(tries, object);
	}
	return tries;
}

static void add_word(void *array, const char *text)
{
	json_array_append_new(array, json_string(text));
}

static json_t *share_json(const struct shunt_share *share)
{
	if (!share->known)
		return json_pack("{s:n, s:s}", "share", "reason", share->why);
	return json_pack("{s:f, s:s}", "share", share->share, "of",
			 share->late ? "bytes after the first 256 KiB" : "all bytes");
}

void advise_json(const struct advise_result *result)
{
	const struct advise_bench *bench = result->bench;
	const json_t *reasons = json_object_get(result->pairs.client, "reasons");
	json_t *words = json_array(), *root;

	advise_words(result, add_word, words);
	root = json_pack("{s:i, s:s, s:i, s:s, s:s, s:o, s:s, s:b, s:o, s:o, s:o, s:O?, s:o, s:o}",
			 "schema", SHUNT_JSON_SCHEMA, "version", PACKAGE_VERSION, "processors",
			 (int)sysconf(_SC_NPROCESSORS_ONLN), "command", result->command, "verdict",
			 advise_verdict_words[result->pairs.verdict], "ratio",
			 ratio_json(&result->pairs), "unit", advise_unit(bench), "lower_is_better",
			 advise_is_lower(bench), "tcp", runs_json(&result->pairs, 0), "shunt",
			 runs_json(&result->pairs, 1), "link", share_json(&result->share),
			 "reasons", reasons, "tried", tries_json(result), "advice", words);
	shunt_print_json(stdout, root, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
	json_decref(root);
}
