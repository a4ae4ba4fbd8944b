/* SPDX-License-Identifier: MIT */
/*
 * We accept at an address whose rendezvous another process owns. It is told of our connections (listener_owner.c),
 * and sends their claimants to us. When the owner ends, whoever still listens there tries to take its place.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "core/engine.h"
#include "core/fd/own_fds.h"
#include "core/link/trust.h"
#include "core/loop/porter.h"
#include "core/peer/claim_state.h"
#include "core/peer/links.h"
#include "core/peer/listen_bind.h"
#include "core/peer/listener_message.h"
#include "core/peer/listener_worker.h"
#include "core/peer/meeting.h"
#include "core/peer/rendezvous.h"
#include "core/service.h"
#include "core/stream/tuple.h"

#define LOOK_NS 10000000ull	/* after a first failure; twice that after the second, and so on */
#define LOOK_LOG 7		/* at most so often */
#define SOON 1000000ull		/* ns: the first time */

/* --- the owner --- */

static uint64_t again(struct shunt_service *service, uint32_t failures)
{
	return shunt_now(service->engine) + (LOOK_NS << (failures < LOOK_LOG ? failures : LOOK_LOG));
}

static void owner_turn_away(struct shunt_rendezvous *r)
{
	if (!r->turned_away)
		shunt_log(SHUNT_LOG_INFO, "rendezvous %s: its owner does not let this process in; what it accepts there stays on TCP",
			  r->name.text + 1);
	r->turned_away = true;
}

static void lose_owner(struct shunt_service *service, struct shunt_rendezvous *r)
{
	shunt_loop_remove(&service->engine->loop, r->owner_fd);
	shunt_porter_dismiss(&service->engine->porter, r->owner_fd);
	r->owner_fd = -1;
	if (shunt_now(service->engine) >= r->look_at) {
		r->failures = 0;
		r->look_at = 0;
		r->turned_away = false;
	} else {	/* it hung up, as on any process of another user */
		r->look_at = again(service, r->failures++);
		owner_turn_away(r);
	}
	shunt_task_at(&service->tasks.listener_worker, r->look_at);
	atomic_store(&r->alone, true);
	r->own_wanted = 0;	/* the next one says it again */
}

static int untell(struct shunt_stream *stream, void *rendezvous)
{
	if (stream->claim.state == SHUNT_CLAIM_TOLD && stream->rendezvous == rendezvous) {
		shunt_claim_turn(stream, SHUNT_UNCLAIMED);
		atomic_store(&stream->usage, SHUNT_USE_BEGUN);
	}
	return 0;
}

/* The next owner knows nothing of what this one was told: it is told when it is used again. */
static void forget_owner(struct shunt_service *service, struct shunt_rendezvous *r)
{
	struct shunt_engine *engine = service->engine;

	lose_owner(service, r);
	shunt_lock_take(&engine->streams_lock);
	shunt_streams_each(engine, untell, r);
	shunt_lock_leave(&engine->streams_lock);
}

static void owner_join(struct shunt_service *service, struct shunt_rendezvous *r, int fd)
{
	struct shunt_have have = { .type = SHUNT_HAVE_JOIN };

	r->owner_fd = fd;
	r->service = service;
	r->look_at = again(service, LOOK_LOG);	/* who loses it sooner has not been let in */
	if (shunt_loop_add(&service->engine->loop, fd, &r->owner_source, EPOLLIN) ||
	    shunt_listener_message_send(service->engine, fd, &have)) {
		lose_owner(service, r);
		return;
	}
	atomic_store(&r->alone, false);
}

/* In its user's directory, where it has no owner. */
static bool may_take(struct shunt_engine *engine, const struct shunt_rendezvous *r)
{
	return r->listener && r->dir.user == geteuid() &&
	       shunt_user_dir_is_usable(engine, &r->dir, false);
}

