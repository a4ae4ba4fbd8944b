/* SPDX-License-Identifier: MIT */
#include "core/peer/deaf.h"
#include "core/fd/own_fds.h"
#include <errno.h>
#include "core/service.h"

static void listen_to(struct shunt_service *service, int fd, struct shunt_source *source,
		      uint32_t events)
{
	if (fd >= 0)
		shunt_loop_change(&service->engine->loop, fd, source, events);
}

static void listen_to_all(struct shunt_service *service, uint32_t events)
{
	struct shunt_engine *engine = service->engine;

	shunt_lock_take(&engine->rendezvous_lock);
	for (struct shunt_rendezvous *r = engine->rendezvous; r; r = r->next) {
		listen_to(service, r->fd, &r->source, events);
		listen_to(service, r->worker_fd, &r->worker_source, events);
		listen_to(service, r->abstract_fd, &r->source, events);
		listen_to(service, r->abstract_worker_fd, &r->worker_source, events);
	}
	shunt_lock_leave(&engine->rendezvous_lock);
	listen_to(service, service->process.fd, &service->process.source, events);
	listen_to(service, service->meeting_place.fd, &service->meeting_place.source, events);
	listen_to(service, service->statistics_fd, &service->statistics_source, events);
	listen_to(service, service->admin.fd, &service->admin.source, events);
	listen_to(service, service->rights_fd, &service->rights_source, events);
}

static void deaf_set(struct shunt_service *service, enum shunt_deaf why, bool deaf)
{
	uint8_t before = service->deaf;

	service->deaf = (uint8_t)(deaf ? before | why : before & ~why);
	if (deaf || (before && !service->deaf))	/* also a door that has been made meanwhile */
		listen_to_all(service, service->deaf ? 0 : EPOLLIN);
}

static bool is_shortage(int error)
{
	return error == -EMFILE || error == -ENFILE || error == -ENOMEM || error == -ENOBUFS;
}

int shunt_deaf_accept(struct shunt_engine *engine, int fd, int flags)
{
	struct shunt_service *service = engine->service;
	int come = shunt_own_fds_make(&engine->fds,
				      engine->sys->accept4(fd, NULL, NULL, SOCK_CLOEXEC | flags));

	if (!is_shortage(come))
		return come;
	service->deaf_until = shunt_now(engine) + SHUNT_DEAF_NS;
	shunt_task_at(&service->engine->porter.emptied, service->deaf_until);
	deaf_set(service, SHUNT_DEAF_SHORT, true);
	return come;
}

static void look_for_descriptors(struct shunt_service *service)
{
	if (!(service->deaf & SHUNT_DEAF_SHORT))
		return;
	if (shunt_now(service->engine) < service->deaf_until)
		shunt_task_at(&service->engine->porter.emptied, service->deaf_until);
	else
		deaf_set(service, SHUNT_DEAF_SHORT, false);
}

bool shunt_deaf_shuts(struct shunt_service *service)
{
	bool shuts = shunt_porter_is_full(&service->engine->porter);

	if (shuts)
		deaf_set(service, SHUNT_DEAF_CROWDED, true);
	return shuts;
}

/* A door that has been made meanwhile shuts them again when somebody comes. */
static void open_doors(struct shunt_service *service)
{
	if (!(service->deaf & SHUNT_DEAF_CROWDED) || shunt_porter_is_full(&service->engine->porter))
		return;
	atomic_store(&service->engine->porter.shut, false);
	deaf_set(service, SHUNT_DEAF_CROWDED, false);
}

void shunt_deaf_run(struct shunt_task *task)
{
	struct shunt_service *service = shunt_engine_of(task, porter.emptied)->service;

	open_doors(service);
	look_for_descriptors(service);
}
