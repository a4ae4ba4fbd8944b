/* SPDX-License-Identifier: MIT */
#include "core/link/share.h"
#include <malloc.h>
#include "core/base/config.h"
#include "core/base/guard.h"
#include "core/base/log.h"
#include "core/base/space.h"
#include "core/fd/own_fds.h"
#include "core/link/common.h"
#include "core/link/link.h"
#include "core/loop/loop.h"
#include "core/poll/cancel.h"
#include "core/poll/group.h"

#define M (1ull << 20)
#define GUARDS 2	/* mappings that have pages around them: our segment, and the peer's */

static uint64_t mib(uint64_t bytes)
{
	return (bytes + M / 2) / M;
}

/* --- the service thread --- */

bool shunt_share_thread(struct shunt_links *links, bool told)
{
	struct shunt_space space;
	uint64_t spare;
	int state;

	links->space_thread = 0;
	if (!shunt_space_is_limited())
		return true;
	state = shunt_cancel_off();
	shunt_own_fds_begin(links->loop->fds);
	space = shunt_space_read();
	shunt_own_fds_end(links->loop->fds);
	shunt_cancel_restore(state);
	spare = shunt_space_spare(&space, 0);
	if (spare == SHUNT_SPACE_UNLIMITED)	/* lifted just now */
		return true;
	links->space_thread = shunt_space_thread(spare);
	if (!links->space_thread && !told)
		shunt_log(SHUNT_LOG_INFO, "RLIMIT_AS leaves %llu MiB of address space: the first link needs %llu MiB to be left",
			  (unsigned long long)mib(spare * SHUNT_SPACE_PART),
			  (unsigned long long)mib((SHUNT_SPACE_THREAD + SHUNT_SPACE_LINK) * SHUNT_SPACE_PART));
	return links->space_thread != 0;
}

/* A thread allocates from a heap that it has, so those of a program that has several already stay. */
void shunt_share_spare_heap(const struct shunt_links *links)
{
	if (links->space_thread == SHUNT_SPACE_THREAD)
		mallopt(M_ARENA_MAX, 1);
}

/* --- links --- */

static uint64_t spare_of(const struct shunt_links *links)
{
	struct shunt_space space = shunt_space_read();

	return shunt_space_spare(&space, links->space_thread + links->space_links);
}

static void mapped_count(struct shunt_link *link, uint64_t bytes)
{
	link->channel.links->space_links += bytes - link->space;
	link->space = bytes;
}

uint64_t shunt_share_plan(struct shunt_link *link)
{
	const struct shunt_device_kind *kind = link->device->kind;
	uint64_t spare = spare_of(link->channel.links);
	struct shunt_space_share share;

	if (!shunt_space_link(spare, link->device->group->config->arena_bytes, &share) ||
	    (share.maps && !kind->size_arena))
		return 0;
	link->maps = share.maps;
	if (kind->size_arena)
		kind->size_arena(link->device, share.arena);
	return share.arena;
}

uint64_t shunt_share_maps(const struct shunt_link *link)
{
	const struct shunt_device_kind *kind = link->device->kind;
	uint64_t own = kind->size_arena ? kind->segment_bytes(link->pd) : 0;

	own = (own + SHUNT_MAPS_BYTES - 1) / SHUNT_MAPS_BYTES * SHUNT_MAPS_BYTES;
	return link->maps ? link->maps : own;
}

uint64_t shunt_share_space(const struct shunt_link *link)
{
	const struct shunt_device_kind *kind = link->device->kind;

	if (!kind->size_arena || !link->pd)
		return 0;
	return kind->segment_bytes(link->pd);
}

void shunt_share_begin(struct shunt_link *link)
{
	const struct shunt_device_kind *kind = link->device->kind;

	if (kind->map_most)
		kind->map_most(link->pd, shunt_share_maps(link));
	if (link->maps)
		mapped_count(link, kind->segment_bytes(link->pd) + link->maps +
					   GUARDS * shunt_guard_cost());
}

const char *shunt_share_heed(struct shunt_link *link, const struct shunt_hello *hello)
{
	const struct shunt_device_kind *kind = link->device->kind;
	uint64_t maps = (uint64_t)hello->maps * SHUNT_MAPS_BYTES, front;

	if (!maps)
		return NULL;
	front = kind->segment_bytes(link->pd) - link->arena.memory.bytes;
	if (maps <= front || shunt_arena_bound(&link->arena, maps - front))
		return "the peer has too little address space";
	return NULL;
}

void shunt_share_settle(struct shunt_link *link, uint64_t mapped)
{
	if (link->maps)
		mapped_count(link,
			     shunt_share_space(link) + mapped + GUARDS * shunt_guard_cost());
}

void shunt_share_end(struct shunt_link *link)
{
	mapped_count(link, 0);
}
