/* SPDX-License-Identifier: MIT */
/* The soft device as the engine uses it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "core/device/device.h"
#include "core/device/page.h"
#include "core/device/soft/soft.h"
#include "core/fd/own_fds.h"
#include "core/loop/porter.h"
#include "core/base/config.h"
#include "core/base/log.h"
#include "core/base/narrow.h"
#include "core/trace/slow_step.h"
#include "core/loop/loop.h"

#define CQ_ENTRIES 65536

static int keep_descriptor(void *arg, int fd)
{
	struct shunt_loop *loop = arg;

	return shunt_own_fds_adopt(loop->fds, fd);
}

static void drop_descriptor(void *arg, int fd)
{
	struct shunt_loop *loop = arg;

	shunt_own_fds_close(loop->fds, fd);
}

static void let_go_of_descriptor(void *arg, int fd)
{
	struct shunt_loop *loop = arg;

	shunt_porter_let_go(loop->porter, fd);
}

/* Only a device with a thread has something to tell: senders wait for it in shunt_lane_settled(). */
static void settled(void *arg)
{
	shunt_loop_wake(arg);
}

static int soft_kind_open(struct shunt_device *device, const char *name,
			  const struct shunt_way *way, char *error, size_t bytes)
{
	struct shunt_loop *loop = device->loop;
	const struct shunt_config *config = loop->steps->config;
	struct soft_attr attr = { .arena_bytes = config->arena_bytes, .max_qp = SHUNT_LANES_MAX,
				  .max_inline = shunt_narrow_u32(config->inline_bytes),
				  .large = config->pages != SHUNT_PAGES_ORDINARY,
				  .max_cqe = CQ_ENTRIES, .zero_based = true, .now = loop->fds->sys->now,
				  .keep = keep_descriptor, .drop = drop_descriptor,
				  .let_go = let_go_of_descriptor, .sys = loop->fds->sys, .keep_arg = loop, .settled = settled, .settled_arg = loop };

	(void)name, (void)way;
	soft_model_parse(config->soft_model, &attr.model);	/* checked when it was loaded */
	attr.engine_thread = attr.model.on && !loop->manual;
	device->context = soft_open(&attr, &device->verbs);
	device->port = 1;
	if (device->context && config->pages == SHUNT_PAGES_HUGE)
		shunt_log(SHUNT_LOG_INFO,
			  "SHUNT_TUNE=pages=huge: shared memory asks for transparent huge pages");
	if (device->context)
		return 0;
	snprintf(error, bytes, "the soft device cannot be opened: out of memory or descriptors");
	return -errno;
}

static int soft_kind_make_channel(struct shunt_device *device)
{
	device->channel = device->verbs->create_comp_channel(device->context);
	return device->channel ? 0 : -ENOMEM;
}

static void soft_kind_free_channel(struct shunt_device *device)
{
	device->verbs->destroy_comp_channel(device->channel);
}

static void soft_kind_close(struct shunt_device *device)
{
	soft_close(device->context);
}

static void soft_kind_abandon(struct shunt_device *device)
{
	int event_fd = soft_channel_event_fd(device->channel);

	if (event_fd != device->channel->fd)
		shunt_own_fds_close(device->loop->fds, event_fd);
	shunt_own_fds_close(device->loop->fds, device->channel->fd);
}

static int soft_kind_set_apart(struct shunt_device *device, struct ibv_pd *pd)
{
	return soft_pd_set_apart(pd, device->channel);
}

static void soft_kind_size_arena(struct shunt_device *device, uint64_t bytes)
{
	soft_size_arena(device->context, bytes);
}

static void *soft_kind_arena(struct shunt_device *device, struct ibv_pd *pd, size_t *bytes)
{
	(void)device;
	return soft_arena(pd, bytes);
}

static void soft_kind_free_arena(struct shunt_device *device, void *arena, size_t bytes)
{
	(void)device, (void)arena, (void)bytes;	/* goes with its domain */
}

