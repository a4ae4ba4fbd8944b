/* SPDX-License-Identifier: MIT */
/*
 * Several processes may accept at one address: workers that inherited a listener, SO_REUSEPORT, a program that
 * is being replaced. One of them owns the rendezvous, so claims for what the others have come to it. They come in
 * here, at a name of their own, and say which connections they have; who claims one is sent there.
 *
 * They need not say it as long as nobody claims what we do not have: so accepting from plain peers costs them nothing.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include "core/peer/deaf.h"
#include "core/peer/listener_owner.h"
#include "core/fd/own_fds.h"
#include "core/link/trust.h"
#include "core/peer/claim_grant.h"
#include "core/peer/limits.h"
#include "core/peer/links.h"
#include "core/peer/listener_message.h"
#include "core/peer/remote_words.h"
#include "core/service.h"
#include "core/stream/tuple.h"

#define WANTED_NS 10000000000ull	/* that messages are wanted after a claim for what we did not have */
#define CONNECTION_BUCKETS 512
#define CONNECTION_PLACES 4			/* in each: a flood forgets, it never grows */
#define MESSAGES 64			/* of one co-listener before the others are heard */

struct shunt_co_listener {
	struct shunt_source source;
	int fd;
	pid_t pid;
	uid_t user;
	bool strange;
	bool joined;
	bool asked; /* a QUESTION, and may say nothing more */
	struct shunt_rendezvous *at;
	struct shunt_invited invited[SHUNT_INVITED];
	struct shunt_co_listener *next;
};

struct shunt_worker_connection {
	struct shunt_tuple tuple;	/* as its holder sees it */
	struct shunt_identity process;
	uint16_t gate;
	struct shunt_co_listener *by; /* NULL: nothing is remembered here */
	uint64_t deadline;
};

/* --- what others have --- */

static struct shunt_worker_connection *bucket(struct shunt_service *service,
					      const struct shunt_tuple *tuple, bool reverse)
{
	const uint8_t *near = reverse ? tuple->peer : tuple->local, *far = reverse ? tuple->local : tuple->peer;
	uint32_t near_port = reverse ? tuple->peer_port : tuple->local_port;
	uint32_t hash = near_port << 16 | (reverse ? tuple->local_port : tuple->peer_port);

	for (int i = 0; i < 16; i++)
		hash = (hash ^ near[i] ^ far[i] << 8) * 0x9e3779b1u;
	return &service->worker_connections[(hash >> 16) % CONNECTION_BUCKETS * CONNECTION_PLACES];
}

static void remember(struct shunt_service *service, struct shunt_co_listener *by,
		     const struct shunt_have *have)
{
	struct shunt_engine *engine = service->engine;
	struct shunt_worker_connection *places, *oldest;

	if (!service->worker_connections)
		service->worker_connections = calloc(CONNECTION_BUCKETS * CONNECTION_PLACES,
						     sizeof(*service->worker_connections));
	if (!service->worker_connections)
		return;
	places = oldest = bucket(service, &have->tuple, false);
	for (int i = 1; i < CONNECTION_PLACES; i++)
		if (places[i].deadline < oldest->deadline)
			oldest = &places[i];
	*oldest = (struct shunt_worker_connection) { have->tuple, have->process,
						     (uint16_t)have->gate, by,
						     shunt_now(engine) +
							     engine->config.claim_ms * 1000000 };
}

static void co_listener_forget(struct shunt_service *service, const struct shunt_co_listener *by)
{
	for (int i = 0; service->worker_connections && i < CONNECTION_BUCKETS * CONNECTION_PLACES;
	     i++)
		if (service->worker_connections[i].by == by)
			service->worker_connections[i] = (struct shunt_worker_connection) { .by = NULL };
}

/* --- who wants to know --- */

static void tell_wanted(struct shunt_service *service, struct shunt_co_listener *co_listener,
			bool on)
{
	struct shunt_have have = { .type = SHUNT_HAVE_WANTED, .on = on };

	if (co_listener->joined)
		shunt_listener_message_send(service->engine, co_listener->fd, &have);
}

static void set_wanted(struct shunt_service *service, struct shunt_rendezvous *r, bool on)
{
	if (atomic_exchange(atomic_load(&r->wanted), on) == on && !!r->wanted_until == on)
		return;
	for (struct shunt_co_listener *co_listener = service->co_listeners; co_listener;
	     co_listener = co_listener->next)
		if (co_listener->at == r)
			tell_wanted(service, co_listener, on);
}

static void want(struct shunt_service *service, const struct shunt_tuple *claimed)
{
	uint64_t until = shunt_now(service->engine) + WANTED_NS;

	shunt_lock_take(&service->engine->rendezvous_lock);
	for (struct shunt_rendezvous *r = service->engine->rendezvous; r; r = r->next) {
		if (r->fd < 0 || !shunt_rendezvous_covers(&r->name, claimed->peer, claimed->peer_port))
			continue;
		set_wanted(service, r, true);
		r->wanted_until = until;
		shunt_task_at(&service->tasks.listener_owner, until);
	}
	shunt_lock_leave(&service->engine->rendezvous_lock);
}

