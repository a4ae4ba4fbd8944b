/* SPDX-License-Identifier: MIT */
#include "core/admin/events.h"
#include <limits.h>
#include "core/admin/command.h"
#include "core/base/answer.h"
#include "core/base/json.h"
#include "core/base/program.h"
#include "core/engine.h"
#include "core/trace/slow.h"

#define SCHEMA 1

int shunt_events_command(struct shunt_engine *engine, int count, char **words,
		      struct shunt_answer *answer)
{
	long after = count ? shunt_answer_number(words[0], LONG_MAX) : 0;
	struct shunt_json json;
	size_t bytes;
	char *text;

	if (after < 0) {
		shunt_answer_put(answer, "'%s' is no number of an event\n", words[0]);
		return -1;
	}
	shunt_json_begin(&json);
	shunt_json_put(&json, "{\"schema\":%d,\"pid\":%d,\"program\":", SCHEMA,
		       (int)engine->forks.pid);
	shunt_json_string(&json, shunt_program_name());
	shunt_json_put(&json, ",\"now_ns\":%llu", (unsigned long long)shunt_now(engine));
	json.comma = true;
	shunt_json_number(&json, "poll_warn_us", shunt_config_live(&engine->config.poll_warn_us));
	shunt_json_number(&json, "slow_us", shunt_config_live(&engine->config.slow_us));
	shunt_json_put(&json, ",");
	shunt_slow_json(&engine->steps.log, (uint64_t)after, &json);
	shunt_json_put(&json, "}\n");
	text = shunt_json_end(&json, &bytes);
	if (!text) {
		shunt_answer_put(answer, "out of memory\n");
		return -1;
	}
	shunt_answer_give(answer, text, bytes);
	return 0;
}
