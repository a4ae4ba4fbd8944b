/* SPDX-License-Identifier: MIT */
#include "core/admin/stats_lane.h"
#include "core/engine.h"
#include "core/lane/lanes.h"
#include "core/recovery/idle.h"

/* The limit that binds is what was short most. */
static const char *bound_by(const uint64_t *stalls)
{
	int most = SHUNT_LIMIT_NONE;

	for (int i = SHUNT_LIMIT_NONE + 1; i < SHUNT_LIMITS; i++)
		if (stalls[i] > stalls[most])
			most = i;
	return shunt_limit_names[most];
}

void shunt_stats_put_stalls(struct shunt_json *text, const uint64_t *stalls)
{
	shunt_json_put(text, "\"stalls\":{");
	text->comma = false;
	for (int i = SHUNT_LIMIT_NONE + 1; i < SHUNT_LIMITS; i++)
		shunt_json_number(text, shunt_limit_names[i], stalls[i]);
	shunt_json_put(text, "},\"bound_by\":\"%s\",", bound_by(stalls));
}

/* 0: none. */
static uint64_t limit(uint64_t most)
{
	return most == UINT64_MAX ? 0 : most;
}

/* Bytes and work requests in flight, and how many may be. */
static void put_window(struct shunt_json *text, struct shunt_lane *lane)
{
	uint64_t retired = atomic_load(&lane->retired),
		 sent = __atomic_load_n(&lane->sent, __ATOMIC_RELAXED);
	bool arrived = shunt_lane_arrived(lane);

	shunt_json_number(text, "inflight_bytes",
			  arrived ? 0 : shunt_window_inflight(&lane->window));
	shunt_json_number(text, "inflight_wr", arrived || sent < retired ? 0 : sent - retired);
	shunt_json_number(text, "window_bytes", limit(lane->window.bytes));
	shunt_json_number(text, "window_wr", limit(lane->window.wrs));
}

void shunt_stats_put_each_lane(struct shunt_json *text, const struct shunt_group *group)
{
	shunt_json_put(text, "\"lanes\":[");
	for (struct shunt_lane *lane = group->lanes; lane; lane = lane->next_in_group) {
		shunt_json_put(text, "%s{\"device\":\"%s\",\"bound_by\":\"%s\"",
			       lane == group->lanes ? "" : ",",
			       lane->link->device->context->device->name,
			       bound_by(lane->counters.stalls));
		text->comma = true;
		shunt_json_number(text, "peer", lane->link->peer_pid);
		shunt_json_number(text, "lane", lane->number);
		shunt_json_number(text, "streams", lane->seats);
		shunt_json_number(text, "wr", lane->sent);
		shunt_json_number(text, "wr_bytes", lane->window.posted);
		shunt_json_number(text, "doorbells", lane->counters.doorbells);
		put_window(text, lane);
		shunt_json_put(text, "}");
	}
	shunt_json_put(text, "],");
}

void shunt_stats_put_lanes(struct shunt_json *text, struct shunt_engine *engine,
			   struct shunt_lane_stats *tally)
{
	const struct shunt_lane_counters *sum = &tally->counters;
	uint64_t lanes = 0;

	*tally = engine->group.ended;
	for (struct shunt_lane *lane = engine->group.lanes; lane;
	     lane = lane->next_in_group, lanes++)
		shunt_lane_stats_add(tally, lane);
	shunt_json_number(text, "lanes", lanes);
	shunt_json_number(text, "doorbells", sum->doorbells);
	shunt_json_number(text, "wr", tally->wrs);
	shunt_json_number(text, "wr_bytes", tally->bytes);
	shunt_json_number(text, "wr_inline", tally->wrs - sum->gathered);
	shunt_json_number(text, "wr_signaled", sum->signaled);
	shunt_json_number(text, "wr_direct", sum->direct);
	shunt_json_number(text, "wr_merged", sum->merged);
	shunt_json_number(text, "wr_control", sum->control);
	shunt_json_number(text, "sends_staged", sum->staged_sends);
	shunt_json_number(text, "chain_max", sum->chain_max ? sum->chain_max : tally->wrs > 0);
	shunt_json_number(text, "sends_held", sum->held);
	shunt_json_number(text, "copied_past", sum->copied_past);
	shunt_json_number(text, "queue_stalls", sum->queue_stalls);
	shunt_json_number(text, "post_failures", sum->post_failures);
	shunt_json_number(text, "inflight_bytes_max", tally->most_bytes);
	shunt_json_number(text, "inflight_wr_max", tally->most_wrs);
	shunt_json_number(text, "window_cuts", tally->cuts);
}

void shunt_stats_put_memory(struct shunt_json *text, struct shunt_group *group)
{
	uint64_t regions = 0, bytes = 0;

	for (struct shunt_lane *lane = group->lanes; lane; lane = lane->next_in_group) {
		if (lane->number)
			continue;	/* a link's memory is all its lanes' */
		regions += atomic_load(&lane->link->arena.regions);
		bytes += atomic_load(&lane->link->arena.registered);
	}
	shunt_json_number(text, "memory_regions", regions);
	shunt_json_number(text, "memory_registered", bytes);
}

static uint64_t streams_of(const struct shunt_link *link)
{
	uint64_t streams = 0;

	for (uint32_t i = 0; i < link->lane_count; i++)
		streams += link->lanes[i].seats;
	return streams;
}

void shunt_stats_put_links(struct shunt_json *text, const struct shunt_group *group)
{
	bool any = false;

	shunt_json_put(text, "\"links\":[");
	for (struct shunt_lane *lane = group->lanes; lane; lane = lane->next_in_group) {
		struct shunt_link *link = lane->link;

		if (lane->number)
			continue;
		shunt_json_put(text, "%s{\"device\":\"%s\"", any ? "," : "",
			       link->device->context->device->name);
		text->comma = any = true;
		shunt_json_number(text, "peer", link->peer_pid);
		shunt_json_number(text, "lanes", link->lane_count);
		shunt_json_number(text, "streams", streams_of(link));
		shunt_json_number(text, "memory_regions", atomic_load(&link->arena.regions));
		shunt_json_number(text, "memory_registered", atomic_load(&link->arena.registered));
		shunt_json_number(text, "memory_mapped", shunt_lanes_mapped(link));
		shunt_json_number(text, "idle_ms",
				  shunt_idle_link(link, shunt_now(link->engine)) / 1000000);
		shunt_json_put(text, "}");
	}
	shunt_json_put(text, "],");
}
