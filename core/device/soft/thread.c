/* SPDX-License-Identifier: MIT */
/*
 * Engine mode (SD-14): one thread per context executes what was posted, at some later time, as
 * an RNIC would. It exists for tests of races and for the cost model, whose times it keeps; inline
 * mode is what the product runs on otherwise.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include "core/base/kernel_clock.h"
#include "core/device/soft/device.h"

enum {
	RETRY_NS = 50000, /* how often WRs that wait for the peer are tried again */
	SPIN_NS = 50000, /* the end of a wait for the model: no timer of the kernel is that exact */
};

/* Work left after a look at all QPs. */
struct agenda {
	uint64_t due; /* of the first WR that the model holds back; UINT64_MAX: none */
	bool retry; /* some WR waits for the peer */
};

struct soft_thread {
	pthread_t thread;
	pthread_mutex_t mutex; /* kicked, stop; taken with no other lock held */
	pthread_cond_t cond;
	bool kicked;
	_Atomic bool stop; /* also read without the mutex */
	struct soft_context *context;
};

static void agenda_add(struct agenda *agenda, uint64_t due)
{
	if (!due)
		agenda->retry = true;
	else if (due < agenda->due)
		agenda->due = due;
}

static void qp_work(struct soft_qp *qp, struct agenda *agenda)
{
	const struct soft_attr *attr = &qp->context->attr;
	uint32_t wake;
	bool settled;

	soft_lock(&qp->sq_lock);
	soft_pending_progress(qp);
	wake = soft_send_ring(qp);
	agenda_add(agenda, soft_pending_due(qp));
	settled = !qp->pending_count && atomic_load(&qp->settle_asked);
	soft_unlock(&qp->sq_lock);
	if (wake)
		soft_peer_wake(qp, wake);
	if (settled && atomic_exchange(&qp->settle_asked, 0) && attr->settled)
		attr->settled(attr->settled_arg);
}

static struct agenda context_work(struct soft_context *context)
{
	struct agenda agenda = { .due = UINT64_MAX };

	soft_lock(&context->list_lock);
	for (struct soft_qp *qp = context->qps; qp; qp = qp->next)
		qp_work(qp, &agenda);
	soft_unlock(&context->list_lock);
	return agenda;
}

/* How long the thread may sleep; UINT64_MAX: until it is kicked. */
static uint64_t sleep_ns(const struct soft_context *context, const struct agenda *agenda)
{
	uint64_t now, ns = agenda->retry ? RETRY_NS : UINT64_MAX;

	if (agenda->due == UINT64_MAX)
		return ns;
	now = context->attr.now();
	if (agenda->due < now + SPIN_NS)
		return 0;
	return agenda->due - now - SPIN_NS < ns ? agenda->due - now - SPIN_NS : ns;
}

static void wait_for_kick(struct soft_thread *thread, uint64_t ns)
{
	struct timespec until;

	if (ns == UINT64_MAX) {
		pthread_cond_wait(&thread->cond, &thread->mutex);
		return;
	}
	shunt_kernel_clock(CLOCK_MONOTONIC, &until);
	ns += (uint64_t)until.tv_nsec;
	until.tv_sec += (time_t)(ns / 1000000000);
	until.tv_nsec = (long)(ns % 1000000000);
	pthread_cond_timedwait(&thread->cond, &thread->mutex, &until);
}

/*
 * WRs posted meanwhile are due later: there is no need to look at them. The yield lets those run
 * who wait for what is about to complete; cores may be few.
 */
static void spin_until(struct soft_thread *thread, uint64_t due)
{
	while (thread->context->attr.now() < due && !soft_load(&thread->stop)) {
		soft_relax();
		sched_yield();
	}
}

static void *thread_main(void *arg)
{
	struct soft_thread *thread = arg;
	struct agenda agenda = { .due = UINT64_MAX };
	uint64_t ns;

	prctl(PR_SET_TIMERSLACK, 1ul);
	pthread_mutex_lock(&thread->mutex);
	while (!thread->stop) {
		ns = sleep_ns(thread->context, &agenda);
		if (!thread->kicked && ns)
			wait_for_kick(thread, ns);
		thread->kicked = false;
		pthread_mutex_unlock(&thread->mutex);
		if (!ns)
			spin_until(thread, agenda.due);
		agenda = context_work(thread->context);
		pthread_mutex_lock(&thread->mutex);
	}
	pthread_mutex_unlock(&thread->mutex);
	return NULL;
}

/* The program's signals are none of this thread's business. */
static int spawn(struct soft_thread *thread)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&thread->thread, NULL, thread_main, thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

int soft_thread_start(struct soft_context *context)
{
	struct soft_thread *thread = calloc(1, sizeof(*thread));
	pthread_condattr_t attr;
	int err;

	if (!thread)
		return ENOMEM;
	thread->context = context;
	pthread_mutex_init(&thread->mutex, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&thread->cond, &attr);
	pthread_condattr_destroy(&attr);
	context->thread = thread;
	err = spawn(thread);
	if (err) {
		context->thread = NULL;
		pthread_cond_destroy(&thread->cond);
		pthread_mutex_destroy(&thread->mutex);
		free(thread);
	}
	return err;
}

void soft_thread_stop(struct soft_context *context)
{
	struct soft_thread *thread = context->thread;

	if (!thread)
		return;
	pthread_mutex_lock(&thread->mutex);
	thread->stop = true;
	thread->kicked = true;
	pthread_cond_signal(&thread->cond);
	pthread_mutex_unlock(&thread->mutex);
	pthread_join(thread->thread, NULL);
	pthread_cond_destroy(&thread->cond);
	pthread_mutex_destroy(&thread->mutex);
	free(thread);
	context->thread = NULL;
}

void soft_thread_kick(struct soft_context *context)
{
	struct soft_thread *thread = context->thread;

	pthread_mutex_lock(&thread->mutex);
	thread->kicked = true;
	pthread_cond_signal(&thread->cond);
	pthread_mutex_unlock(&thread->mutex);
}
