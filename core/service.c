/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "core/admin/live.h"
#include "core/admin/local_sockets.h"
#include "core/await.h"
#include "core/base/deadline.h"
#include "core/base/identity.h"
#include "core/fd/own_fds.h"
#include "core/fork/fork_slots.h"
#include "core/lane/fault_device.h"
#include "core/lane/roster.h"
#include "core/leave.h"
#include "core/link/share.h"
#include "core/no_new_privs.h"
#include "core/peer/fork_owner.h"
#include "core/peer/claim.h"
#include "core/peer/claim_task.h"
#include "core/peer/deaf.h"
#include "core/peer/doubt.h"
#include "core/peer/eviction.h"
#include "core/peer/given.h"
#include "core/peer/limits.h"
#include "core/peer/links.h"
#include "core/peer/listen.h"
#include "core/peer/listener_owner.h"
#include "core/peer/listener_worker.h"
#include "core/peer/meeting.h"
#include "core/peer/possession.h"
#include "core/peer/mock.h"
#include "core/peer/reconnect.h"
#include "core/peer/remote.h"
#include "core/peer/tracing.h"
#include "core/peer/witness.h"
#include "core/poll/polling.h"
#include "core/qos/pacing.h"
#include "core/peer/verdict.h"
#include "core/qos/qos.h"
#include "core/recovery/idle.h"
#include "core/recovery/keepalive.h"
#include "core/recovery/reclaim.h"
#include "core/service.h"
#include "core/stream/gather.h"
#include "core/stream/offer.h"
#include "core/stream/overflow.h"
#include "core/stream/proof.h"
#include "core/stream/reset_unread.h"
#include "core/stream/retire.h"
#include "core/stream/unclaimed.h"
#include "core/stream/destroyed.h"
#include "core/stream/expire.h"
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

#define EVENTS 64
#define STACK_BYTES (256 * 1024)

/* --- a round --- */

/* A task, its file and its function have one name. */
#define TASK_IN(place, name, each_round) { #name, &(place), shunt_##name##_run, each_round }
#define TASK(name, each_round) TASK_IN(tasks->name, name, each_round)

static void enlist(struct shunt_engine *engine, struct shunt_tasks *tasks)
{
	struct shunt_loop *loop = &engine->loop;
	const struct {
		const char *name;
		struct shunt_task *task;
		void (*run)(struct shunt_task *);
		bool each_round;
	} order[] = {
		TASK_IN(loop->requests.fork_owner, fork_owner, false),
		TASK(listen, false),
		TASK_IN(engine->work.tasks.claim_task_offers, claim_task_offers, false),
		TASK_IN(engine->porter.emptied, deaf, false),
		TASK(claim, true),
		TASK(doubt, false),
		TASK(meeting, false),
		TASK(remote, true),
		TASK(listen_withdraw, false),
		TASK_IN(engine->work.tasks.claim_task_unclaimed, claim_task_unclaimed, false),
		TASK(keepalive, false),
		TASK_IN(engine->work.tasks.expire, expire, false),
		TASK_IN(engine->work.tasks.destroyed, destroyed, false),
		TASK_IN(engine->work.tasks.bypass, destroyed_bypass, false),
		TASK_IN(engine->work.tasks.overflow, overflow, false),
		TASK(listener_worker, false),
		TASK(listener_owner, false),
		TASK(possession, false),
		TASK(limits, false),
		TASK_IN(engine->work.tasks.retire, retire, true),
		TASK_IN(engine->work.tasks.given, given, false),
		TASK_IN(engine->work.tasks.reset_unread, reset_unread, false),
		TASK_IN(engine->work.tasks.spare, spare, false),
		TASK(links, true),
		TASK(no_new_privs, false),
		TASK(leave, true),
		TASK(reconnect, true),
		TASK_IN(loop->requests.gather, gather, false),
		TASK_IN(loop->requests.reclaim, reclaim, false),
		TASK_IN(loop->requests.mock, mock, false),
		TASK_IN(engine->work.tasks.pacing, pacing, false),
		TASK(qos, false),
		TASK(idle, false),
		TASK(eviction, false),
		TASK_IN(loop->requests.trace, tracing, false),
		TASK_IN(engine->fault.task, fault_device, true),
		TASK(dump, false),
		TASK(live, false),
	};

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		shunt_loop_enlist(loop, order[i].name, order[i].task, order[i].run,
				  order[i].each_round);
}

