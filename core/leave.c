/* SPDX-License-Identifier: MIT */
#include "core/leave.h"
#include "core/stream/spare.h"
#include "core/stream/decision.h"
#include "core/stream/loss.h"
#include "core/admin/stats.h"
#include "core/fd/own_fds.h"
#include "core/peer/listen.h"
#include "core/peer/witness.h"
#include "core/poll/devices.h"
#include "core/stream/retire.h"
#include <errno.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "core/admin/local_sockets.h"
#include "core/fork/fork_slots.h"
#include "core/loop/porter.h"
#include "core/peer/claim_state.h"
#include "core/peer/doubt.h"
#include "core/peer/link_end.h"
#include "core/peer/links.h"
#include "core/peer/listener_owner.h"
#include "core/peer/meeting.h"
#include "core/peer/remote.h"
#include "core/poll/cancel.h"
#include "core/peer/reconnect.h"
#include "core/service.h"
#include "core/stream/offer.h"
#include "core/stream/proof.h"
#include "core/stream/backlog.h"
#include "core/stream/sleep.h"
#include "core/wait/companion.h"
#include "core/young.h"

#define RETIRING 2000000000ull	/* ns that peers may take to hand streams back */
#define PATIENCE 3000000000ull	/* ns for the links to end, and sockets to take what is sent again */
#define PORTER 1000000000ull	/* ns that a stranger may hold the porter up */
#define LOOK 1000000ull		/* ns between two looks: what a lane has posted meanwhile is told to nobody */
#define TIMES_MAX 16		/* that the service thread ends and begins anew */
#define MANY 64			/* streams whose readability is noted */
#define WHY "its process changes its user or confines itself"	/* a link ends */

/* --- the service thread --- */

/* Those that do not own their address hear nothing more of its owner. rendezvous_lock held. */
static void withdraw(struct shunt_engine *engine, struct shunt_rendezvous *r,
		     struct shunt_crowd *crowd)
{
	shunt_rendezvous_close(engine, r, crowd);
	shunt_own_fds_close(&engine->fds, r->owner_fd);
	r->owner_fd = -1;
	r->leave_at = r->look_at = 0;
	r->failures = 0;
	atomic_store(&r->is_worker, false);
	atomic_store(&r->alone, false);
	r->own_wanted = 0;
}

static void close_names(struct shunt_service *service)
{
	struct shunt_engine *engine = service->engine;
	struct shunt_crowd crowd = { .count = 0 };

	shunt_lock_take(&engine->rendezvous_lock);
	for (struct shunt_rendezvous *r = engine->rendezvous; r; r = r->next)
		withdraw(engine, r, &crowd);
	shunt_lock_leave(&engine->rendezvous_lock);
	withdraw(engine, &service->process, &crowd);
	shunt_porter_dismiss_all(&engine->porter, &crowd);
	shunt_listener_owner_run(&service->tasks.listener_owner);	/* who accepts at those addresses, too, is dismissed */
}

static bool is_connection(struct shunt_stream *stream, void *unused)
{
	(void)unused;
	return stream->fd >= 0 && stream->role != SHUNT_LISTENER;
}

/* A stream's locks come before streams_lock. True: visit() has said so of one. */
static bool each_stream(struct shunt_engine *engine, bool (*visit)(struct shunt_stream *, void *),
			void *arg)
{
	struct shunt_sweep sweep = { .wants = is_connection };
	struct shunt_stream *stream;
	bool any = false;

	while ((stream = shunt_streams_next(engine, &sweep)) != NULL)
		any |= visit(stream, arg);
	return any;
}

/*
 * To the kernel, with what is unread, as far as the peer can. A queue pair that just ends would lose
 * what the peer posts meanwhile, unless it keeps that. True: it is still under way.
 */
static bool retires(struct shunt_stream *stream, void *unused)
{
	struct shunt_engine *engine = shunt_stream_engine(stream);

	(void)unused;
	if (atomic_load(&stream->state) != SHUNT_LINKED ||
	    shunt_intake_final(&stream->seat->in.intake))
		return false;
	if (shunt_stream_stays(stream))
		shunt_retire_begin(engine, stream, SHUNT_CAUSE_CHANGES);
	return !shunt_retire_complete(engine, stream) &&
	       atomic_load(&stream->seat->leaving.retiring) < SHUNT_CANNOT_RETIRE;
}

static void begin(struct shunt_service *service)
{
	close_names(service);
	shunt_meeting_end(service);
	shunt_remote_end(service);
	shunt_reconnect_forget(service);
	for (struct shunt_link *link = service->links; link; link = link->next)
		if (atomic_load(&link->state) == SHUNT_LINK_HELLO)
			shunt_link_fail(link, WHY);
}

static void end_links(struct shunt_service *service)
{
	service->links_left = true;
	for (struct shunt_link *link = service->links; link; link = link->next) {
		shunt_link_fail(link, WHY);
		shunt_patience_begin(link);	/* for its LEAVE */
	}
}