bool shunt_listener_owner_find(struct shunt_service *service, const struct shunt_tuple *claimed,
			       struct shunt_worker *worker)
{
	uint64_t now = shunt_now(service->engine);
	struct shunt_worker_connection *place = service->worker_connections ?
							bucket(service, claimed, true) :
							NULL;

	want(service, claimed);
	for (int i = 0; place && i < CONNECTION_PLACES; i++) {
		if (!place[i].by || place[i].deadline < now ||
		    !shunt_tuple_reversed(&place[i].tuple, claimed))
			continue;
		*worker = (struct shunt_worker) { place[i].process, place[i].gate, place[i].by->fd,
						  place[i].by->invited };
		place[i] = (struct shunt_worker_connection) { .by = NULL };
		return true;
	}
	return false;
}

/* --- those who tell --- */

static void dismiss(struct shunt_service *service, struct shunt_co_listener *co_listener)
{
	struct shunt_co_listener **p = &service->co_listeners;

	co_listener_forget(service, co_listener);
	while (*p != co_listener)
		p = &(*p)->next;
	*p = co_listener->next;
	atomic_fetch_sub(&service->engine->strangers.co_listeners, co_listener->strange);
	shunt_loop_remove(&service->engine->loop, co_listener->fd);
	shunt_porter_dismiss(&service->engine->porter, co_listener->fd);
	free(co_listener);
}

static bool allows(struct shunt_service *service, const struct ucred *peer, bool strange)
{
	uint32_t of_process = 0, of_user = 0, all = 0;
	uint32_t most = shunt_limits_most(service->engine).co_listeners;

	for (struct shunt_co_listener *co_listener = service->co_listeners; co_listener;
	     co_listener = co_listener->next) {
		of_process += co_listener->pid == peer->pid;
		of_user += co_listener->strange == strange && co_listener->user == peer->uid;
		all += co_listener->strange == strange;
	}
	return shunt_limits_allow(service, (uint32_t)peer->pid, of_process,
				  SHUNT_CO_LISTENERS_PER_PROCESS,
				  "connections for what it accepts") &&
	       shunt_limits_allow(service, (uint32_t)peer->pid, of_user, strange ? most / 2 : most,
				  "connections for what its user accepts") &&
	       shunt_limits_allow(service, (uint32_t)peer->pid, all, most,
				  "connections for what others accept");
}

bool shunt_listener_owner_strangers(struct shunt_service *service, const struct shunt_tuple *claimed)
{
	struct shunt_engine *engine = service->engine;
	bool any = false;

	shunt_lock_take(&engine->rendezvous_lock);
	for (struct shunt_rendezvous *r = engine->rendezvous; r && !any; r = r->next)
		any = r->strangers && shunt_rendezvous_covers(&r->name, claimed->peer, claimed->peer_port);
	shunt_lock_leave(&engine->rendezvous_lock);
	return any;
}

/* Another host has asked this co-listener at the directory (directory.h). False: it is not answered, and goes. */
static bool on_question(struct shunt_service *service, struct shunt_co_listener *co_listener,
			const struct shunt_have *have)
{
	struct shunt_have answered = { .type = SHUNT_HAVE_ANSWER, .tuple = have->tuple };
	struct shunt_engine *engine = service->engine;
	struct remote_answer answer;
	int bytes;

	if (co_listener->joined || co_listener->asked ||
	    have->said.bytes > sizeof(have->said.words) ||
	    !shunt_rendezvous_covers(&co_listener->at->name, have->tuple.local,
				     have->tuple.local_port) ||
	    shunt_tuple_is_local(&engine->fds, &have->tuple))
		return false;
	co_listener->asked = true;
	bytes = engine->link_hooks->asked(co_listener->at, &have->tuple, &have->said, &answer);
	if (bytes <= 0)
		return false;
	answered.said.bytes = (uint32_t)bytes;
	memcpy(answered.said.words, &answer, sizeof(answer));
	return !shunt_listener_message_send(engine, co_listener->fd, &answered);
}

