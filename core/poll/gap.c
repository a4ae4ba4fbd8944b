/* SPDX-License-Identifier: MIT */
#include "core/poll/gap.h"
#include <arpa/inet.h>
#include "core/engine.h"
#include "shunt/wire.h"

static uint64_t warn_ns(const struct shunt_engine *engine)
{
	return shunt_config_live(&engine->config.poll_warn_us) * 1000;
}

/* A sleeping thread would have been woken, and `exit` waits by itself (await.c). */
static bool is_watched(const struct shunt_engine *engine)
{
	return engine->group.leader || engine->group.polled.service_asleep || engine->finished;
}

uint64_t shunt_gap_begin(struct shunt_engine *engine, uint64_t now)
{
	struct shunt_gap *gap = &engine->group.gap;
	uint64_t least = warn_ns(engine);

	if (gap->polls + 1 != engine->group.polls) {
		*gap = (struct shunt_gap){ .at = 0 };
		return 0;
	}
	return least && gap->at && !is_watched(engine) && now - gap->at >= least ? now - gap->at :
										    0;
}

static bool brings_bytes(const struct ibv_wc *wc)
{
	enum shunt_imm type = ntohl(wc->imm_data) >> SHUNT_IMM_SHIFT;

	return wc->status == IBV_WC_SUCCESS && wc->opcode & IBV_WC_RECV &&
	       (type == SHUNT_IMM_DATA || type == SHUNT_IMM_ROUND);
}

bool shunt_gap_found(struct shunt_engine *engine, const struct ibv_wc *wc, int count, uint64_t ns)
{
	for (int i = 0; i < count; i++)
		if (brings_bytes(&wc[i])) {
			engine->group.hooks->late(engine, &wc[i], ns, count);
			return true;
		}
	return false;
}

void shunt_gap_end(struct shunt_engine *engine, uint64_t now)
{
	engine->group.gap = (struct shunt_gap){ .polls = engine->group.polls,
						.at = now,
						.none_at = engine->group.polled.more ? 0 : now };
}

void shunt_gap_woke(struct shunt_engine *engine)
{
	if (__builtin_expect(warn_ns(engine) != 0, 0) && engine->group.gap.at)
		engine->group.gap.at = shunt_now(engine);
}