void shunt_service_step(struct shunt_engine *engine, int timeout_ms)
{
	const struct shunt_engine *before = shunt_service_role_begin(engine);
	struct shunt_service *service = engine->service;
	struct epoll_event events[EVENTS];
	int n;

	shunt_lock_take(&engine->group.seats_lock);
	timeout_ms = shunt_loop_work(&engine->loop, timeout_ms);
	shunt_lock_leave(&engine->group.seats_lock);
	timeout_ms = shunt_await_completions(service, timeout_ms);
	n = shunt_loop_wait(&engine->loop, events, EVENTS, timeout_ms);
	shunt_lock_take(&engine->rendezvous_lock);	/* what was written there before it was registered is seen now */
	shunt_lock_leave(&engine->rendezvous_lock);
	shunt_lock_take(&engine->group.seats_lock);
	shunt_loop_hear(&engine->loop, events, n);
	shunt_lock_leave(&engine->group.seats_lock);
	shunt_service_role_end(before);
}

/*
 * A fork's child may get the stack on which its parent's thread was at work. AddressSanitizer, to which plain programs
 * do not tell their threads, still has the marks of that one's calls there.
 */
static void take_stack(void)
{
#if defined(__SANITIZE_ADDRESS__)
	__asan_handle_no_return();
#endif
}

static void *run(void *arg)
{
	struct shunt_engine *engine = arg;

	take_stack();
	engine->service->tid = (pid_t)syscall(SYS_gettid);
	if (engine->service->measures)
		shunt_sleepcost_partner(&engine->service->sleepcost);
	shunt_no_new_privs_follow(engine);
	while (!atomic_load(&engine->service->stopping))
		shunt_service_step(engine, -1);
	shunt_no_new_privs_follow(engine);
	return NULL;
}

/* --- life --- */

static void unmake(struct shunt_engine *engine, struct shunt_service *service)
{
	shunt_local_sockets_close(service);
	shunt_witness_dismiss(service);
	shunt_loop_close(&engine->loop);
	shunt_qos_end(service, false);
	free(service);
}

static void forget(struct shunt_rendezvous *r)
{
	r->fd = r->worker_fd = r->owner_fd = r->abstract_fd = r->abstract_worker_fd = -1;
}

/* NULL: none, and why. */
static struct shunt_service *make(struct shunt_engine *engine, enum shunt_cause *cause)
{
	struct shunt_service *service = calloc(1, sizeof(*service));

	*cause = SHUNT_CAUSE_NO_THREAD;
	if (!service)
		return NULL;
	service->engine = engine;
	engine->work = (struct shunt_stream_work){ .inbox_lock = SHUNT_LOCK(INBOX) };
	if (!shunt_identity_make(engine->sys, &engine->identity)) {
		*cause = SHUNT_CAUSE_NO_RANDOM;
		free(service);
		return NULL;
	}
	if (!engine->send_buffer)
		engine->send_buffer = shunt_overflow_bound(engine);
	service->witness.fd = -1;
	forget(&service->process);
	forget(&service->meeting_place);
	if (!shunt_fork_slots_prepare(&engine->forks, engine->sys) ||
	    shunt_loop_open(&engine->loop)) {
		free(service);
		return NULL;
	}
	enlist(engine, &service->tasks);
	shunt_task_at(&engine->work.tasks.claim_task_unclaimed, 0);	/* there may be some already */
	if (shunt_local_sockets_open(service)) {
		unmake(engine, service);
		return NULL;
	}
	shunt_qos_begin(service);
	shunt_verdict_begin(service);
	return service;
}