/* False: no such message. */
static bool co_listener_on_message(struct shunt_service *service,
				   struct shunt_co_listener *co_listener,
				   const struct shunt_have *have)
{
	struct shunt_worker worker = { have->process, (uint16_t)have->gate, co_listener->fd,
				       co_listener->invited };

	if (have->type == SHUNT_HAVE_QUESTION)
		return on_question(service, co_listener, have);
	if (have->type == SHUNT_HAVE_JOIN && !co_listener->joined && !co_listener->asked) {
		co_listener->joined = true;
		if (co_listener->at->wanted_until)
			tell_wanted(service, co_listener, true);
		return true;
	}
	if (have->type != SHUNT_HAVE_TUPLE || !co_listener->joined || have->gate > UINT16_MAX ||
	    !shunt_rendezvous_covers(&co_listener->at->name, have->tuple.local,
				     have->tuple.local_port))
		return false;
	if (!shunt_claim_is_had(service, &have->tuple, &worker))
		remember(service, co_listener, have);
	return true;
}

static void co_listener_hear(struct shunt_source *source, uint32_t events)
{
	struct shunt_co_listener *co_listener = shunt_loop_owner(source, struct shunt_co_listener,
								 source);
	struct shunt_service *service = co_listener->at->service;
	struct shunt_engine *engine = service->engine;
	struct shunt_have have;
	int result = 1;

	(void)events;
	for (int i = 0; i < MESSAGES && result > 0; i++) {
		result = shunt_listener_message_receive(engine, co_listener->fd, &have);
		if (result > 0 && !co_listener_on_message(service, co_listener, &have))
			result = -EPROTO;
	}
	if (result < 0)
		dismiss(service, co_listener);
}

static void let_in(struct shunt_service *service, struct shunt_rendezvous *r, int fd, bool strange)
{
	struct shunt_co_listener *co_listener = NULL;
	struct ucred peer;

	if (shunt_trust_peer(service->engine->sys, fd, &peer) && allows(service, &peer, strange))
		co_listener = calloc(1, sizeof(*co_listener));
	if (!co_listener) {
		shunt_porter_dismiss(&service->engine->porter, fd);
		return;
	}
	co_listener->source.ready = co_listener_hear;
	co_listener->fd = fd;
	co_listener->at = r;
	co_listener->pid = peer.pid;
	co_listener->user = peer.uid;
	co_listener->strange = strange;
	co_listener->next = service->co_listeners;
	service->co_listeners = co_listener;
	atomic_fetch_add(&service->engine->strangers.co_listeners, strange);
	atomic_store(&r->shared, true);
	shunt_loop_post(&service->engine->loop, &service->engine->work.tasks.spare);
	if (shunt_loop_add(&service->engine->loop, fd, &co_listener->source, EPOLLIN))
		dismiss(service, co_listener);
}

static void co_listener_welcome(struct shunt_service *service, struct shunt_rendezvous *rendezvous,
				int door)
{
	bool strange;
	int fd;

	while ((fd = shunt_rendezvous_accept(service->engine, door, &strange)) >= 0)
		let_in(service, rendezvous, fd, strange);
	if (!shunt_trust_reason(fd))
		return;
	if (!rendezvous->strangers)
		shunt_log(SHUNT_LOG_INFO, "rendezvous %s: another user's process accepts there too, and is not let in",
			  rendezvous->name.text + 1);
	rendezvous->strangers = true;
}

void shunt_listener_owner_welcome(struct shunt_source *source, uint32_t events)
{
	struct shunt_rendezvous *rendezvous =
		shunt_loop_owner(source, struct shunt_rendezvous, worker_source);

	(void)events;
	if (shunt_deaf_shuts(rendezvous->service))
		return;
	co_listener_welcome(rendezvous->service, rendezvous, rendezvous->worker_fd);
	if (rendezvous->abstract_worker_fd >= 0)
		co_listener_welcome(rendezvous->service, rendezvous,
				    rendezvous->abstract_worker_fd);
}

/* --- what is over --- */

static void end_wanted(struct shunt_service *service, struct shunt_rendezvous *r)
{
	set_wanted(service, r, false);
	r->wanted_until = 0;
}

void shunt_listener_owner_run(struct shunt_task *task)
{
	struct shunt_service *service = shunt_service_of(task, listener_owner);
	struct shunt_co_listener *co_listener = service->co_listeners, *next;
	uint64_t now = shunt_now(service->engine);

	for (; co_listener; co_listener = next) {
		next = co_listener->next;
		if (co_listener->at->fd < 0)	/* withdrawn: one of them will offer it again */
			dismiss(service, co_listener);
	}
	shunt_lock_take(&service->engine->rendezvous_lock);
	for (struct shunt_rendezvous *r = service->engine->rendezvous; r; r = r->next) {
		if (r->fd < 0 || !r->wanted_until)
			continue;
		if (r->wanted_until <= now)
			end_wanted(service, r);
		else
			shunt_task_at(task, r->wanted_until);
	}
	shunt_lock_leave(&service->engine->rendezvous_lock);
}

void shunt_listener_owner_abandon(struct shunt_service *service)
{
	for (struct shunt_co_listener *co_listener = service->co_listeners; co_listener;
	     co_listener = co_listener->next)
		shunt_own_fds_close(&service->engine->fds, co_listener->fd);
}
