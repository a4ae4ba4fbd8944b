/* SPDX-License-Identifier: MIT */
#include "core/poll/gap.h"
#include <arpa/inet.h>
#include "shunt/wire.h"
#include "core/poll/group.h"
#include "core/base/config.h"
#include "core/base/sys.h"

static uint64_t warn_ns(const struct shunt_group *group)
{
	return shunt_config_live(&group->config->poll_warn_us) * 1000;
}

/* A sleeping thread would have been woken, and `exit` waits by itself (await.c). */
static bool is_watched(const struct shunt_group *group)
{
	return group->leader || group->polled.service_asleep || group->finished;
}

uint64_t shunt_gap_begin(struct shunt_group *group, uint64_t now)
{
	struct shunt_gap *gap = &group->gap;
	uint64_t least = warn_ns(group);

	if (gap->polls + 1 != group->polls) {
		*gap = (struct shunt_gap){ .at = 0 };
		return 0;
	}
	return least && gap->at && !is_watched(group) && now - gap->at >= least ? now - gap->at :
										    0;
}

static bool brings_bytes(const struct ibv_wc *wc)
{
	enum shunt_imm type = ntohl(wc->imm_data) >> SHUNT_IMM_SHIFT;

	return wc->status == IBV_WC_SUCCESS && wc->opcode & IBV_WC_RECV &&
	       (type == SHUNT_IMM_DATA || type == SHUNT_IMM_ROUND);
}

bool shunt_gap_found(struct shunt_group *group, const struct ibv_wc *wc, int count, uint64_t ns)
{
	for (int i = 0; i < count; i++)
		if (brings_bytes(&wc[i])) {
			group->hooks->late(group, &wc[i], ns, count);
			return true;
		}
	return false;
}

void shunt_gap_end(struct shunt_group *group, uint64_t now)
{
	group->gap = (struct shunt_gap){ .polls = group->polls,
						.at = now,
						.none_at = group->polled.more ? 0 : now };
}

void shunt_gap_woke(struct shunt_group *group)
{
	if (__builtin_expect(warn_ns(group) != 0, 0) && group->gap.at)
		group->gap.at = group->sys->now();
}
