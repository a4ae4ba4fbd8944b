/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "core/poll/devices.h"
#include "core/fd/own_fds.h"
#include "core/fd/loading.h"
#include "core/poll/sleeper.h"
#include "core/poll/group.h"
#include "core/device/selftest.h"
#include "core/base/config.h"
#include "core/loop/loop.h"
#include "core/base/log.h"

#define CLOSED_NS 10000000000ull	/* between two looks for a device */

static bool is_of(const struct ibv_cq *cq, const struct shunt_device *device)
{
	return cq->context == device->context;
}

/* The last one takes its place. group.lock held. */
static void remove_cq(struct shunt_group *group, uint32_t at)
{
	struct shunt_cqs *cqs = &group->cqs;
	uint32_t last = --cqs->count;

	cqs->of[at] = cqs->of[last];
	cqs->lanes[at] = cqs->lanes[last];
	cqs->room[at] = cqs->room[last];
	group->polled.turn = 0;
}

static void destroy_cqs(struct shunt_group *group, struct shunt_device *device)
{
	for (uint32_t i = group->cqs.count; i-- > 0;) {
		if (!is_of(group->cqs.of[i], device))
			continue;
		device->verbs->destroy_cq(group->cqs.of[i]);
		remove_cq(group, i);
	}
}

/* Its share of the machine's interrupts: processes, and the CQs of one, begin with different vectors. */
static int vector_of(const struct shunt_group *group, const struct shunt_device *device)
{
	int count = device->context->num_comp_vectors;

	return count > 1 ? (int)((device->first_vector + group->cqs.count) % (uint32_t)count) : 0;
}

/* Providers round a power of two up to the next: lanes use one less than their share of what is doubted (shunt_lane_slots). */
static struct ibv_cq *create_cq(struct shunt_group *group, struct shunt_device *device,
				uint32_t lanes)
{
	uint32_t entries = lanes * (device->rq_depth + device->sq_depth) - device->kind->doubted;

	return device->verbs->create_cq(device->context, (int)entries, device, device->channel,
					vector_of(group, device));
}

/* A process with one peer pins little memory: each CQ is for twice the lanes of the one before. */
static uint32_t lanes_of(const struct shunt_group *group, const struct shunt_device *device)
{
	uint32_t most = device->limits.max_cqe < SHUNT_CQ_ENTRIES ?
				(uint32_t)device->limits.max_cqe :
				SHUNT_CQ_ENTRIES;
	uint32_t lanes = device->kind->cq_lanes, depth = device->rq_depth + device->sq_depth;

	for (uint32_t i = 0; i < group->cqs.count && lanes < SHUNT_CQ_ENTRIES; i++)
		lanes *= is_of(group->cqs.of[i], device) ? 2 : 1;
	most += device->kind->doubted;
	return lanes <= most / depth ? lanes : most / depth;
}

/* All of a device are on one channel. 0 or -errno. group.lock held. */
static int add_cq(struct shunt_group *group, struct shunt_device *device)
{
	uint32_t lanes, at = group->cqs.count;
	struct ibv_cq *cq = NULL;

	if (at == SHUNT_CQS_MAX)
		return -ENOBUFS;
	for (lanes = lanes_of(group, device); lanes && !cq; lanes = cq ? lanes : lanes / 2) {	/* max_cqe may be more than it takes (ionic) */
		errno = ENOMEM;
		cq = create_cq(group, device, lanes);
	}
	if (!cq)
		return lanes_of(group, device) ? -errno : -ENOBUFS;
	group->cqs.lanes[at] = 0;
	group->cqs.room[at] = lanes;
	group->cqs.of[group->cqs.count++] = cq;
	return 0;
}

uint32_t shunt_devices_depth(uint64_t wanted, uint32_t most)
{
	uint32_t depth = 1;

	while (depth <= most / 2 && 2 * (uint64_t)depth <= wanted)
		depth *= 2;
	return depth;
}

static uint32_t inline_wanted(const struct shunt_group *group, const struct shunt_device *device)
{
	uint64_t wanted = group->config->inline_bytes;

	return wanted < device->kind->max_inline ? (uint32_t)wanted : device->kind->max_inline;
}

/* Its channel, its limits, its first CQs. 0 or -errno. */
static int prepare(struct shunt_group *group, struct shunt_device *device)
{
	uint32_t count = 0;
	int result = device->kind->make_channel(device);

	if (result)
		return result;
	result = -device->verbs->query_device(device->context, &device->limits);
	if (result)
		goto free_channel;
	shunt_imm_limit(device, &device->limits);
	device->rq_depth = shunt_devices_depth(group->config->rq_depth, device->limits.max_qp_wr);
	device->sq_depth = shunt_devices_depth(group->config->sq_depth, device->limits.max_qp_wr);
	device->first_vector = (uint32_t)(group->sys->now() / 1000) + (uint32_t)getpid();
	if (device->kind->doubted)
		result = shunt_selftest(device, inline_wanted(group, device));
	shunt_lock_take(&group->lock);
	while (!result && count < group->config->cqs) {
		result = add_cq(group, device);
		count += !result;
	}
	shunt_lock_leave(&group->lock);
	if (count)
		return 0;
free_channel:
	device->kind->free_channel(device);
	return result;
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
				      enum shunt_cause cause, const char *error)
{
	shunt_log(SHUNT_LOG_WARN, "connections stay on TCP: %s", error);
	shunt_lock_take(&group->lock);
	snprintf(group->device_error, sizeof(group->device_error), "%s", error);
	shunt_lock_leave(&group->lock);
	group->device_cause = cause;
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
	char text[SHUNT_CAUSE_ROOM];
	enum shunt_cause cause;
	int result;

