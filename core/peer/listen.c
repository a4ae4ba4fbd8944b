/* SPDX-License-Identifier: MIT */
/*
 * The addresses that this process listens at: each has a rendezvous, ours or another process's.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/fd/own_fds.h"
#include "core/leave.h"
#include "core/peer/links.h"
#include "core/peer/listen.h"
#include "core/peer/listen_bind.h"
#include "core/peer/listener_owner.h"
#include "core/peer/listener_worker.h"
#include "core/peer/remote.h"
#include "core/service.h"

static struct shunt_rendezvous *rendezvous_for(struct shunt_engine *engine, const struct shunt_name *name)
{
	struct shunt_rendezvous *r = engine->rendezvous;

	while (r && (r->name.length != name->length || memcmp(r->name.text, name->text, name->length)))
		r = r->next;
	if (r)
		return r;
	r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	r->source.ready = shunt_links_welcome;
	r->worker_source.ready = shunt_listener_owner_welcome;
	r->owner_source.ready = shunt_listener_worker_hear;
	r->name = *name;
	r->fd = r->worker_fd = r->owner_fd = r->abstract_fd = r->abstract_worker_fd = -1;
	r->wanted = &r->own_wanted;
	r->next = engine->rendezvous;
	engine->rendezvous = r;
	return r;
}

/* It is ours from now on, or the service thread asks the owner in. rendezvous_lock held; result: 0 or -errno. */
static int own_or_join(struct shunt_engine *engine, struct shunt_rendezvous *r,
		       struct shunt_crowd *crowd)
{
	int result = shunt_listen_bind(engine->service, r, crowd);

	if (result == -EADDRINUSE)
		atomic_store(&r->is_worker, true);
	return result;
}

void shunt_listen_offer(struct shunt_engine *engine, int fd)
{
	struct shunt_stream *stream = (struct shunt_stream *)shunt_file(engine, fd);
	struct shunt_rendezvous *r = NULL;
	struct shunt_crowd crowd = { .count = 0 };
	int saved = errno, result;
	struct shunt_name name;

	if (!engine->serve(engine))
		return;
	shunt_lock_take(&engine->rendezvous_lock);
	result = shunt_rendezvous_of(engine, fd, &name);
	if (!result && shunt_leave_is_due(engine))	/* the names have been given up, or are about to be */
		result = -EBUSY;
	if (!result)
		r = rendezvous_for(engine, &name);
	if (r) {
		stream->rendezvous = r;
		if (!r->listener)
			r->listener = stream;
		else if (r->listener != stream)	/* SO_REUSEPORT */
			atomic_store(&r->shared, true);
		r->leave_at = 0;
		if (r->fd < 0)
			shunt_user_dir_of(engine, fd, &r->dir);
		if (r->fd < 0)
			result = own_or_join(engine, r, &crowd);
	}
	shunt_lock_leave(&engine->rendezvous_lock);
	shunt_porter_dismiss_all(&engine->porter, &crowd);
	if (result)
		shunt_log(SHUNT_LOG_INFO, result == -EADDRINUSE ? "descriptor %d (error %d): another process has the rendezvous" :
			  "no rendezvous for descriptor %d (error %d): its connections stay on TCP", fd, -result);
	shunt_loop_post(&engine->loop, &engine->service->tasks.listen);
	errno = saved;
}

/* Another process, which has Shunt, listens there. rendezvous_lock held. */
static bool has_owner(struct shunt_engine *engine, struct shunt_stream *stream,
		      struct shunt_rendezvous *r, struct shunt_crowd *crowd)
{
	if (r->fd >= 0 || r->owner_fd >= 0)
		return true;
	shunt_user_dir_of(engine, stream->fd, &r->dir);
	return shunt_listener_worker_join(engine->service, r, crowd);
}

static struct shunt_rendezvous *find_owned(struct shunt_engine *engine,
					   struct shunt_stream *stream,
					   struct shunt_crowd *crowd)
{
	struct shunt_name names[SHUNT_NAMES];
	int count = shunt_rendezvous_names(stream->tuple.local, stream->tuple.local_port, names);

	for (int i = 0; i < count; i++) {
		struct shunt_rendezvous *r = rendezvous_for(engine, &names[i]);

		if (r && has_owner(engine, stream, r, crowd))
			return r;
	}
	return NULL;
}

