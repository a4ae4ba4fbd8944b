/* SPDX-License-Identifier: MIT */
#include "core/peer/meeting.h"
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/address.h"
#include "core/fd/own_fds.h"
#include "core/leave.h"
#include "core/peer/links.h"
#include "core/peer/meeting_dir.h"
#include "core/peer/rendezvous.h"
#include "core/service.h"
#include "core/stream/decision.h"

#define NAMES 64		/* that a process has there, at most */
#define ADDRESSES 32		/* of the network namespace that are offered, at most */
#define RETRY_NS 10000000ull	/* after a first failure; twice that after the second, and so on */
#define RETRY_LOG 10		/* at most so often */

struct taken {
	struct shunt_name name;
	bool wanted;
};

struct shunt_meeting {
	struct shunt_service *service;
	struct taken names[NAMES];		/* of the socket, but its own; rendezvous_lock, as is the next */
	int count;
	struct shunt_source watch_source;
	int watch_fd;				/* the kernel tells of addresses; -1 */
	uint32_t failures;			/* to take names, in a row */
	bool told;				/* why the directory cannot be used */
};

/* --- the addresses of the network namespace --- */

struct addresses {
	uint8_t of[ADDRESSES][16];
	int count;
};

/* Loopback's and those of one wire mean something else in another network namespace. */
static bool is_offered(const uint8_t address[16])
{
	struct in6_addr v6;

	memcpy(&v6, address, 16);
	return shunt_address_is_v4(address) ?
		       address[12] != 127 :
		       !IN6_IS_ADDR_LOOPBACK(&v6) && !IN6_IS_ADDR_LINKLOCAL(&v6);
}

static void add_address(struct addresses *addresses, const struct sockaddr *address)
{
	uint8_t (*next)[16] = &addresses->of[addresses->count];
	struct sockaddr_storage storage = { .ss_family = address->sa_family };
	uint16_t port;

	memcpy(&storage, address,
	       address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
						sizeof(struct sockaddr_in));
	if (!shunt_address_of(&storage, *next, &port) && is_offered(*next))
		addresses->count++;
}

static void find_addresses(struct shunt_engine *engine, struct addresses *addresses)
{
	struct ifaddrs *all = NULL;

	addresses->count = 0;
	shunt_own_fds_begin(&engine->fds);
	if (getifaddrs(&all))
		all = NULL;
	for (struct ifaddrs *one = all; one && addresses->count < ADDRESSES; one = one->ifa_next)
		if (one->ifa_addr &&
		    (one->ifa_addr->sa_family == AF_INET || one->ifa_addr->sa_family == AF_INET6))
			add_address(addresses, one->ifa_addr);
	freeifaddrs(all);
	shunt_own_fds_end(&engine->fds);
}

/* Which addresses there are does not matter: they are all looked at. */
static void addresses_changed(struct shunt_source *source, uint32_t events)
{
	struct shunt_meeting *meeting = shunt_loop_owner(source, struct shunt_meeting,
							 watch_source);
	struct shunt_service *service = meeting->service;
	char bytes[4096];
	struct iovec iov = { bytes, sizeof(bytes) };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

	(void)events;
	while (service->engine->sys->recvmsg(meeting->watch_fd, &message, MSG_DONTWAIT) > 0)
		;
	shunt_task_at(&service->tasks.meeting, 0);
}

static void meeting_watch(struct shunt_service *service, struct shunt_meeting *meeting)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR };
	struct shunt_engine *engine = service->engine;
	int fd;

	if (meeting->watch_fd >= 0)
		return;
	fd = shunt_own_fds_make(&engine->fds, engine->sys->socket(AF_NETLINK,
							    SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
							    NETLINK_ROUTE));
	if (fd < 0)
		return;
	meeting->watch_source.ready = addresses_changed;
	if (engine->sys->bind(fd, (struct sockaddr *)&address, sizeof(address)) ||
	    shunt_loop_add(&engine->loop, fd, &meeting->watch_source, EPOLLIN)) {
		shunt_own_fds_close(&engine->fds, fd);
		return;
	}
	meeting->watch_fd = fd;
}

/* --- which names are wanted --- */

static void want(struct shunt_meeting *meeting, const struct shunt_name *name)
{
	struct taken *taken = meeting->names;

	for (; taken < meeting->names + meeting->count; taken++) {
		if (shunt_rendezvous_is_among(name, &taken->name, 1)) {
			taken->wanted = true;
			return;
		}
	}
	if (meeting->count == NAMES)
		return;
	meeting->count++;
	*taken = (struct taken) { .name = *name, .wanted = true };
}

