/* SPDX-License-Identifier: MIT */
#include "core/peer/deaf.h"
#include "core/peer/links.h"
#include "core/fd/own_fds.h"
#include "core/recovery/failover.h"
#include "core/stream/spare.h"
#include "core/stream/sleep.h"
#include "core/stream/wait.h"
#include <errno.h>
#include "core/peer/silent.h"
#include "core/peer/limits.h"
#include "core/peer/link_end.h"
#include "core/peer/link_make.h"
#include "core/poll/devices.h"
#include "core/recovery/keepalive.h"
#include "core/service.h"

void shunt_links_list(struct shunt_service *service, struct shunt_link *link)
{
	link->next = service->links;
	service->links = link;
	shunt_task_at(&service->tasks.limits, link->hello_by);
}

void shunt_links_add(struct shunt_service *service, struct shunt_link *link)
{
	shunt_links_list(service, link);
	if (shunt_loop_add(&service->engine->loop, link->channel.fd, &link->source, shunt_link_events(link)))
		shunt_link_kill(link, "out of memory");
}

static void let_in(struct shunt_service *service, const struct shunt_rendezvous *rendezvous, int fd,
		   bool strange)
{
	struct shunt_engine *engine = service->engine;
	struct shunt_channel channel;
	struct shunt_link *link;

	shunt_channel_init(&channel, &engine->links, SHUNT_CHANNEL_UNIX, fd);
	if (shunt_rendezvous_is_meeting(&rendezvous->name))
		shunt_channel_other_netns(&channel);
	else if (strange)
		shunt_channel_strange(&channel);
	else
		shunt_porter_trust(&engine->porter, fd);
	link = shunt_link_create(engine, &channel, false, NULL);
	if (link)
		shunt_links_add(service, link);
}

static void links_welcome(struct shunt_service *service, const struct shunt_rendezvous *rendezvous,
			  int door)
{
	bool other_netns = shunt_rendezvous_is_meeting(&rendezvous->name), strange;
	struct shunt_engine *engine = service->engine;
	int fd;

	while ((fd = shunt_rendezvous_accept(engine, door, &strange)) >= 0) {
		if (shunt_limits_link(service, fd, strange || other_netns))
			let_in(service, rendezvous, fd, strange);
		else
			shunt_porter_dismiss(&engine->porter, fd);
	}
	if (fd == -EPERM)
		shunt_log(SHUNT_LOG_INFO, "rendezvous %s: another user's process came, and is not let in",
			  rendezvous->name.text + 1);
}

void shunt_links_welcome(struct shunt_source *source, uint32_t events)
{
	struct shunt_rendezvous *rendezvous =
		shunt_loop_owner(source, struct shunt_rendezvous, source);

	(void)events;
	if (shunt_deaf_shuts(rendezvous->service))
		return;
	links_welcome(rendezvous->service, rendezvous, rendezvous->fd);
	if (rendezvous->abstract_fd >= 0)
		links_welcome(rendezvous->service, rendezvous, rendezvous->abstract_fd);
	shunt_limits_tell(rendezvous->service);
}

/* The waiters and epoll sets of every stream. */
static void tell_all(struct shunt_link *link, uint32_t what)
{
	struct shunt_stream *stream;

	shunt_assert_service_thread(link->engine);
	shunt_streams_seated(link, stream) shunt_sleep_tell(stream, what);
}

/* Senders whose HANDBACK was on its way may go on over TCP; seats that were refused are let go. */
static void links_settle(struct shunt_service *service)
{
	for (struct shunt_link *link = service->links; link; link = link->next) {
		for (uint32_t i = 0; i < link->lane_count; i++) {
			struct shunt_lane *lane = &link->lanes[i];

			if (!atomic_exchange(&lane->unsettled, false) || !shunt_lane_settled(lane))
				continue;
			tell_all(link, EPOLLOUT | SHUNT_READY_SETTLED);
			link->engine->link_hooks->settled(link, lane);
			link->engine->link_hooks->up(link);	/* it may have had to show that it works */
		}
	}
}

void shunt_links_bury(struct shunt_service *service)
{
	shunt_assert_service_thread(service->engine);
	shunt_assert_held(&service->engine->group.seats_lock);
	for (struct shunt_link **p = &service->links; *p;) {
		struct shunt_link *link = *p;

		shunt_silent_look(service, link);
		if (atomic_load(&link->distrusted) || shunt_failover_over(link) ||
		    (atomic_load(&link->failed) && atomic_load(&link->state) == SHUNT_LINK_HELLO))
			shunt_link_kill(link, link->failure ? link->failure : "its streams have gone over to TCP");
		else if (atomic_load(&link->failed) && atomic_load(&link->state) == SHUNT_LINK_UP)
			shunt_link_break(link, link->failure ? link->failure : "a queue pair failed");
		if (atomic_load(&link->state) == SHUNT_LINK_BROKEN && !link->seated)
			shunt_link_strip(link);
		if (atomic_load(&link->state) == SHUNT_LINK_DEAD && !link->seated) {
			*p = link->next;
			shunt_keepalive_forget(link);
			shunt_link_destroy(link);
			continue;
		}
		p = &link->next;
	}
}

void shunt_links_run(struct shunt_task *task)
{
	struct shunt_service *service = shunt_service_of(task, links);

	links_settle(service);
	shunt_links_bury(service);
	if (shunt_streams_reap(service->engine))
		shunt_links_bury(service);	/* one may have lost its last stream, and perhaps nothing wakes us again */
	shunt_spares_look(&service->engine->group);
	shunt_limits_tell(service);
}

/* --- devices --- */

static struct shunt_group *device_group(const struct shunt_device *device)
{
	return &shunt_engine_of(device->loop, loop)->group;
}

void shunt_links_qp_failed(struct shunt_device *device, const struct ibv_qp *qp, const char *why)
{
	struct shunt_group *group = device_group(device);

	shunt_lock_take(&group->lock);
	for (struct shunt_lane *lane = group->lanes; lane; lane = lane->next_in_group)
		if (lane->link->device == device && (!qp || lane->qp == qp))
			lane->link->engine->link_hooks->failed(lane->link, why);
	shunt_lock_leave(&group->lock);
}

void shunt_links_cq_failed(struct shunt_device *device, const struct ibv_cq *cq)
{
	struct shunt_group *group = device_group(device);

	shunt_lock_take(&group->lock);
	for (struct shunt_lane *lane = group->lanes; lane; lane = lane->next_in_group)
		if (lane->link->device == device && lane->qp->send_cq == cq)
			lane->link->engine->link_hooks->failed(lane->link,
							       "a completion queue overflowed");
	shunt_lock_leave(&group->lock);
}

void shunt_links_device_lost(struct shunt_device *device)
{
	const struct shunt_engine *engine = shunt_engine_of(device_group(device), group);

	for (struct shunt_link *link = engine->service ? engine->service->links : NULL; link;
	     link = link->next)
		if (link->device == device)	/* with lanes or without */
			shunt_link_fail(link, "the device was removed or reset");
	shunt_devices_silence(device_group(device), device);
}

/* The link stays until the service thread buries it, which this is. */
void shunt_links_qp_joined(struct shunt_device *device, const struct ibv_qp *qp)
{
	struct shunt_group *group = device_group(device);
	struct shunt_link *link = NULL;

	shunt_lock_take(&group->lock);
	for (struct shunt_lane *lane = group->lanes; lane && !link; lane = lane->next_in_group)
		if (lane->qp == qp)
			link = lane->link;
	shunt_lock_leave(&group->lock);
	if (link)
		link->engine->link_hooks->joined(link);
}