static bool take_over(struct shunt_service *service, struct shunt_rendezvous *r,
		      struct shunt_crowd *crowd)
{
	if (shunt_listen_bind(service, r, crowd))
		return false;
	r->turned_away = false;
	shunt_log(SHUNT_LOG_INFO, "took over the rendezvous %s", r->name.text + 1);
	shunt_task_at(&service->tasks.listen, 0);
	return true;
}

/* The owner's channel for co-listeners; -ECONNREFUSED: none; or another -errno. */
static int find_owner(struct shunt_service *service, struct shunt_rendezvous *r, bool *taken,
		      struct shunt_crowd *crowd)
{
	struct shunt_engine *engine = service->engine;
	struct shunt_name have;
	bool strange;
	int fd;

	shunt_rendezvous_workers(&r->name, &have);
	fd = shunt_rendezvous_knock_user_dir(engine, &r->dir, &have, &strange);
	if (fd == -ECONNREFUSED && may_take(engine, r)) {
		*taken = take_over(service, r, crowd);
		if (!*taken)	/* another has been faster, or it cannot be written there */
			fd = shunt_rendezvous_knock_user_dir(engine, &r->dir, &have, &strange);
	}
	if (fd == -ECONNREFUSED && !*taken)
		fd = shunt_rendezvous_knock(engine, &have, &strange);	/* a hint: a stranger's will do */
	return fd;
}

/* rendezvous_lock held. */
static void owner_look(struct shunt_service *service, struct shunt_rendezvous *r,
		       struct shunt_crowd *crowd)
{
	bool taken = false;
	int fd = find_owner(service, r, &taken, crowd);

	if (fd >= 0)
		owner_join(service, r, fd);
	if (fd >= 0 || taken ||
	    (fd == -ECONNREFUSED && r->listener && take_over(service, r, crowd)))
		return;
	if (shunt_trust_reason(fd))
		owner_turn_away(r);
	atomic_store(&r->alone, true);
	r->look_at = again(service, r->failures++);
}

bool shunt_listener_worker_join(struct shunt_service *service, struct shunt_rendezvous *r,
				struct shunt_crowd *crowd)
{
	bool taken = false;
	int fd = find_owner(service, r, &taken, crowd);

	if (fd >= 0)
		owner_join(service, r, fd);
	atomic_store(&r->is_worker, r->owner_fd >= 0);
	return r->owner_fd >= 0;
}

static bool must_look(const struct shunt_rendezvous *r)
{
	return r->fd < 0 && r->owner_fd < 0 &&
	       atomic_load(&((struct shunt_rendezvous *)r)->is_worker);
}

/* The names for processes that do not see the user's directory have had another owner. */
static bool lacks_abstract(const struct shunt_rendezvous *r)
{
	return r->in_user_dir && r->fd >= 0 && r->abstract_fd < 0 && r->listener;
}

/* rendezvous_lock held. */
static void take_abstract(struct shunt_service *service, struct shunt_rendezvous *r,
			  struct shunt_crowd *crowd)
{
	if (r->look_at <= shunt_now(service->engine) &&
	    shunt_listen_bind_abstract(service, r, crowd))
		r->look_at = again(service, r->failures++);
	if (r->abstract_fd < 0)
		shunt_task_at(&service->tasks.listener_worker, r->look_at);
}

void shunt_listener_worker_run(struct shunt_task *task)
{
	struct shunt_service *service = shunt_service_of(task, listener_worker);
	struct shunt_engine *engine = service->engine;
	uint64_t now = shunt_now(engine);
	struct shunt_crowd crowd = { .count = 0 };

	shunt_lock_take(&engine->rendezvous_lock);
	for (struct shunt_rendezvous *r = engine->rendezvous; r; r = r->next) {
		if (must_look(r) && r->look_at <= now)
			owner_look(service, r, &crowd);
		if (must_look(r))
			shunt_task_at(task, r->look_at > now ? r->look_at : now + SOON);
		if (lacks_abstract(r))
			take_abstract(service, r, &crowd);
	}
	shunt_lock_leave(&engine->rendezvous_lock);
	shunt_porter_dismiss_all(&engine->porter, &crowd);
}