void shunt_listen_adopt(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_crowd crowd = { .count = 0 };
	struct shunt_rendezvous *r;
	struct shunt_name name;

	shunt_lock_take(&engine->rendezvous_lock);
	if (stream->fd < 0) { /* who closes it has been here, or comes */
		shunt_lock_leave(&engine->rendezvous_lock);
		return;
	}
	r = find_owned(engine, stream, &crowd);
	if (!r && !shunt_rendezvous_of(engine, stream->fd, &name) && !shunt_leave_is_due(engine)) {
		r = rendezvous_for(engine, &name);
		if (r && own_or_join(engine, r, &crowd))
			atomic_store(&r->is_worker, true);
	}
	if (r && !r->listener)
		r->listener = stream;
	stream->rendezvous = r;
	shunt_lock_leave(&engine->rendezvous_lock);
	shunt_porter_dismiss_all(&engine->porter, &crowd);
	shunt_task_at(&engine->service->tasks.listen, 0);
}

void shunt_listen_again(struct shunt_engine *engine)
{
	struct shunt_crowd crowd = { .count = 0 };

	if (!engine->serve(engine))
		return;
	shunt_lock_take(&engine->rendezvous_lock);
	for (struct shunt_rendezvous *r = engine->rendezvous; r; r = r->next)
		if (r->listener && r->fd < 0 && !shunt_leave_is_due(engine))
			own_or_join(engine, r, &crowd);
	shunt_lock_leave(&engine->rendezvous_lock);
	shunt_porter_dismiss_all(&engine->porter, &crowd);
	shunt_loop_post(&engine->loop, &engine->service->tasks.listen);
}

/* Before the program answers: its peer may claim the connection then, and a name that nobody has means TCP. */
void shunt_listen_accepts(struct shunt_engine *engine, struct shunt_rendezvous *rendezvous)
{
	struct shunt_crowd crowd = { .count = 0 };

	if (rendezvous->fd >= 0 || atomic_load(&rendezvous->is_worker) ||
	    engine->forks.pid != getpid() || !engine->serve(engine))
		return;
	shunt_lock_take(&engine->rendezvous_lock);
	if (rendezvous->fd < 0 && (!rendezvous->listener || shunt_leave_is_due(engine) ||
				   own_or_join(engine, rendezvous, &crowd)))
		atomic_store(&rendezvous->is_worker, true);
	shunt_lock_leave(&engine->rendezvous_lock);
	shunt_porter_dismiss_all(&engine->porter, &crowd);
	shunt_loop_post(&engine->loop, &engine->service->tasks.listen);
}

struct other {
	const struct shunt_stream *than;
	struct shunt_rendezvous *rendezvous;
	struct shunt_stream *found;	/* listens there, too */
	bool claimable;			/* a connection that was accepted there may be claimed */
};

static int look_at_other(struct shunt_stream *stream, void *arg)
{
	struct other *other = arg;

	if (stream->fd < 0 || stream == other->than || stream->rendezvous != other->rendezvous)
		return 0;
	if (stream->role == SHUNT_LISTENER || stream->doubt.settled)
		other->found = stream;
	other->claimable |= stream->role == SHUNT_ACCEPTOR && atomic_load(&stream->state) == SHUNT_CANDIDATE;
	return other->found != NULL;
}

/* rendezvous_lock held. */
static void rendezvous_leave(struct shunt_engine *engine, struct shunt_rendezvous *r,
			     struct shunt_crowd *crowd)
{
	shunt_rendezvous_close(engine, r, crowd);
	r->leave_at = 0;
}

/* The memory stays: the service thread may be about to look at it, and connections name it. Listeners are few. */
void shunt_listen_withdraw(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct other other = { .than = stream };
	struct shunt_crowd crowd = { .count = 0 };
	struct shunt_rendezvous *r;

	if (!stream->rendezvous && !stream->doubt.settled)
		return;
	shunt_lock_take(&engine->streams_lock);
	shunt_lock_take(&engine->rendezvous_lock); /* behind shunt_listen_adopt(), if that has found it open */
	r = other.rendezvous = stream->rendezvous;
	if (r && r->listener == stream) {
		shunt_streams_each(engine, look_at_other, &other);
		r->listener = other.found;
		/* A program may listen for one connection only; the connecting end claims it at its first use. */
		if (!r->listener && r->fd >= 0 && other.claimable)
			r->leave_at = shunt_now(engine) +
				      shunt_config_live(&engine->config.claim_ms) * 1000000;
		else if (!r->listener && r->fd >= 0)
			rendezvous_leave(engine, r, &crowd);
	}
	shunt_lock_leave(&engine->rendezvous_lock);
	shunt_lock_leave(&engine->streams_lock);
	shunt_porter_dismiss_all(&engine->porter, &crowd);
	if (!engine->service)
		return;
	shunt_loop_post(&engine->loop, &engine->service->tasks.listen);
}