/* The peer has told all it has to, and knows all of us. */
static bool is_over(struct shunt_service *service)
{
	for (struct shunt_link *link = service->links; link; link = link->next) {
		uint8_t state = atomic_load(&link->state);

		if (state != SHUNT_LINK_DEAD &&
		    (state != SHUNT_LINK_BROKEN || link->seated || shunt_channel_waits(&link->channel)))
			return false;
	}
	return !service->engine->work.asked && !atomic_load(&service->engine->work.resends);
}

void shunt_leave_run(struct shunt_task *task)
{
	struct shunt_service *service = shunt_service_of(task, leave);
	struct shunt_engine *engine = service->engine;
	uint64_t now = shunt_now(engine);

	if (!atomic_load(&service->leaving))
		return;
	shunt_task_at(task, now + LOOK);
	if (!service->leave_by) {
		begin(service);
		service->leave_by = now + RETIRING;
	}
	if (!service->links_left) {
		if (each_stream(engine, retires, NULL) && now < service->leave_by)
			return;
		end_links(service);
		service->leave_by = now + PATIENCE;
		shunt_task_at(task, 0);	/* the links' failure is dealt with next */
	} else if (is_over(service) || now >= service->leave_by) {
		atomic_store(&service->stopping, true);
		shunt_task_at(task, 0);
	}
}

/* --- the thread that makes the call --- */

static void release_offers(struct shunt_service *service)
{
	struct shunt_stream *stream;

	shunt_offer_release(&service->engine->work);
	shunt_doubt_forget(service);
	while ((stream = service->connecting) != NULL) {
		service->connecting = stream->claim.next_offer;
		shunt_claim_stays(service->engine, stream, SHUNT_CAUSE_CHANGES);
	}
}

/* Not everything has come to TCP in time, because a peer takes nothing: no orderly end for those. */
static bool owes(struct shunt_stream *stream, void *unused)
{
	(void)unused;
	return stream->tx.backlog.fd >= 0;
}

/* The connection is reset: its backlog will not be written. */
static void stream_give_up(struct shunt_stream *stream)
{
	struct shunt_engine *engine = shunt_stream_engine(stream);
	bool awaited;

	shunt_lock_take(&stream->rx.lock);
	shunt_lock_take(&stream->tx.lock);
	awaited = stream->tx.backlog.fd >= 0;
	if (awaited) {
		shunt_decision_say(SHUNT_LOG_WARN, stream,
				   "it is reset: its peer takes no bytes");
		if (atomic_load(&stream->state) == SHUNT_LINKED)
			shunt_loss_end(stream, 0);
		else
			shunt_streams_reset_tcp(engine->sys, stream->tx.backlog.fd);
		shunt_backlog_over(stream);
	}
	shunt_lock_leave(&stream->tx.lock);
	shunt_lock_leave(&stream->rx.lock);
	if (!awaited)
		return;
	shunt_sleep_tell(stream, EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP);
	shunt_streams_unhold(stream);
}

static void give_up_owing(struct shunt_engine *engine)
{
	struct shunt_sweep sweep = { .wants = owes };
	struct shunt_stream *stream;

	while ((stream = shunt_streams_next(engine, &sweep)) != NULL)
		stream_give_up(stream);
}

/*
 * If all that the link has brought is read, the kernel has the rest. Otherwise it stays ours. Nobody has claimed what is in
 * doubt. A filter may forbid the calls by which a candidate is served.
 */
static bool hand_back(struct shunt_stream *stream, void *arg)
{
	const bool *for_good = arg;

	if (atomic_load(&stream->state) == SHUNT_LINKED && !shunt_reconnect_let_go(stream))
		return true;
	if (shunt_stream_is_doubted(stream) && !*for_good)
		atomic_store(&stream->usage, SHUNT_USE_BEGUN);
	else if (atomic_load(&stream->state) == SHUNT_CANDIDATE && atomic_load(&stream->usage))
		shunt_streams_plain(shunt_stream_engine(stream), stream, SHUNT_CAUSE_CHANGES);
	return false;
}

/* No thread but this one, and the device's own: nobody can be about to look at the device. */
static bool is_alone(struct shunt_engine *engine)
{
	struct stat threads;

	return !stat("/proc/self/task", &threads) &&
	       threads.st_nlink <= 3u + !!engine->config.soft_model[0];
}

static void close_devices(struct shunt_engine *engine)
{
	struct shunt_group *group = &engine->group;

	if (!group->open || engine->service->links || (!engine->loop.manual && !is_alone(engine)))
		return;
	shunt_lock_take(&group->lock);
	shunt_companion_silence(engine);
	shunt_lock_leave(&group->lock);
	shunt_devices_close(&engine->group);
}

