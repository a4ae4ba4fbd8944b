/* SPDX-License-Identifier: MIT */
#include "core/peer/listen_bind.h"
#include <errno.h>
#include <sys/epoll.h>
#include "core/loop/porter.h"
#include "core/peer/rendezvous.h"
#include "core/service.h"

/* First where co-listeners come in, so that whoever has the one name has the other. */
int shunt_listen_bind(struct shunt_service *service, struct shunt_rendezvous *rendezvous,
		      struct shunt_crowd *crowd)
{
	struct shunt_engine *engine = service->engine;
	struct shunt_name have;
	int have_fd, fd;

	shunt_rendezvous_have(&rendezvous->name, &have);
	have_fd = shunt_rendezvous_offer(engine, &have);
	fd = have_fd == -EADDRINUSE ? have_fd : shunt_rendezvous_offer(engine, &rendezvous->name);
	if (fd < 0) {
		shunt_porter_close(engine, have_fd, crowd);
		return fd;
	}
	atomic_store(atomic_load(&rendezvous->wanted), 0);
	rendezvous->have_fd = have_fd;
	rendezvous->fd = fd;
	rendezvous->tried_remote = false;
	rendezvous->service = service;
	shunt_loop_add(&engine->loop, fd, &rendezvous->source, EPOLLIN);
	if (have_fd >= 0)
		shunt_loop_add(&engine->loop, have_fd, &rendezvous->have_source, EPOLLIN);
	return 0;
}