/* Co-listeners and owners follow. */
static void others_follow(struct shunt_service *service)
{
	shunt_task_at(&service->tasks.listener_worker, 0);
	shunt_task_at(&service->tasks.listener_owner, 0);
}

void shunt_listen_run(struct shunt_task *task)
{
	struct shunt_service *service = shunt_service_of(task, listen);

	if (!atomic_load(&service->leaving))
		shunt_remote_listen(service);
	shunt_task_at(&service->tasks.meeting, 0);
	shunt_task_at(&service->tasks.listen_withdraw, 0);
	others_follow(service);
}

void shunt_listen_withdraw_run(struct shunt_task *task)
{
	struct shunt_service *service = shunt_service_of(task, listen_withdraw);
	struct shunt_engine *engine = service->engine;
	struct shunt_crowd crowd = { .count = 0 };
	uint64_t now = shunt_now(engine);

	shunt_lock_take(&engine->rendezvous_lock);
	for (struct shunt_rendezvous *r = engine->rendezvous; r; r = r->next) {
		if (!r->leave_at)
			continue;
		if (r->leave_at <= now) {
			rendezvous_leave(engine, r, &crowd);
			shunt_task_at(&service->tasks.listen, 0);
			others_follow(service);
		} else {
			shunt_task_at(task, r->leave_at);
		}
	}
	shunt_lock_leave(&engine->rendezvous_lock);
	shunt_porter_dismiss_all(&engine->porter, &crowd);
}

/* The addresses are the child's too; it joins who owns their names when it accepts there. */
static void abandon(struct shunt_engine *engine, struct shunt_rendezvous *r)
{
	shunt_own_fds_close(&engine->fds, r->fd);
	shunt_own_fds_close(&engine->fds, r->worker_fd);
	shunt_own_fds_close(&engine->fds, r->owner_fd);
	shunt_own_fds_close(&engine->fds, r->abstract_fd);
	shunt_own_fds_close(&engine->fds, r->abstract_worker_fd);
	r->fd = r->worker_fd = r->owner_fd = r->abstract_fd = r->abstract_worker_fd = -1;
	r->in_user_dir = false;
	r->is_worker = r->alone = r->turned_away = r->strangers = false;
	r->own_wanted = 0;
	r->wanted_until = r->look_at = r->leave_at = 0;
	r->failures = 0;
	r->service = NULL;
	r->remote = NULL;
	r->tried_remote = false;
}

void shunt_listen_abandon(struct shunt_engine *engine)
{
	shunt_lock_take(&engine->rendezvous_lock);
	for (struct shunt_rendezvous *r = engine->rendezvous; r; r = r->next)
		abandon(engine, r);
	shunt_lock_leave(&engine->rendezvous_lock);
}

void shunt_listen_finish(struct shunt_engine *engine)
{
	shunt_lock_take(&engine->rendezvous_lock);
	for (struct shunt_rendezvous *r = engine->rendezvous; r; r = r->next)
		shunt_rendezvous_unname(engine, r);
	shunt_lock_leave(&engine->rendezvous_lock);
}

void shunt_listen_share(struct shunt_engine *engine)
{
	shunt_lock_take(&engine->rendezvous_lock);
	for (struct shunt_rendezvous *r = engine->rendezvous; r; r = r->next) {
		_Atomic uint32_t *word;

		if (r->wanted != &r->own_wanted)
			continue;
		word = shunt_fork_slots_prepare(&engine->forks, engine->sys) ?
			       shunt_fork_slots_want(&engine->forks, r->own_wanted) :
			       NULL;
		if (!word)
			break;
		r->wanted = word;
	}
	shunt_lock_leave(&engine->rendezvous_lock);
}
