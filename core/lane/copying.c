/* SPDX-License-Identifier: MIT */
#include "core/lane/copying.h"
#include "core/base/config.h"
#include <unistd.h>
#include "core/base/copy.h"
#include "core/lane/lanes.h"
#include "core/link/link.h"
#include "core/poll/group.h"

uint64_t shunt_copying_near(void)
{
	long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);	/* of one core; the program's own bytes are in it, too */

	return bytes > 0 ? (uint64_t)bytes / 2 : 0;
}

void shunt_copying_configure(struct shunt_lane *lane)
{
	const struct shunt_group *group = lane->group;
	bool copies = lane->link->device->kind->copies && group->config->copy != SHUNT_COPY_MEMCPY;

	lane->copies_from = copies ? SHUNT_COPY_LARGE : UINT32_MAX;
	lane->copies_past = group->config->copy == SHUNT_COPY_NT;
}

/* Notes each time around the ring how many bytes of all its streams the lane has carried meanwhile. */
static bool comes_back_soon(struct shunt_lane *lane, struct shunt_seat_out *out, uint64_t offset)
{
	uint64_t round = offset / out->ring.bytes, posted = lane->window.posted;

	if (round != out->copying.round) {	/* it falls with a larger ring */
		out->copying.bytes = round > out->copying.round ?
					     (posted - out->copying.posted) /
						     (round - out->copying.round) :
					     0;
		out->copying.round = round;
		out->copying.posted = posted;
	}
	return out->copying.bytes && out->copying.bytes <= lane->group->common->copy_near;
}

int shunt_copying_choose(struct shunt_lane *lane, struct shunt_seat_out *out, uint64_t offset,
			 uint32_t bytes)
{
	if (!comes_back_soon(lane, out, offset) && !lane->copies_past)
		return SHUNT_SEND_PLAIN;
	lane->counters.copied_past += bytes;
	return SHUNT_SEND_PAST;
}
