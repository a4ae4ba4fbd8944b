/* SPDX-License-Identifier: MIT */
#include "core/peer/remote.h"
#include "core/base/space.h"
#include "core/engine.h"
#include "core/device/device_verbs.h"
#include "core/device/iwarp.h"
#include "core/fd/own_fds.h"
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include "core/base/address.h"
#include "core/leave.h"
#include "core/peer/claim_state.h"
#include "core/peer/link_make.h"
#include "core/peer/links.h"
#include "core/peer/remote_ask.h"
#include "core/peer/remote_course.h"
#include "core/peer/remote_guest.h"
#include "core/peer/remote_reply.h"
#include "core/poll/devices.h"
#include "core/service.h"
#include "core/stream/decision.h"
#include "core/stream/tuple.h"

#define CLOSED_NS 10000000000ull /* between two looks for a connection manager */

/* --- opening --- */

/* Nothing is opened on machines that have none. */
static bool machine_has_device(struct shunt_engine *engine)
{
	struct dirent *entry;
	bool any = false;
	DIR *dir;

	shunt_own_fds_begin(&engine->fds);
	dir = opendir("/sys/class/infiniband");
	while (dir && !any && (entry = readdir(dir)) != NULL)
		any = entry->d_name[0] != '.';
	if (dir)
		closedir(dir);
	shunt_own_fds_end(&engine->fds);
	return any;
}

static bool machine_has_iwarp(struct shunt_engine *engine)
{
	bool any;

	shunt_own_fds_begin(&engine->fds);
	any = shunt_iwarp_is_there("");
	shunt_own_fds_end(&engine->fds);
	return any;
}

static bool is_wanted(struct shunt_engine *engine)
{
	return engine->device_choice == SHUNT_DEVICE_VERBS ||
	       (engine->device_choice == SHUNT_DEVICE_AUTO && !engine->loop.manual &&
		machine_has_device(engine));
}

static const struct cm_callbacks callbacks = {
	.question = shunt_remote_reply_cm,
	.answer = shunt_remote_answered,
	.keep = shunt_own_fds_keep,
	.drop = shunt_own_fds_drop,
};

static void step(struct shunt_remote *remote)
{
	struct shunt_engine *engine = remote->service->engine;

	shunt_remote_enter(&engine->fds);
	cm_step(&remote->cm, shunt_remote_ms(engine));
	for (int i = 0; i < 2; i++)
		if (remote->gates[i].fd >= 0)
			shunt_remote_listener_step(&remote->gates[i]);
	if (remote->directory.fd >= 0)
		shunt_directory_step(&remote->directory);
	shunt_remote_leave(&engine->fds);
}

void shunt_remote_hear(struct shunt_service *service)
{
	step(service->remote);
}

static void cm_ready(struct shunt_source *source, uint32_t events)
{
	(void)events;
	shunt_remote_hear(shunt_loop_owner(source, struct shunt_remote, cm_source)->service);
}

static void gate_ready(struct shunt_source *source, uint32_t events)
{
	(void)events;
	shunt_remote_hear(shunt_loop_owner(source, struct shunt_remote, gate_source)->service);
}

static void directory_ready(struct shunt_source *source, uint32_t events)
{
	(void)events;
	shunt_remote_hear(shunt_loop_owner(source, struct shunt_remote, directory_source)->service);
}

static bool open_all(struct shunt_remote *remote)
{
	struct shunt_service *service = remote->service;
	struct shunt_engine *engine = service->engine;

	if (!shunt_devices_open(&engine->group, SHUNT_VERBS))
		return false;
	if (cm_open(&remote->cm, &callbacks, &engine->fds)) {
		shunt_log(SHUNT_LOG_WARN, "connections to other hosts stay on TCP: %s", remote->cm.error);
		return false;
	}
	shunt_device_note_helpers(engine->fds.files);
	remote->cm_source.ready = cm_ready;
	if (shunt_loop_add(&engine->loop, cm_fd(&remote->cm), &remote->cm_source, EPOLLIN)) {
		cm_close(&remote->cm);
		return false;
	}
	return true;
}

/* NULL: there is no way to other hosts. */
static struct shunt_remote *get(struct shunt_service *service)
{
	struct shunt_remote *remote = service->remote;
	struct shunt_engine *engine = service->engine;

