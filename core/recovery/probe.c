/* SPDX-License-Identifier: MIT */
#include "core/recovery/probe.h"
#include "core/base/answer.h"
#include "core/base/json.h"
#include "core/lane/wr.h"
#include "core/recovery/keepalive.h"
#include "core/service.h"

#define MOST 64 /* links that one command asks; the others are not in the answer */

/* One link that is asked. The service thread alone ends links, so it lives as long as the command. */
struct probe {
	struct shunt_link *link;
	uint64_t took; /* ns; 0: not answered yet */
};

static bool can_answer(struct shunt_link *link)
{
	return link->lane_count && atomic_load(&link->state) == SHUNT_LINK_UP &&
	       !atomic_load(&link->failed);
}

/* A WRITE of an earlier command that is still under way is the one that is waited for. */
static void ask(struct shunt_lane *lane)
{
	uint64_t number;

	shunt_lock_take(&lane->lock);
	if (!(lane->asked_at && shunt_keepalive_waits(lane))) {
		lane->asked_at = shunt_now(lane->link->engine);
		if (shunt_wr_probe(lane, &number))
			lane->probe = number;
		else
			lane->asked_at = 0;
	}
	shunt_lock_leave(&lane->lock);
	shunt_lane_kick(lane); /* for a thread that has found it locked */
}

/* How many have not been answered. */
static int look(struct probe *probes, int count)
{
	int missing = 0;

	for (int i = 0; i < count; i++) {
		struct shunt_lane *lane = &probes[i].link->lanes[0];

		if (probes[i].took || !lane->asked_at || atomic_load(&lane->failed))
			continue;
		if (atomic_load(&lane->retired) < lane->probe) {
			missing++;
			continue;
		}
		probes[i].took = shunt_now(lane->link->engine) - lane->asked_at;
		lane->asked_at = 0;
	}
	return missing;
}

static void put(struct shunt_json *json, const struct probe *probe)
{
	const struct shunt_link *link = probe->link;
	uint64_t begun = link->hello_by - SHUNT_HELLO_NS;

	shunt_json_put(json, "{\"device\":");
	shunt_json_string(json, link->device->context->device->name);
	json->comma = true;
	shunt_json_number(json, "peer", link->peer_pid);
	shunt_json_number(json, "lanes", link->lane_count);
	shunt_json_number(json, "setup_ns", link->line.up_at - begun);
	shunt_json_put(json, ",\"initiator\":%s,\"write_ns\":", link->initiator ? "true" : "false");
	if (probe->took)
		shunt_json_put(json, "%llu}", (unsigned long long)probe->took);
	else
		shunt_json_put(json, "null}");
}

static int tell(const struct probe *probes, int count, struct shunt_answer *answer)
{
	struct shunt_json json;
	size_t bytes;
	char *text;

	shunt_json_begin(&json);
	shunt_json_put(&json, "{\"schema\":%d,\"links\":[", SHUNT_JSON_SCHEMA);
	for (int i = 0; i < count; i++) {
		if (i)
			shunt_json_put(&json, ",");
		put(&json, &probes[i]);
	}
	shunt_json_put(&json, "]}\n");
	text = shunt_json_end(&json, &bytes);
	if (!text) {
		shunt_answer_put(answer, "out of memory\n");
		return -1;
	}
	shunt_answer_give(answer, text, bytes);
	return 0;
}

int shunt_probe_command(struct shunt_engine *engine, int count, char **words,
			struct shunt_answer *answer)
{
	uint64_t until = shunt_now(engine) + SHUNT_PROBE_WAIT_NS;
	struct probe probes[MOST];

	(void)words;
	count = 0;
	for (struct shunt_link *link = engine->service->links; link && count < MOST;
	     link = link->next)
		if (can_answer(link)) {
			ask(&link->lanes[0]);
			probes[count++] = (struct probe) { .link = link };
		}
	do
		shunt_group_poll_fully(&engine->group);
	while (look(probes, count) && shunt_now(engine) < until);
	return tell(probes, count, answer);
}
