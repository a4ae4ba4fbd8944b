/* SPDX-License-Identifier: MIT */
#include "core/lane/lanes.h"
#include "core/base/config.h"
#include "core/base/log.h"
#include "core/base/narrow.h"
#include "core/base/sys.h"
#include "core/poll/devices.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/device/page.h"
#include "core/lane/lane.h"
#include "core/lane/lane_queue.h"
#include "core/lane/roster.h"
#include "core/lane/zero_copy.h"
#include "core/link/link.h"
#include "core/poll/group.h"

static uint32_t lanes_wanted(const struct shunt_group *group, const struct shunt_device *device,
			     uint32_t more)
{
	if (group->config->lanes != SHUNT_LANES_AUTO)
		return shunt_narrow_u32(group->config->lanes);
	if (device->kind->lanes)
		return device->kind->lanes;
	return shunt_lanes_share(atomic_load(&group->common->sets), more);
}

/* --- making one --- */

/* Once in a process: it is the device's property, not the link's. */
static void choose_pin_from(struct shunt_link *link)
{
	struct shunt_group *group = link->device->group;
	uint64_t from = group->config->mr_threshold;

	if (link->device->marks_pages) {	/* the program's children would not have its buffer */
		shunt_log(SHUNT_LOG_INFO, "this kernel's fork(): no send registers its own buffer");
		from = 0;
	}
	if (from == SHUNT_ZERO_COPY_AUTO) {
		from = shunt_zero_copy_measure(link->device->verbs, link->pd, group->sys->now);
		shunt_log(SHUNT_LOG_INFO, "measured: blocking sends register their buffer from %llu bytes on",
			  (unsigned long long)from);
	}
	atomic_store(&group->common->pin_from, from ? from : UINT64_MAX);
	atomic_store(&group->common->pin_from_chosen, true);
}

static int partition_of(const struct shunt_link *link)
{
	const struct shunt_device_kind *kind = link->device->kind;

	return kind->partition ? kind->partition(link->device, &link->channel.course.path) : 0;
}

/* A lane uses no more than it has room for. mlx4 grants 30 where 16 are asked for. */
static uint32_t sges_of(int64_t most)
{
	return most < SHUNT_LANE_SGES ? (uint32_t)most : SHUNT_LANE_SGES;
}

static uint32_t inline_wanted(const struct shunt_link *link)
{
	uint64_t wanted = link->device->group->config->inline_bytes;

	if (wanted > link->device->kind->max_inline)
		wanted = link->device->kind->max_inline;
	return wanted < link->device->most_inline ? (uint32_t)wanted : link->device->most_inline;
}

static uint64_t words_bytes(const struct shunt_lane *lane)
{
	uint64_t bytes = lane->sq_depth * sizeof(*lane->words);

	return bytes < 1u << SHUNT_ARENA_MIN_LOG ? 1u << SHUNT_ARENA_MIN_LOG : bytes;
}

/* A device that takes no word inline fetches it from where it lies until the WR is complete. */
static bool make_words(struct shunt_lane *lane)
{
	const struct ibv_mr *mr;
	uint64_t offset;

	if (lane->max_inline >= SHUNT_INLINE_LEAST)
		return true;
	offset = shunt_arena_take(&lane->link->arena, words_bytes(lane), &mr);
	if (offset == UINT64_MAX)
		return false;
	lane->words = (uint64_t *)(void *)(lane->link->arena_base + offset);
	lane->words_lkey = mr->lkey;
	return true;
}

static int make_queue_pair(struct shunt_lane *lane)
{
	struct shunt_link *link = lane->link;
	struct shunt_group *group = link->device->group;
	const struct shunt_device *device = link->device;
	struct ibv_cq *cq = shunt_devices_cq(group, link->device);
	int cq_error = errno;
	struct ibv_qp_init_attr init = {
		.qp_context = lane, .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = shunt_lane_slots(lane), .max_recv_wr = lane->rq_depth,
			 .max_send_sge = lane->retains ? 1 : sges_of(device->limits.max_sge), .max_recv_sge = 1,
			 .max_inline_data = inline_wanted(link) },
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = device->port,
				    .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
						       shunt_page_access(&device->limits) };
	int partition = partition_of(link);

	if (!cq)
		return -cq_error;
	if (partition < 0)
		return partition;
	attr.pkey_index = (uint16_t)partition;
	errno = ENOMEM;	/* not each provider says why (bnxt_re) */
	lane->qp = device->verbs->create_qp(link->pd, &init);
	if (!lane->qp)
		return -errno;
	atomic_fetch_add(&group->common->queue_pairs, 1);
	lane->max_inline = device->most_inline ? init.cap.max_inline_data : 0;	/* mana grants what it does not have */
	if (!make_words(lane))
		return -ENOMEM;
	lane->max_sges = sges_of(init.cap.max_send_sge);
	lane->fetches = lane->max_inline < lane->frag_bytes;
	lane->backlog = device->kind->backlog ? device->kind->backlog(lane->qp) : NULL;
	lane->rings = device->kind->rings ? device->kind->rings(lane->qp) : NULL;
	if (device->verbs->modify_qp(lane->qp, &attr, SHUNT_TO_INIT))
		return -EIO;
	if (lane->fetches && !atomic_load(&group->common->pin_from_chosen))
		choose_pin_from(link);
	return shunt_lane_post_receives(lane, lane->rq_depth) ? -EIO : 0;
}

static void unmake(struct shunt_lane *lane)
{
	const struct shunt_device *device = lane->link->device;

	if (lane->qp && device->kind->part)
		device->kind->part(lane->link->device, lane->qp);
	if (lane->qp)
		device->verbs->destroy_qp(lane->qp);
	if (lane->words)
		shunt_arena_give(&lane->link->arena,
				 (uint64_t)((uint8_t *)lane->words - lane->link->arena_base),
				 words_bytes(lane));
	shunt_lane_fini(lane);
	memset(lane, 0, sizeof(*lane));
}

