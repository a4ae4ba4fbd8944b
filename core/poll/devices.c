/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include "core/poll/devices.h"
#include "core/fd/own_fds.h"
#include "core/fd/loading.h"
#include "core/poll/sleeper.h"
#include "core/poll/group.h"
#include "core/base/config.h"
#include "core/loop/loop.h"
#include "core/base/log.h"

#define CLOSED_NS 10000000000ull	/* between two looks for a device */
#define CQ_ENTRIES 65536	/* or what the device has */

static int entries_of(const struct shunt_device *device)
{
	return device->limits.max_cqe < CQ_ENTRIES ? device->limits.max_cqe : CQ_ENTRIES;
}

static bool is_of(const struct ibv_cq *cq, const struct shunt_device *device)
{
	return cq->context == device->context;
}

static void destroy_cqs(struct shunt_group *group, struct shunt_device *device)
{
	struct shunt_cqs kept = { .count = 0 };

	for (uint32_t i = 0; i < group->cqs.count; i++) {
		if (is_of(group->cqs.of[i], device)) {
			device->verbs->destroy_cq(group->cqs.of[i]);
			continue;
		}
		kept.of[kept.count] = group->cqs.of[i];
		kept.lanes[kept.count++] = group->cqs.lanes[i];
	}
	group->cqs = kept;
	group->polled.turn = 0;
}

/* All of a device are on one channel. group.lock held. */
static bool add_cq(struct shunt_group *group, struct shunt_device *device)
{
	struct ibv_cq *cq;

	if (group->cqs.count == SHUNT_CQS_MAX)
		return false;
	cq = device->verbs->create_cq(device->context, entries_of(device), device, device->channel, 0);
	if (!cq)
		return false;
	group->cqs.lanes[group->cqs.count] = 0;
	group->cqs.of[group->cqs.count++] = cq;
	return true;
}

uint32_t shunt_devices_depth(uint64_t wanted, uint32_t most)
{
	uint32_t depth = 1;

	while (depth <= most / 2 && 2 * (uint64_t)depth <= wanted)
		depth *= 2;
	return depth;
}

/* Its channel, its limits, its first CQs. */
static int prepare(struct shunt_group *group, struct shunt_device *device)
{
	uint32_t count = 0;

	if (device->kind->make_channel(device))
		return -ENOMEM;
	if (device->verbs->query_device(device->context, &device->limits))
		goto free_channel;
	shunt_imm_limit(device, &device->limits);
	device->rq_depth = shunt_devices_depth(group->config->rq_depth, device->limits.max_qp_wr);
	device->sq_depth = shunt_devices_depth(group->config->sq_depth, device->limits.max_qp_wr);
	device->cq_room = entries_of(device) / (device->rq_depth + device->sq_depth);
	shunt_lock_take(&group->lock);
	while (count < group->config->cqs && add_cq(group, device))
		count++;
	shunt_lock_leave(&group->lock);
	if (device->cq_room && count)
		return 0;
free_channel:
	device->kind->free_channel(device);
	return -ENOMEM;
}

/* --- what is slept on --- */

static int open_devices(const struct shunt_group *group)
{
	int open = 0;

	for (int i = 0; i < SHUNT_DEVICES; i++)
		open += group->devices[i].open;
	return open;
}

static int join(struct shunt_group *group, int epfd, const struct shunt_device *device)
{
	struct epoll_event event = { .events = EPOLLIN };

	return group->sys->epoll_ctl(epfd, EPOLL_CTL_ADD, device->channel->fd, &event) ? -ENOMEM :
											 0;
}

/* A second device: the channels of both in one. */
static int join_channels(struct shunt_group *group, const struct shunt_device *second)
{
	int epfd = shunt_own_fds_make(group->loop->fds, group->sys->epoll_create1(EPOLL_CLOEXEC));
	int result = epfd < 0 ? epfd : join(group, epfd, second);

	for (int i = 0; i < SHUNT_DEVICES && !result; i++)
		if (group->devices[i].open)
			result = join(group, epfd, &group->devices[i]);
	if (result && epfd >= 0)
		shunt_own_fds_close(group->loop->fds, epfd);
	return result ? result : epfd;
}

static int make_bell(struct shunt_group *group, const struct shunt_device *device)
{
	int result;

	switch (open_devices(group)) {
	case 0:
		return device->channel->fd;
	case 1:
		return join_channels(group, device);
	default:
		result = join(group, group->bell, device);
		return result ? result : group->bell;
	}
}

/* Threads that fell asleep before sleep on another descriptor, so all are woken to look again. group.lock held. */
static void change_bell(struct shunt_group *group, int bell)
{
	atomic_store(&group->bell, bell);
	for (struct shunt_sleeper *sleeper = group->sleepers; sleeper; sleeper = sleeper->next)
		shunt_sleeper_kick(group, sleeper);
}

static int hang_bell(struct shunt_group *group, struct shunt_device *device)
{
	int bell = make_bell(group, device);

	if (bell < 0)
		return bell;
	shunt_lock_take(&group->lock);
	device->open = true;
	group->open = true;
	device->hooks->opened(device);
	change_bell(group, bell);
	shunt_lock_leave(&group->lock);
	return 0;
}

int shunt_devices_set_apart(struct shunt_group *group, struct shunt_device *device,
			    struct ibv_pd *pd)
{
	int before = device->channel->fd, result;

	if (!device->kind->set_apart)
		return 0;
	result = device->kind->set_apart(device, pd);
	if (result || before == device->channel->fd)
		return result;
	if (open_devices(group) > 1) {	/* nobody empties the one before any more */
		group->sys->epoll_ctl(group->bell, EPOLL_CTL_DEL, before, NULL);
		return join(group, group->bell, device);
	}
	shunt_lock_take(&group->lock);
	change_bell(group, device->channel->fd);
	shunt_lock_leave(&group->lock);
	return 0;
}