	if (!remote) {
		/* How much address space libraries and queues of RDMA take is not known. */
		if (shunt_space_is_limited() || !is_wanted(engine) || engine->lacks_key)
			return NULL;
		remote = calloc(1, sizeof(*remote));
		if (!remote)
			return NULL;
		remote->service = service;
		remote->gate_source.ready = gate_ready;
		remote->directory_source.ready = directory_ready;
		remote->gates[0].fd = remote->gates[1].fd = remote->directory.fd = -1;
		remote->iwarp = machine_has_iwarp(engine);
		service->remote = remote;
	}
	if (remote->open || shunt_now(engine) < remote->closed_until)
		return remote->open ? remote : NULL;
	shunt_remote_enter(&engine->fds);
	remote->open = open_all(remote);
	shunt_remote_leave(&engine->fds);
	if (!remote->open)
		remote->closed_until = shunt_now(engine) + CLOSED_NS;
	return remote->open ? remote : NULL;
}

/* --- listening --- */

/* Where a rendezvous is to be offered to other hosts. rendezvous_lock held: the listener is open. */
static bool address_of_listener(struct shunt_engine *engine, const struct shunt_rendezvous *rendezvous,
				union cm_address *address, bool *only_v6)
{
	socklen_t length = sizeof(*address);
	int fd = rendezvous->listener->fd;

	if (fd < 0 || engine->sys->getsockname(fd, &address->any, &length))
		return false;
	*only_v6 = shunt_address_only_v6(engine->sys, fd, address->any.sa_family);
	return true;
}

/*
 * At an iWARP device a listener of the connection manager takes the TCP port. One at a wildcard, or at loopback's
 * addresses, which belong to no device, listens at all devices: the directory answers for it.
 */
static bool is_for_directory(const struct shunt_remote *remote, const union cm_address *address)
{
	struct sockaddr_storage storage = { 0 };
	uint8_t ip[16];
	uint16_t port;

	memcpy(&storage, address, sizeof(*address));
	return remote->iwarp && !shunt_address_of(&storage, ip, &port) &&
	       shunt_address_is_loopback(ip);
}

static void remote_offer(struct shunt_remote *remote, struct shunt_rendezvous *rendezvous,
			 const union cm_address *address, bool only_v6)
{
	struct shunt_engine *engine = remote->service->engine;

	if (is_for_directory(remote, address)) {
		shunt_log(
			SHUNT_LOG_INFO,
			"port %u has a rendezvous for other hosts at the directory alone: this machine has an iWARP device",
			ntohs(address->v4.sin_port));
		return;
	}
	shunt_remote_enter(&engine->fds);
	if (cm_listen(&remote->cm, &address->any, only_v6, rendezvous, &rendezvous->remote))
		shunt_log(SHUNT_LOG_INFO, "port %u has no rendezvous for other hosts: %s",
			  ntohs(address->v4.sin_port), remote->cm.error);
	shunt_remote_leave(&engine->fds);
}

/* Calls of the connection manager may take their time: not under the lock. */
static void renew(struct shunt_remote *remote, struct shunt_rendezvous *rendezvous)
{
	struct shunt_service *service = remote->service;
	struct shunt_engine *engine = service->engine;
	union cm_address address;
	bool stale, wanted, only_v6 = false;

	shunt_lock_take(&engine->rendezvous_lock);
	stale = rendezvous->remote && (rendezvous->fd < 0 || !rendezvous->tried_remote);
	wanted = rendezvous->fd >= 0 && !rendezvous->tried_remote && rendezvous->listener &&
		 address_of_listener(engine, rendezvous, &address, &only_v6);
	shunt_lock_leave(&engine->rendezvous_lock);
	if (stale) {
		cm_unlisten(&remote->cm, rendezvous->remote);
		rendezvous->remote = NULL;
	}
	rendezvous->tried_remote |= wanted;
	if (!wanted)
		return;
	rendezvous->service = service;
	remote_offer(remote, rendezvous, &address, only_v6);
}

/* Once there is a rendezvous that this process owns; for good. */
static void open_directory(struct shunt_remote *remote)
{
	struct shunt_engine *engine = remote->service->engine;
	struct shunt_directory *directory = &remote->directory;

	if (directory->fd >= 0 || !remote->iwarp || !engine->config.directory)
		return;
	directory->engine = engine;
	directory->port = htons((uint16_t)engine->config.directory);
	directory->patience = engine->config.claim_ms * 1000000;
	directory->answer = shunt_remote_reply_words;
	if (shunt_directory_open(directory))
		return;
	if (shunt_loop_add(&engine->loop, directory->fd, &remote->directory_source, EPOLLIN))
		shunt_directory_close(directory);
}

void shunt_remote_listen(struct shunt_service *service)
{
	struct shunt_remote *remote = get(service);
	struct shunt_rendezvous *rendezvous;
	bool owns = false;

	if (!remote)
		return;
	shunt_lock_take(&service->engine->rendezvous_lock);
	rendezvous = service->engine->rendezvous;	/* none is ever taken out of the list */
	shunt_lock_leave(&service->engine->rendezvous_lock);
	for (; rendezvous; rendezvous = rendezvous->next) {
		renew(remote, rendezvous);
		owns |= rendezvous->fd >= 0;
	}
	if (owns)
		open_directory(remote);
}

