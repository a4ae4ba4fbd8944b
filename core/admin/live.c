/* SPDX-License-Identifier: MIT */
#include "core/admin/live.h"
#include <string.h>
#include "core/base/log.h"
#include "core/recovery/keepalive.h"
#include "core/service.h"

#define AGAIN 10000000ull /* ns until a lane whose send queue was full is told again */

static void follow_log(struct shunt_engine *engine)
{
	shunt_log_set_level((enum shunt_log_level)engine->config.log_level);
	shunt_log_set_asked(!engine->config.log_file[0]);
}

static void follow_keepalive(struct shunt_engine *engine)
{
	if (engine->service)
		shunt_keepalive_change(engine->service);
}

/* True: all lanes have followed. */
static bool tell_lanes(struct shunt_service *service)
{
	bool all = true;

	for (struct shunt_link *link = service->links; link; link = link->next)
		for (uint32_t i = 0;
		     atomic_load(&link->state) == SHUNT_LINK_UP && i < link->lane_count; i++)
			all = shunt_lane_change(&link->lanes[i]) && all;
	return all;
}

static void follow_lanes(struct shunt_engine *engine)
{
	struct shunt_service *service = engine->service;

	if (service && !tell_lanes(service))
		shunt_task_at(&service->tasks.live, shunt_now(engine) + AGAIN);
}

void shunt_live_run(struct shunt_task *task)
{
	follow_lanes(shunt_service_of(task, live)->engine);
}

static const struct {
	const char *name;
	void (*follow)(struct shunt_engine *engine);
} follows[] = {
	{ "SHUNT_LOG", follow_log },
	{ "batch", follow_lanes },
	{ "chain", follow_lanes },
	{ "copy", follow_lanes },
	{ "keepalive_ms", follow_keepalive },
	{ "signal_every", follow_lanes },
	{ "window", follow_lanes },
	{ "window_device", follow_lanes },
	{ "window_wr", follow_lanes },
};

int shunt_live_set(struct shunt_engine *engine, const char *name, const char *text, char *why,
		   size_t room)
{
	if (shunt_config_change(&engine->config, name, text, why, room))
		return -1;
	for (size_t i = 0; i < sizeof(follows) / sizeof(follows[0]); i++)
		if (!strcmp(follows[i].name, name))
			follows[i].follow(engine);
	return 0;
}
