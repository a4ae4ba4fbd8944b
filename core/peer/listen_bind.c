/* SPDX-License-Identifier: MIT */
#include "core/peer/listen_bind.h"
#include <errno.h>
#include <sys/epoll.h>
#include "core/loop/porter.h"
#include "core/peer/rendezvous.h"
#include "core/service.h"

/* Descriptors of the two names of an address: claims come to the one, co-listeners to the other. */
struct pair {
	int fd, worker_fd;
};

/* In the user's directory, or in the abstract namespace. */
static int name_offer(struct shunt_engine *engine, const struct shunt_rendezvous *r,
		      const struct shunt_name *name, bool in_dir)
{
	return in_dir ? shunt_user_dir_offer(engine, &r->dir, name) :
		      shunt_rendezvous_offer(engine, name);
}

/* First the name for co-listeners, so that one process owns both names. 0 or -errno. */
static int names_take(struct shunt_engine *engine, const struct shunt_rendezvous *r, bool in_dir,
		      struct pair *pair, struct shunt_crowd *crowd)
{
	struct shunt_name workers;
	int result;

	shunt_rendezvous_workers(&r->name, &workers);
	pair->worker_fd = name_offer(engine, r, &workers, in_dir);
	result = pair->worker_fd == -EADDRINUSE ? pair->worker_fd :
						name_offer(engine, r, &r->name, in_dir);
	pair->fd = result;
	if (result >= 0)
		return 0;
	if (in_dir && pair->worker_fd >= 0)
		shunt_user_dir_withdraw(engine, &r->dir, &workers);
	shunt_porter_close(&engine->porter, pair->worker_fd, crowd);
	*pair = (struct pair) { .fd = -1, .worker_fd = -1 };
	return result;
}

static void names_hear(struct shunt_engine *engine, struct shunt_rendezvous *r,
		       const struct pair *pair)
{
	if (pair->fd >= 0)
		shunt_loop_add(&engine->loop, pair->fd, &r->source, EPOLLIN);
	if (pair->worker_fd >= 0)
		shunt_loop_add(&engine->loop, pair->worker_fd, &r->worker_source, EPOLLIN);
}

static void own(struct shunt_service *service, struct shunt_rendezvous *r, const struct pair *pair,
		const struct pair *abstract)
{
	atomic_store(atomic_load(&r->wanted), 0);
	r->worker_fd = pair->worker_fd;
	r->fd = pair->fd;
	r->abstract_fd = abstract->fd;
	r->abstract_worker_fd = abstract->worker_fd;
	r->tried_remote = false;
	r->look_at = 0;
	r->failures = 0;
	r->service = service;
	names_hear(service->engine, r, pair);
	names_hear(service->engine, r, abstract);
}

/* The abstract names are for those who do not see the directory: there their owner does not matter. */
int shunt_listen_bind(struct shunt_service *service, struct shunt_rendezvous *rendezvous,
		      struct shunt_crowd *crowd)
{
	struct shunt_engine *engine = service->engine;
	struct pair none = { .fd = -1, .worker_fd = -1 }, pair = none, abstract = none;
	bool in_dir = shunt_user_dir_is_usable(engine, &rendezvous->dir, true);
	int result = in_dir ? names_take(engine, rendezvous, true, &pair, crowd) : -ENOENT;

	if (result == -EADDRINUSE)
		return result;
	rendezvous->in_user_dir = !result;
	result = names_take(engine, rendezvous, false, rendezvous->in_user_dir ? &abstract : &pair,
			    crowd);
	if (result && !rendezvous->in_user_dir)
		return result;
	own(service, rendezvous, &pair, &abstract);
	return 0;
}

int shunt_listen_bind_abstract(struct shunt_service *service, struct shunt_rendezvous *rendezvous,
			       struct shunt_crowd *crowd)
{
	struct shunt_engine *engine = service->engine;
	struct pair abstract;
	int result = names_take(engine, rendezvous, false, &abstract, crowd);

	if (result)
		return result;
	rendezvous->abstract_fd = abstract.fd;
	rendezvous->abstract_worker_fd = abstract.worker_fd;
	names_hear(engine, rendezvous, &abstract);
	return 0;
}