/* --- devices --- */

/* Nobody tries again before a while has passed. */
static struct shunt_device *no_device(struct shunt_group *group, struct shunt_device *device,
				      const char *error)
{
	shunt_log(SHUNT_LOG_WARN, "connections stay on TCP: %s", error);
	shunt_lock_take(&group->lock);
	snprintf(group->device_error, sizeof(group->device_error), "%s", error);
	shunt_lock_leave(&group->lock);
	device->closed_until = group->sys->now() + CLOSED_NS;
	return NULL;
}

/* NULL: any of the kind. */
static const char *wanted_name(const struct shunt_group *group)
{
	const char *name;

	shunt_config_device(group->config->device, &name);
	return name;
}

static struct shunt_device *open_now(struct shunt_group *group, enum shunt_which which,
				     const struct shunt_way *way)
{
	struct shunt_device *device = &group->devices[which];
	char error[sizeof(group->device_error)];

	if (group->sys->now() < device->closed_until)
		return NULL;
	device->loop = group->loop;
	device->group = group;
	device->fault = group->fault;
	device->hooks = &group->hooks->device;
	device->imm = (struct shunt_imm_calls) { 0 };
	device->kind = which == SHUNT_SOFT ? &shunt_device_soft : &shunt_device_verbs;
	if (device->kind->open(device, wanted_name(group), way, error, sizeof(error)))
		return no_device(group, device, error);
	if (prepare(group, device))
		goto close_device;
	if (hang_bell(group, device))
		goto destroy_cqs;
	shunt_lock_take(&group->lock);
	group->device_error[0] = 0;
	shunt_lock_leave(&group->lock);
	return device;

destroy_cqs:
	shunt_lock_take(&group->lock);
	destroy_cqs(group, device);
	shunt_lock_leave(&group->lock);
	device->kind->free_channel(device);
close_device:
	device->kind->close(device);
	return no_device(group, device,
			 "the device has no queues for us: out of memory or descriptors");
}

static struct shunt_device *open_device(struct shunt_group *group, enum shunt_which which,
					const struct shunt_way *way)
{
	struct shunt_device *device;

	shunt_loading_begin(group->loop->fds);
	device = open_now(group, which, way);
	shunt_loading_end(group->loop->fds);
	return device;
}

struct shunt_device *shunt_devices_open(struct shunt_group *group, enum shunt_which which)
{
	struct shunt_device *device = &group->devices[which];

	return device->open ? device : open_device(group, which, NULL);
}

struct shunt_device *shunt_devices_open_way(struct shunt_group *group, const struct shunt_way *way)
{
	const char *name = wanted_name(group);
	int unused = -1;

	if (name && strcmp(name, way->device))
		return shunt_devices_open(group, SHUNT_VERBS);	/* whoever names a device means it */
	for (int i = SHUNT_VERBS; i <= SHUNT_VERBS_LAST; i++) {
		struct shunt_device *device = &group->devices[i];

		if (device->open && device->kind->leads(device, way))
			return device;
		if (!device->open && unused < 0)
			unused = i;
	}
	return unused < 0 ? NULL : open_device(group, unused, way);
}

void shunt_devices_close(struct shunt_group *group)
{
	if (open_devices(group) > 1)
		shunt_own_fds_close(group->loop->fds, group->bell);
	group->open = false;
	for (int i = 0; i < SHUNT_DEVICES; i++) {
		struct shunt_device *device = &group->devices[i];

		if (!device->open)
			continue;
		destroy_cqs(group, device);
		device->kind->free_channel(device);
		device->kind->close(device);
		*device = (struct shunt_device) { .closed_until = device->closed_until };
	}
	group->cqs = (struct shunt_cqs) { .count = 0 };
	group->polled = (struct shunt_polled) { .turn = 0 };
	group->bell = 0;
}

void shunt_devices_abandon(struct shunt_group *group)
{
	for (int i = 0; i < SHUNT_DEVICES; i++)
		if (group->devices[i].open)
			group->devices[i].kind->abandon(&group->devices[i]);
	if (open_devices(group) > 1)
		shunt_own_fds_close(group->loop->fds, group->bell);
	*group = (struct shunt_group){ .hooks = group->hooks,
				       .config = group->config,
				       .sys = group->sys,
				       .loop = group->loop,
				       .fault = group->fault,
				       .common = group->common,
				       .single_core = group->single_core,
				       .finished = group->finished };
	shunt_lock_rank(&group->lock, SHUNT_RANK_GROUP);
	shunt_lock_rank(&group->seats_lock, SHUNT_RANK_SEATS);
}

struct ibv_cq *shunt_devices_cq(struct shunt_group *group, struct shunt_device *device)
{
	uint32_t least = UINT32_MAX;
	bool full;

	for (uint32_t i = 0; i < group->cqs.count; i++)
		if (is_of(group->cqs.of[i], device) &&
		    (least == UINT32_MAX || group->cqs.lanes[i] < group->cqs.lanes[least]))
			least = i;
	if (least != UINT32_MAX && group->cqs.lanes[least] < device->cq_room)
		return group->cqs.of[least];
	shunt_lock_take(&group->lock);
	least = group->cqs.count;
	full = !add_cq(group, device);
	shunt_lock_leave(&group->lock);
	return full ? NULL : group->cqs.of[least];
}

void shunt_devices_count(struct shunt_group *group, const struct ibv_cq *cq, int change)
{
	for (uint32_t i = 0; i < group->cqs.count; i++)
		if (group->cqs.of[i] == cq)
			group->cqs.lanes[i] += change;
}