/* The service thread has ended: what it has left is put away. No lock held but leave_lock. */
static void put_away(struct shunt_engine *engine, bool for_good)
{
	const struct shunt_engine *before = shunt_service_role_begin(engine);
	struct shunt_service *service = engine->service;

	shunt_lock_take(&engine->group.seats_lock);
	for (struct shunt_link *link = service->links; link; link = link->next)
		shunt_link_kill(link, WHY);
	shunt_retire_run(&service->engine->work.tasks.retire);
	release_offers(service);
	shunt_proof_end_waiting(engine);
	give_up_owing(engine);
	each_stream(engine, hand_back, &for_good);
	shunt_streams_reap(engine);
	shunt_links_bury(service);
	shunt_lock_leave(&engine->group.seats_lock);
	shunt_local_sockets_close(service);
	shunt_witness_dismiss(service);
	service->threaded = false;
	service->ended = true;
	close_devices(engine);
	shunt_service_role_end(before);
}

/* The kernel counts a thread for a moment after it was joined; unshare(CLONE_NEWUSER) would fail. */
static void await_gone(struct shunt_engine *engine, pid_t tid)
{
	while (!syscall(SYS_tgkill, engine->forks.pid, tid, 0))
		sched_yield();
}

/* The service thread is asked to end. */
static void ask_thread(struct shunt_engine *engine)
{
	struct shunt_service *service = engine->service;

	atomic_store(&service->leaving, true);
	atomic_store(&engine->loop.woken, false);
	shunt_loop_wake(&engine->loop);
}

void shunt_leave_await_porter(struct shunt_engine *engine, bool ends)
{
	uint64_t until = shunt_now(engine) + PORTER;

	if (ends ? !shunt_porter_await(&engine->porter, until) :
		   !shunt_porter_follows(&engine->porter, until))
		shunt_log(SHUNT_LOG_WARN, "a thread that hangs up on a stranger stays outside what confines the process");
}

struct readable {
	int count;
	struct { int fd, bytes; } of[MANY];
};

static bool note_readable(struct shunt_stream *stream, void *arg)
{
	struct readable *readable = arg;
	int fd = stream->fd;

	if (fd >= 0 && readable->count < MANY && shunt_stream_is_linked(stream)) {
		readable->of[readable->count].fd = fd;
		readable->of[readable->count++].bytes = shunt_stream_inq(shunt_stream_engine(stream), fd, stream);
	}
	return false;
}

static void leave(struct shunt_engine *engine, bool for_good)
{
	struct readable readable = { .count = 0 };
	struct shunt_service *service;
	bool running;

	shunt_lock_take(&engine->service_lock);	/* who was starting it has done so */
	service = engine->service;
	running = service && service->threaded;
	shunt_lock_leave(&engine->service_lock);
	if (!running) {	/* connections that have not lasted yet may be used, and not be claimed */
		if (atomic_load(&engine->brief_ones) || atomic_load(&engine->doubted_ones))
			each_stream(engine, hand_back, &for_good);
		return;
	}
	shunt_spares_end(engine, NULL);
	each_stream(engine, note_readable, &readable);
	ask_thread(engine);
	pthread_join(service->thread, NULL);
	put_away(engine, for_good);
	await_gone(engine, service->tid);
	shunt_leave_await_porter(engine, true);
	for (int i = 0; i < readable.count; i++)
		shunt_retire_await_bytes(engine, readable.of[i].fd, readable.of[i].bytes);
	if (++engine->times_left >= TIMES_MAX)
		atomic_store(&engine->stays, SHUNT_CAUSE_RESTLESS);
}

void shunt_engine_leave(struct shunt_engine *engine, bool for_good)
{
	int saved = errno, state = shunt_cancel_off();

	shunt_young_give_up(engine, false);
	shunt_lock_take(&engine->leave_lock);
	atomic_fetch_add(&engine->leaving, 1);
	leave(engine, for_good);
	if (for_good && engine->config.stats_path[0])	/* a filter may forbid it at exit */
		shunt_stats_write(engine);
	shunt_lock_leave(&engine->leave_lock);
	shunt_cancel_restore(state);
	errno = saved;
}

void shunt_engine_stay(struct shunt_engine *engine)
{
	atomic_store(&engine->stays, SHUNT_CAUSE_SANDBOX);
	shunt_young_give_up(engine, true);
	engine->group.finished = true;	/* no link has anything of ours */
}

static bool listens(struct shunt_engine *engine)
{
	bool any = false;

	shunt_lock_take(&engine->rendezvous_lock);
	for (struct shunt_rendezvous *r = engine->rendezvous; r; r = r->next)
		any |= r->listener != NULL;
	shunt_lock_leave(&engine->rendezvous_lock);
	return any;
}

bool shunt_engine_left(struct shunt_engine *engine)
{
	struct shunt_service *service = engine->service;

	atomic_fetch_sub(&engine->leaving, 1);
	return service && service->ended && !atomic_load(&engine->stays) && listens(engine);
}

void shunt_engine_begin_anew(struct shunt_engine *engine)
{
	if (engine->service && engine->service->ended)
		shunt_listen_again(engine);
}

void shunt_engine_begin_early(struct shunt_engine *engine)
{
	if (listens(engine) && engine->serve(engine))
		shunt_porter_stay(&engine->porter);
}