/* The program's signals are the program's threads' business. */
static bool start_thread(struct shunt_service *service)
{
	pthread_attr_t attr;
	sigset_t all, before;
	int failed;

	atomic_store(&service->follows, false);
	service->measures = shunt_polling(&service->engine->group)->spins;
	sem_init(&service->followed, 0, 0);
	shunt_share_spare_heap(&service->engine->links);
	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = pthread_create(&service->thread, &attr, run, service->engine);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	service->threaded = !failed;
	if (!failed && service->measures && !service->engine->times_left)
		service->engine->group.sleep_cost = shunt_sleepcost_measure(service->engine->sys, &service->sleepcost);
	return !failed;
}

/* Once more, in what a former thread has left (leave.c). */
static bool revive(struct shunt_service *service)
{
	struct shunt_engine *engine = service->engine;

	atomic_store(&service->leaving, false);
	atomic_store(&service->stopping, false);
	service->leave_by = 0;
	service->links_left = false;
	service->deaf = 0;
	shunt_task_at(&engine->work.tasks.claim_task_unclaimed, 0);
	shunt_task_at(&engine->work.tasks.claim_task_offers, 0);	/* it may have come too late for the former one */
	/* Strangers know the names that the former one had. */
	service->ended = !shunt_identity_make(engine->sys, &engine->identity) ||
			 shunt_local_sockets_open(service) ||
			 (!engine->loop.manual && !start_thread(service));
	if (service->ended)
		shunt_local_sockets_close(service);
	return !service->ended;
}

/* service_lock held. Each is said once. */
static void go_without(struct shunt_engine *engine, enum shunt_cause cause)
{
	char text[SHUNT_CAUSE_ROOM];

	if (engine->no_service != cause)
		shunt_log(cause == SHUNT_CAUSE_CONFINED ? SHUNT_LOG_INFO : SHUNT_LOG_WARN,
			  "connections stay on TCP: %s", shunt_cause_say(cause, text));
	engine->no_service = cause;
}

bool shunt_service_start(struct shunt_engine *engine)
{
	const struct shunt_engine *before = shunt_service_role_begin(
		engine); /* there is no such thread yet */
	enum shunt_cause cause = SHUNT_CAUSE_NO_THREAD;
	struct shunt_service *service;
	int saved = errno;

	shunt_lock_take(&engine->service_lock);
	service = engine->service;
	if (shunt_leave_is_due(engine)) {
		service = NULL;
	} else if (service && service->ended) {
		if (!revive(service))
			service = NULL;
	} else if (!service && !shunt_share_thread(&engine->links,
						   engine->no_service == SHUNT_CAUSE_CONFINED)) {
		go_without(engine, SHUNT_CAUSE_CONFINED);
	} else if (!service && !engine->group.finished) {
		service = make(engine, &cause);
		engine->service = service;
		if (service && !engine->loop.manual && !start_thread(service)) {
			engine->service = NULL;
			unmake(engine, service);
			service = NULL;
		}
		if (!service)
			go_without(engine, cause);
	}
	shunt_lock_leave(&engine->service_lock);
	shunt_service_role_end(before);
	errno = saved;
	return service != NULL;
}

/* In a fork's child: the thread is not there, its descriptors are the parent's. */
void shunt_service_abandon(struct shunt_engine *engine)
{
	struct shunt_service *service = engine->service;

	if (!service)
		return;
	engine->service = NULL;
	shunt_loop_close(&engine->loop);
	shunt_local_sockets_close(service);
	shunt_witness_dismiss(service);
	shunt_reconnect_forget(service);
	shunt_qos_end(service, true);
	shunt_own_fds_close(&engine->fds, service->process.fd);
	shunt_listener_owner_abandon(service);
	shunt_listen_abandon(engine);
	shunt_meeting_abandon(service);
	shunt_remote_forget(service);
	for (struct shunt_link *link = service->links; link; link = link->next)
		shunt_own_fds_close(&engine->fds, link->channel.fd);
}