static enum shunt_cause why_not(struct shunt_service *service)
{
	if (!is_wanted(service->engine))
		return SHUNT_CAUSE_OTHER_HOST;
	if (service->engine->lacks_key)
		return SHUNT_CAUSE_NO_KEY;
	return shunt_space_is_limited() ? SHUNT_CAUSE_CONFINED : SHUNT_CAUSE_OTHER_HOST;
}

void shunt_remote_claim(struct shunt_service *service, struct shunt_stream *stream)
{
	struct shunt_remote *remote = get(service);

	if (!remote || !shunt_remote_ask(remote, stream))
		shunt_claim_fails(service, stream,
				  remote ? SHUNT_CAUSE_HOST_UNASKED : why_not(service));
}

/* --- workers --- */

uint16_t shunt_remote_gate(struct shunt_service *service, const struct shunt_tuple *accepted)
{
	struct shunt_remote *remote = shunt_tuple_is_local(&service->engine->fds, accepted) ?
					      NULL :
					      get(service);
	struct shunt_remote_listener *gate =
		remote ? shunt_remote_reply_gate(remote, !shunt_address_is_v4(accepted->local)) :
			 NULL;

	return gate ? gate->port : 0;
}

void shunt_remote_invited(struct shunt_service *service, const struct shunt_have *have)
{
	struct shunt_remote *remote = service->remote;
	struct shunt_remote_listener *gate;
	struct shunt_course course;

	if (!remote || !remote->open)
		return; /* it has been told of no gate */
	gate = &remote->gates[!shunt_address_is_v4(have->tuple.local)];
	course = shunt_remote_course_invited(service->engine, have);
	if (gate->fd >= 0 && course.device)
		shunt_remote_guest_invited(gate, &course, have->invitation.ticket);
}

/* --- the service thread --- */

static uint64_t first_due(struct shunt_remote *remote)
{
	uint64_t due = cm_next_deadline(&remote->cm);

	due = due == CM_NEVER ? SHUNT_NEVER : due * 1000000;
	for (int i = 0; i < 2; i++) {
		uint64_t gate = remote->gates[i].fd >= 0 ? shunt_remote_listener_due(&remote->gates[i]) : SHUNT_NEVER;

		if (gate < due)
			due = gate;
	}
	if (remote->directory.fd >= 0 && shunt_directory_due(&remote->directory) < due)
		due = shunt_directory_due(&remote->directory);
	return shunt_remote_ask_due(remote) < due ? shunt_remote_ask_due(remote) : due;
}

void shunt_remote_run(struct shunt_task *task)
{
	struct shunt_service *service = shunt_service_of(task, remote);
	struct shunt_remote *remote = service->remote;

	if (!remote || !remote->open)
		return;
	if (first_due(remote) <= shunt_now(service->engine))
		step(remote);
	shunt_remote_ask_expire(remote);
	shunt_task_at(task, first_due(remote));
}

void shunt_remote_forget(struct shunt_service *service)
{
	struct shunt_remote *remote = service->remote;

	if (!remote)
		return;
	service->remote = NULL;
	if (remote->open) {
		cm_forget(&remote->cm);
		for (int i = 0; i < 2; i++)
			if (remote->gates[i].fd >= 0)
				shunt_remote_listener_close(&remote->gates[i]);
		if (remote->directory.fd >= 0)
			shunt_directory_forget(&remote->directory);
	}
	shunt_remote_drop(remote, SHUNT_CAUSE_NONE);
	free(remote);
}

static void unlist(struct shunt_engine *engine)
{
	shunt_lock_take(&engine->rendezvous_lock);
	for (struct shunt_rendezvous *r = engine->rendezvous; r; r = r->next) {
		r->remote = NULL;	/* it went with the connection manager */
		r->tried_remote = false;
	}
	shunt_lock_leave(&engine->rendezvous_lock);
}

void shunt_remote_end(struct shunt_service *service)
{
	struct shunt_engine *engine = service->engine;
	struct shunt_remote *remote = service->remote;

	if (!remote)
		return;
	shunt_remote_enter(&engine->fds);
	if (remote->open)
		cm_close(&remote->cm);
	for (int i = 0; i < 2; i++)
		if (remote->gates[i].fd >= 0)
			shunt_remote_listener_close(&remote->gates[i]);
	if (remote->directory.fd >= 0)
		shunt_directory_close(&remote->directory);
	shunt_remote_leave(&engine->fds);
	unlist(engine);
	shunt_remote_drop(remote, shunt_leave_reason(engine));
	service->remote = NULL;
	free(remote);
}