/* An invitation is for a connection that was accepted there. */
static bool is_sound(const struct shunt_rendezvous *r, const struct shunt_have *have)
{
	return shunt_rendezvous_covers(&r->name, have->tuple.local, have->tuple.local_port) &&
	       memchr(have->invitation.device, 0, sizeof(have->invitation.device));
}

/* False: no such message. */
static bool owner_on_message(struct shunt_rendezvous *r, const struct shunt_have *have)
{
	if (have->type == SHUNT_HAVE_WANTED && have->on <= 1)
		atomic_store(atomic_load(&r->wanted), have->on);
	else if (have->type == SHUNT_HAVE_INVITE && is_sound(r, have))
		r->service->engine->link_hooks->invited(r->service, have);
	else
		return false;
	return true;
}

static void owner_hear(struct shunt_rendezvous *r)
{
	struct shunt_service *service = r->service;
	struct shunt_have have;
	int result;

	if (r->owner_fd < 0)
		return;
	while ((result = shunt_listener_message_receive(service->engine, r->owner_fd, &have)) > 0)
		if (!owner_on_message(r, &have)) {
			result = -EPROTO;
			break;
		}
	if (result < 0)
		forget_owner(service, r);
	if (result == -EPROTO)	/* it is not asked again at once */
		r->look_at = again(service, LOOK_LOG);
}

void shunt_listener_worker_hear(struct shunt_source *source, uint32_t events)
{
	(void)events;
	owner_hear(shunt_loop_owner(source, struct shunt_rendezvous, owner_source));
}

void shunt_listener_worker_hear_all(struct shunt_service *service)
{
	struct shunt_rendezvous *r;

	shunt_lock_take(&service->engine->rendezvous_lock);
	r = service->engine->rendezvous; /* none is ever taken out of the list */
	shunt_lock_leave(&service->engine->rendezvous_lock);
	for (; r; r = r->next)
		owner_hear(r);
}

/* --- what we have --- */

/* Our address for claimants that are sent to us. */
static bool offer_process(struct shunt_service *service)
{
	struct shunt_rendezvous *process = &service->process;
	struct shunt_engine *engine = service->engine;

	if (process->fd >= 0)
		return true;
	shunt_meeting_open(service);
	shunt_rendezvous_process(&engine->identity, &process->name);
	process->fd = shunt_rendezvous_offer(engine, &process->name);
	if (process->fd < 0)
		return false;
	process->service = service;
	process->source.ready = shunt_links_welcome;
	return !shunt_loop_add(&engine->loop, process->fd, &process->source, EPOLLIN);
}

void shunt_listener_worker_tell(struct shunt_service *service, struct shunt_stream *stream)
{
	struct shunt_rendezvous *r = stream->rendezvous;
	struct shunt_have have = { .type = SHUNT_HAVE_TUPLE };

	if (!atomic_exchange(&r->is_worker, true))
		shunt_listener_worker_run(&service->tasks.listener_worker);
	if (r->owner_fd < 0)
		atomic_store(&stream->usage, SHUNT_USE_BEGUN);	/* again, when there is one */
	if (r->owner_fd < 0 || !shunt_tuple_is_known(&stream->tuple) || !offer_process(service))
		return;
	have.tuple = stream->tuple;
	have.process = service->engine->identity;
	have.gate = service->engine->link_hooks->gate(service, &stream->tuple);
	if (shunt_listener_message_send(service->engine, r->owner_fd, &have))
		return;
	if (!shunt_stream_is_agreed(stream))
		shunt_claim_turn(stream, SHUNT_CLAIM_TOLD);
	atomic_fetch_add(&service->engine->haves, 1);
}