static enum shunt_cause soft_kind_shortage(enum shunt_short_of what, int error)
{
	(void)error;
	return what == SHUNT_SHORT_OF_RINGS ? SHUNT_CAUSE_ARENA_FULL : SHUNT_CAUSE_NO_QUEUES;
}

static int soft_kind_tell(struct shunt_device *device, struct ibv_qp *qp, void *address, int fds[2])
{
	struct soft_address told;
	int result = soft_qp_export(qp, &told, fds);

	_Static_assert(sizeof(told) <= SHUNT_ADDRESS_BYTES, "soft_address must fit");
	(void)device;
	if (result)
		return result;
	memcpy(address, &told, sizeof(told));
	return 2;
}

static int soft_kind_join(struct shunt_device *device, struct ibv_qp *qp,
			  const struct shunt_path *path, const void *address, const int *fds,
			  int count)
{
	struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR, .min_rnr_timer = 12 };
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 6, .rnr_retry = 7 };
	struct soft_address told;
	int result;

	(void)path;
	if (count != 2)
		return -EPROTO;
	memcpy(&told, address, sizeof(told));
	result = soft_qp_import(qp, &told, fds);
	if (result)
		return result;
	rtr.dest_qp_num = told.qp_num;
	if (device->verbs->modify_qp(qp, &rtr, SHUNT_TO_RTR) || device->verbs->modify_qp(qp, &rts, SHUNT_TO_RTS))
		return -EIO;
	return 0;
}

/* --- shared pages --- */

static int soft_kind_make_page(struct shunt_device *device, struct shunt_page *page)
{
	void *words;
	int result = soft_page_make(device->context, &page->fd, &words);

	if (!result)
		page->words = words;
	return result;
}

static void soft_kind_free_page(struct shunt_page *page)
{
	soft_page_free(page->device->context, page->fd, (void *)page->words);
}

static struct ibv_mr *soft_kind_lend_page(struct shunt_page *page, struct ibv_pd *pd,
					  uint64_t *address)
{
	*address = 0;
	return soft_page_lend(pd, (void *)page->words);
}

static int soft_kind_reach_page(struct ibv_qp *qp, const int *fds, int count)
{
	return count == 1 ? soft_page_reach(qp, fds[0]) : -EPROTO;
}

const struct shunt_device_kind shunt_device_soft = {
	.name = "soft",
	.number = 1,
	.streams = SHUNT_SOFT_STREAMS,
	.lanes = 0,	/* its QPs are as fast as memory is: more of them only part threads from each other */
	.cq_lanes = SHUNT_SOFT_CQ_LANES,
	.max_inline = UINT32_MAX,
	.zero_based = true,
	.copies = true,
	.open = soft_kind_open,
	.close = soft_kind_close,
	.make_channel = soft_kind_make_channel,
	.free_channel = soft_kind_free_channel,
	.abandon = soft_kind_abandon,
	.make_arena = soft_kind_arena,
	.free_arena = soft_kind_free_arena,
	.discard = soft_arena_discard,
	.gives_pages = soft_arena_gives_pages,
	.shortage = soft_kind_shortage,
	.tell = soft_kind_tell,
	.join = soft_kind_join,
	.size_arena = soft_kind_size_arena,
	.segment_bytes = soft_segment_bytes,
	.map_most = soft_map_most,
	.mapped = soft_qp_mapped,
	.set_apart = soft_kind_set_apart,
	.told = soft_pd_told,
	.waiters = SOFT_WAITERS,
	.make_waiters = soft_waiters_make,
	.reach_waiters = soft_waiters_reach,
	.waiter_fd = soft_waiter_fd,
	.hear_waiter = soft_waiter_hear,
	.arm_waiter = soft_waiter_arm,
	.make_page = soft_kind_make_page,
	.free_page = soft_kind_free_page,
	.lend_page = soft_kind_lend_page,
	.reach_page = soft_kind_reach_page,
	.peer_gone = soft_qp_peer_gone,
	.peek = soft_qp_peek,
	.settled = soft_qp_settled,
	.backlog = soft_qp_backlog,
	.rings = soft_qp_rings,
	.ring = soft_qp_ring,
};
