/* SPDX-License-Identifier: MIT */
#include "core/lane/seats.h"
#include <errno.h>
#include <string.h>
#include "core/base/config.h"
#include "core/base/narrow.h"
#include "core/lane/lane.h"
#include "core/poll/group.h"

static uint32_t free_id(struct shunt_link *link)
{
	uint32_t limit = link->table_size < link->peer_streams ? link->table_size : link->peer_streams;

	for (uint32_t tried = 1; tried < limit; tried++) {
		uint32_t id = link->next_id;

		link->next_id = id + 1 < limit ? id + 1 : 1;
		if (!link->table[id])
			return id;
	}
	return 0;
}

int shunt_seats_take(struct shunt_link *link, struct shunt_seat *seat, struct shunt_lane *lane,
		     struct shunt_place *place)
{
	uint32_t bytes = shunt_narrow_u32(link->device->group->config->ring_min);
	const struct ibv_mr *mr;
	uint32_t id;
	uint64_t offset = shunt_arena_take(&link->arena, bytes, &mr);
	struct shunt_seat_in *in = &seat->in;

	shunt_assert_service_thread(link->engine);
	shunt_assert_held(&link->device->group->seats_lock);
	if (offset == UINT64_MAX)
		return -ENOMEM;
	shunt_lock_take(&link->device->group->lock);
	id = free_id(link);
	if (id) {
		seat->link = link;
		seat->lane = lane;
		lane->seats++;
		seat->id = id;
		seat->control = (struct shunt_control *)link->arena_base + id;
		memset(seat->control, 0, sizeof(*seat->control));
		in->link.ring = in->ring.at = link->arena_base + offset;
		in->ring.bytes = in->link.bytes = bytes;
		in->link.end = 0;
		__atomic_store_n(&link->table[id], seat, __ATOMIC_RELEASE);
		link->seated++;
		link->unused_since = 0;
		if (link->top <= id)
			link->top = id + 1;
	}
	shunt_lock_leave(&link->device->group->lock);
	if (!id) {
		shunt_link_give_ring(link, link->arena_base + offset, bytes);
		return -ENOSPC;
	}
	*place = (struct shunt_place) { .ring_offset = offset, .ring_bytes = bytes, .stream = id, .rkey = mr->rkey,
					.lane = lane->number };
	return 0;
}

void shunt_seats_leave(struct shunt_link *link, struct shunt_seat *seat)
{
	struct shunt_seat_in *in = &seat->in;
	uint32_t next = atomic_exchange(&in->ring.next_bytes, 0);

	shunt_assert_held(&link->device->group->seats_lock);
	if (next)
		shunt_link_give_ring(link, in->ring.next, next);
	shunt_link_give_ring(link, in->ring.at, in->ring.bytes);
	shunt_lock_take(&link->device->group->lock);
	__atomic_store_n(&link->table[seat->id], NULL, __ATOMIC_RELEASE);
	link->seated--;
	seat->lane->seats--;
	seat->link = NULL;
	shunt_lock_leave(&link->device->group->lock);
}