/* --- all of a link --- */

/* Polling threads look at all lanes of a link (shunt_link_fail), so group.lock is taken. */
static void set_count(struct shunt_link *link, uint32_t count)
{
	shunt_lock_take(&link->device->group->lock);
	link->lane_count = count;
	shunt_lock_leave(&link->device->group->lock);
}

bool shunt_lanes_reserve(struct shunt_link *link, const struct shunt_group *group,
			 const struct shunt_device *device, uint32_t more)
{
	uint32_t count = lanes_wanted(group, device, more);
	size_t bytes = count * sizeof(*link->lanes);

	link->lane_room = count;
	if (posix_memalign((void **)&link->lanes, _Alignof(struct shunt_lane), bytes))
		return false;
	memset(link->lanes, 0, bytes);
	return true;
}

void shunt_lanes_free(struct shunt_link *link)
{
	free(link->lanes);
}

int shunt_lanes_make(struct shunt_link *link, uint32_t count)
{
	int result = -ENOMEM;

	while (link->lane_count < count) {
		struct shunt_lane *lane = &link->lanes[link->lane_count];

		lane->link = link;
		lane->group = link->device->group;
		lane->number = link->lane_count;
		result = shunt_lane_init(lane);
		if (!result)
			result = make_queue_pair(lane);
		if (result) {
			unmake(lane);
			break;
		}
		shunt_roster_add(link->device->group, lane);
		set_count(link, link->lane_count + 1);
	}
	return link->lane_count ? 0 : result;
}

void shunt_lanes_keep(struct shunt_link *link, uint32_t count)
{
	while (link->lane_count > count) {
		struct shunt_lane *lane = &link->lanes[link->lane_count - 1];

		set_count(link, link->lane_count - 1);
		shunt_roster_remove(link->device->group, lane);
		unmake(lane);
	}
}

int shunt_lanes_tell(struct shunt_link *link, struct shunt_hello *hello, int fds[2])
{
	int count = 0;

	_Static_assert(sizeof(hello->address[0]) == SHUNT_ADDRESS_BYTES, "an address must fit");
	hello->lanes = link->lane_count;
	hello->receives = link->lanes[0].rq_depth;
	hello->retains = link->lanes[0].retains;
	for (uint32_t i = 0; i < link->lane_count && count >= 0; i++)	/* the descriptors are the same for all */
		count = link->device->kind->tell(link->device, link->lanes[i].qp, hello->address[i], fds);
	return count;
}

int shunt_lanes_join(struct shunt_link *link, const struct shunt_hello *hello, const int *fds, int count)
{
	const struct shunt_device_kind *kind = link->device->kind;
	int later = 0, bells = count - SHUNT_WAITERS;

	if (kind->waiters && bells == 2)
		count = bells;
	for (uint32_t i = 0; i < link->lane_count; i++) {
		struct shunt_lane *lane = &link->lanes[i];
		int result = kind->join(link->device, lane->qp,
						      &link->channel.course.path, hello->address[i],
						      fds, count);

		if (result < 0)
			return result;
		later += result == SHUNT_JOINS_LATER;
		lane->rkey = hello->rkey;
		lane->peer_controls = hello->arena_address;
		lane->granted = lane->reposted;
		atomic_store(&lane->allowed, hello->receives);
	}
	if (count == bells) {
		int result = kind->reach_waiters(link->lanes[0].qp, fds + bells);

		if (result)
			return result;
	}
	return later;
}

struct shunt_lane *shunt_lanes_emptiest(struct shunt_link *link)
{
	struct shunt_lane *least = &link->lanes[0];

	shunt_assert_held(&link->device->group->seats_lock);
	shunt_lock_take(&link->device->group->lock);
	for (uint32_t i = 1; i < link->lane_count; i++)
		if (link->lanes[i].seats < least->seats)
			least = &link->lanes[i];
	shunt_lock_leave(&link->device->group->lock);
	return least;
}

uint64_t shunt_lanes_mapped(const struct shunt_link *link)
{
	const struct shunt_device_kind *kind = link->device->kind;

	return link->lane_count && kind->mapped ? kind->mapped(link->lanes[0].qp) : 0;
}

/* --- the end --- */

/* One lane that fails takes the others with it: where the streams of a link are is one decision. */
void shunt_lanes_condemn(struct shunt_link *link)
{
	for (uint32_t i = 0; i < link->lane_count; i++)
		atomic_store(&link->lanes[i].failed, true);
}

void shunt_lanes_abandon(struct shunt_link *link)
{
	for (uint32_t i = 0; i < link->lane_count; i++)
		shunt_lane_abandon(&link->lanes[i]);
}

void shunt_lanes_stop(struct shunt_link *link)
{
	struct shunt_group *group = link->device->group;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	shunt_assert_service_thread(link->engine);
	shunt_link_condemn(link);
	shunt_lock_take(&group->lock);	/* a polling thread may just be posting receives; none does after this */
	shunt_lock_leave(&group->lock);
	for (uint32_t i = 0; i < link->lane_count; i++) {
		link->device->verbs->modify_qp(link->lanes[i].qp, &attr, IBV_QP_STATE);
		shunt_lock_take(&link->lanes[i].lock);	/* a poster from before has noted it after this */
		shunt_lock_leave(&link->lanes[i].lock);
	}
	shunt_group_poll_fully(group);	/* what was delivered before counts, and nothing else */
	atomic_fetch_sub(&group->common->links_up, 1);
	if (!link->waits)
		shunt_waiters_deaf(group, -1);
	shunt_lanes_abandon(link);
}