/* rendezvous_lock held. */
static void want_rendezvous(struct shunt_meeting *meeting, const struct shunt_rendezvous *r,
			    const struct addresses *here)
{
	uint16_t port = htons((uint16_t)atoi(strrchr(r->name.text + 1, ':') + 1));
	struct shunt_name name;

	for (int i = 0; i < here->count; i++) {
		if (!shunt_rendezvous_covers(&r->name, here->of[i], port))
			continue;
		shunt_rendezvous_meeting(here->of[i], port, &name);
		want(meeting, &name);
	}
}

static bool owns_any(const struct shunt_engine *engine)
{
	const struct shunt_rendezvous *r = engine->rendezvous;

	while (r && r->fd < 0)
		r = r->next;
	return r != NULL;
}

/* --- taking them --- */

static struct shunt_meeting *meeting_make(struct shunt_service *service)
{
	struct shunt_meeting *meeting = calloc(1, sizeof(*meeting));

	if (!meeting)
		return NULL;
	meeting->watch_fd = -1;
	meeting->service = service;
	service->meeting = meeting;
	return meeting;
}

static void tell_unusable(struct shunt_meeting *meeting)
{
	if (!meeting->told)
		shunt_log(
			SHUNT_LOG_WARN,
			"SHUNT_DIR=%s cannot be used: it is to be the absolute path of a directory of root or "
			"this user, which is sticky if others may write in it; no symbolic link",
			meeting->service->engine->config.dir);
	meeting->told = true;
}

/* The socket of this process. 0 or -errno. */
static int open_door(struct shunt_service *service, int dir)
{
	struct shunt_rendezvous *door = &service->meeting_place;
	struct shunt_engine *engine = service->engine;

	if (door->fd >= 0)
		return 0;
	shunt_meeting_dir_sweep(engine, dir);
	shunt_rendezvous_process_meeting(&engine->identity, &door->name);
	door->fd = shunt_meeting_dir_listen(engine, dir, door->name.text + 1);
	if (door->fd < 0)
		return door->fd;
	door->source.ready = shunt_links_welcome;
	door->service = service;
	return shunt_loop_add(&engine->loop, door->fd, &door->source, EPOLLIN);
}

/* rendezvous_lock held. False: a name that is wanted has another owner, or its directory is locked. */
static bool take_names(struct shunt_engine *engine, struct shunt_meeting *meeting, int dir)
{
	struct taken *kept = meeting->names;
	bool all = true;

	for (struct taken *taken = meeting->names; taken < meeting->names + meeting->count;
	     taken++) {
		if (!taken->wanted) {
			shunt_meeting_dir_drop(dir, meeting->service->meeting_place.name.text + 1,
					       taken->name.text + 1);
		} else if (shunt_meeting_dir_link(engine, dir,
						  meeting->service->meeting_place.name.text + 1,
						  taken->name.text + 1)) {
			all = false;
		} else {
			taken->wanted = false;
			*kept++ = *taken;
		}
	}
	meeting->count = (int)(kept - meeting->names);
	return all;
}

/* The directory is opened anew each time: the program may have another root by now, or another user. */
static int open_all(struct shunt_service *service, struct shunt_meeting *meeting)
{
	struct shunt_engine *engine = service->engine;
	int dir = shunt_meeting_dir_open(engine, engine->config.dir);
	int result = dir < 0 ? dir : open_door(service, dir);

	if (!result)
		return dir;
	tell_unusable(meeting);
	shunt_own_fds_close(&engine->fds, dir);
	return result;
}

static void retry(struct shunt_task *task, struct shunt_engine *engine,
		  struct shunt_meeting *meeting)
{
	uint32_t log = meeting->failures < RETRY_LOG ? meeting->failures : RETRY_LOG;

	meeting->failures++;
	shunt_task_at(task, shunt_now(engine) + (RETRY_NS << log));
}

/* rendezvous_lock held. */
static bool meeting_offer(struct shunt_engine *engine, struct shunt_meeting *meeting, int dir,
			  const struct addresses *here)
{
	for (const struct shunt_rendezvous *r = engine->rendezvous; r; r = r->next)
		if (r->fd >= 0)
			want_rendezvous(meeting, r, here);
	return take_names(engine, meeting, dir);
}