	if (group->sys->now() < device->closed_until)
		return NULL;
	device->loop = group->loop;
	device->group = group;
	device->fault = group->fault;
	device->hooks = &group->hooks->device;
	device->imm = (struct shunt_imm_calls) { 0 };
	device->most_inline = UINT32_MAX;
	device->kind = which == SHUNT_SOFT ? &shunt_device_soft : &shunt_device_verbs;
	if (device->kind->open(device, wanted_name(group), way, error, sizeof(error)))
		return no_device(group, device, SHUNT_CAUSE_NO_DEVICE, error);
	result = prepare(group, device);
	if (result)
		goto close_device;
	result = hang_bell(group, device);
	if (result)
		goto destroy_cqs;
	shunt_lock_take(&group->lock);
	group->device_error[0] = 0;
	shunt_lock_leave(&group->lock);
	group->device_cause = SHUNT_CAUSE_NONE;
	return device;

destroy_cqs:
	shunt_lock_take(&group->lock);
	destroy_cqs(group, device);
	shunt_lock_leave(&group->lock);
	device->kind->free_channel(device);
close_device:
	cause = device->kind->shortage(SHUNT_SHORT_OF_QUEUES, result);
	snprintf(error, sizeof(error), "%s: %s (%s)", device->context->device->name,
		 shunt_cause_say(cause, text), strerror(-result));
	device->kind->close(device);
	return no_device(group, device, cause, error);
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

static bool is_of_gone(const struct shunt_group *group, const struct ibv_cq *cq)
{
	for (int i = 0; i < SHUNT_DEVICES; i++)
		if (group->devices[i].open && group->devices[i].gone &&
		    is_of(cq, &group->devices[i]))
			return true;
	return false;
}

/* Queues of devices that were taken away are polled as long as lanes complete there. group.lock held. */
static void forget_idle_cqs(struct shunt_group *group)
{
	for (uint32_t i = group->cqs.count; i-- > 0;)
		if (!group->cqs.lanes[i] && is_of_gone(group, group->cqs.of[i]))
			remove_cq(group, i);
}

/*
 * The channel of a device that was taken away is ready for ever, with an error, and would keep sleepers awake. So its
 * number becomes that of an eventfd that nobody writes. The device keeps its slot, because links, channels and pages
 * name it; another slot is used when it is opened anew.
 */
void shunt_devices_silence(struct shunt_group *group, struct shunt_device *device)
{
	uint64_t until = group->sys->now() + CLOSED_NS;
	int quiet = shunt_own_fds_make(group->loop->fds, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
	    fd = device->channel->fd;

	group->device_cause = SHUNT_CAUSE_NO_DEVICE;
	shunt_lock_take(&group->lock);
	forget_idle_cqs(group);
	shunt_lock_leave(&group->lock);
	for (int i = SHUNT_VERBS; i <= SHUNT_VERBS_LAST; i++)
		if (!group->devices[i].open)
			group->devices[i].closed_until = until;
	if (open_devices(group) > 1)
		group->sys->epoll_ctl(group->bell, EPOLL_CTL_DEL, fd, NULL);
	if (quiet < 0)
		return;
	group->sys->dup3(quiet, fd, O_CLOEXEC);
	shunt_own_fds_close(group->loop->fds, quiet);
}

struct shunt_device *shunt_devices_open(struct shunt_group *group, enum shunt_which which)
{
	enum shunt_which last = which == SHUNT_SOFT ? SHUNT_SOFT : SHUNT_VERBS_LAST;

	for (enum shunt_which i = which; i <= last; i++)
		if (group->devices[i].open && !group->devices[i].gone)
			return &group->devices[i];
	for (enum shunt_which i = which; i <= last; i++)
		if (!group->devices[i].open)
			return open_device(group, i, NULL);
	return NULL;
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
	shunt_lock_take(&group->lock);
	shunt_waiters_end(group);
	shunt_lock_leave(&group->lock);
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
				       .tapping = group->tapping,
				       .single_core = group->single_core,
				       .finished = group->finished };
	shunt_lock_rank(&group->lock, SHUNT_RANK_GROUP);
	shunt_lock_rank(&group->seats_lock, SHUNT_RANK_SEATS);
}

struct ibv_cq *shunt_devices_cq(struct shunt_group *group, struct shunt_device *device)
{
	uint32_t least = UINT32_MAX;
	int result;

	for (uint32_t i = 0; i < group->cqs.count; i++)
		if (is_of(group->cqs.of[i], device) && group->cqs.lanes[i] < group->cqs.room[i] &&
		    (least == UINT32_MAX || group->cqs.lanes[i] < group->cqs.lanes[least]))
			least = i;
	if (least != UINT32_MAX)
		return group->cqs.of[least];
	shunt_lock_take(&group->lock);
	least = group->cqs.count;
	result = add_cq(group, device);
	shunt_lock_leave(&group->lock);
	if (!result)
		return group->cqs.of[least];
	errno = -result;
	return NULL;
}

void shunt_devices_count(struct shunt_group *group, const struct ibv_cq *cq, int change)
{
	for (uint32_t i = 0; i < group->cqs.count; i++)
		if (group->cqs.of[i] == cq)
			group->cqs.lanes[i] += change;
	if (change < 0)
		forget_idle_cqs(group);
}