void shunt_meeting_run(struct shunt_task *task)
{
	struct shunt_service *service = shunt_service_of(task, meeting);
	struct shunt_engine *engine = service->engine;
	struct shunt_meeting *meeting = service->meeting;
	struct addresses here;
	bool all = true, any;
	int dir;

	shunt_lock_take(&engine->rendezvous_lock);
	any = owns_any(engine);
	shunt_lock_leave(&engine->rendezvous_lock);
	if (!engine->config.dir[0] || atomic_load(&service->leaving) || !(any || meeting) ||
	    !(meeting || (meeting = meeting_make(service)) != NULL))
		return;
	dir = open_all(service, meeting);
	if (dir < 0)
		return;
	meeting_watch(service, meeting);
	find_addresses(engine, &here);
	shunt_lock_take(&engine->rendezvous_lock);
	if (!engine->group.finished)
		all = meeting_offer(engine, meeting, dir, &here);
	shunt_lock_leave(&engine->rendezvous_lock);
	shunt_own_fds_close(&engine->fds, dir);
	if (all)
		meeting->failures = 0;
	else
		retry(task, engine, meeting);
}

void shunt_meeting_open(struct shunt_service *service)
{
	struct shunt_meeting *meeting = service->meeting;

	if (!service->engine->config.dir[0] || service->meeting_place.fd >= 0 ||
	    !(meeting || (meeting = meeting_make(service)) != NULL))
		return;
	shunt_own_fds_close(&service->engine->fds, open_all(service, meeting));
}

/* --- the claimant --- */

int shunt_meeting_connect(struct shunt_service *service, struct shunt_stream *stream,
			  struct shunt_name *name)
{
	struct shunt_engine *engine = service->engine;
	bool strange;
	int fd;

	if (!engine->config.dir[0])
		return -ENOENT;
	shunt_rendezvous_meeting(stream->tuple.peer, stream->tuple.peer_port, name);
	fd = shunt_rendezvous_knock(engine, name, &strange);
	if (fd == -ENODEV && (service->meeting || meeting_make(service)))
		tell_unusable(service->meeting);
	shunt_decision_step(stream, "SHUNT_DIR, %s: %s (%d)", name->text + 1,
			    fd < 0 ? "error" : "connected", abs(fd));
	return fd;
}

/* --- the end --- */

/* rendezvous_lock held. The socket's own name is the last: others are removed while it has an owner. */
static void drop_names(struct shunt_engine *engine, struct shunt_meeting *meeting)
{
	int dir = meeting->service->meeting_place.fd < 0 ?
			  -1 :
			  shunt_meeting_dir_open(engine, engine->config.dir);
	const char *own = meeting->service->meeting_place.name.text + 1;

	for (int i = 0; dir >= 0 && i < meeting->count; i++)
		shunt_meeting_dir_drop(dir, own, meeting->names[i].name.text + 1);
	if (dir >= 0)
		shunt_meeting_dir_drop(dir, own, own);
	shunt_own_fds_close(&engine->fds, dir);
	meeting->count = 0;
}

static void meeting_release(struct shunt_service *service)
{
	struct shunt_meeting *meeting = service->meeting;

	service->meeting = NULL;
	shunt_own_fds_close(&service->engine->fds, meeting->watch_fd);
	free(meeting);
}

void shunt_meeting_end(struct shunt_service *service)
{
	struct shunt_engine *engine = service->engine;
	struct shunt_meeting *meeting = service->meeting;
	struct shunt_crowd crowd = { .count = 0 };

	if (!meeting)
		return;
	shunt_lock_take(&engine->rendezvous_lock);
	drop_names(engine, meeting);
	shunt_lock_leave(&engine->rendezvous_lock);
	shunt_porter_close(&engine->porter, service->meeting_place.fd, &crowd);
	service->meeting_place.fd = -1;
	meeting_release(service);
	shunt_porter_dismiss_all(&engine->porter, &crowd);
}

void shunt_meeting_finish(struct shunt_engine *engine)
{
	struct shunt_service *service = engine->service;

	if (!service || !engine->config.dir[0])
		return;
	shunt_lock_take(&engine->rendezvous_lock);
	if (service->meeting)
		drop_names(engine, service->meeting);
	shunt_lock_leave(&engine->rendezvous_lock);
}

void shunt_meeting_abandon(struct shunt_service *service)
{
	if (!service->meeting)
		return;
	shunt_own_fds_close(&service->engine->fds, service->meeting_place.fd);
	meeting_release(service);
}
