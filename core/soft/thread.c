/*
 * Engine mode (SD-14): one thread per context executes what was posted, at some later time, as
 * an RNIC would. It exists for tests of races; inline mode is what the product runs on.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include "core/soft/device.h"

enum { RETRY_NS = 50000 }; /* how often WRs that wait for the peer are tried again */

struct soft_thread {
	pthread_t thread;
	pthread_mutex_t mutex; /* kicked, stop; taken with no other lock held */
	pthread_cond_t cond;
	bool kicked, stop;
	struct soft_context *context;
};

static bool qp_work(struct soft_qp *qp)
{
	bool waits, wake;

	soft_lock(&qp->sq_lock);
	soft_pending_progress(qp);
	wake = soft_send_ring(qp);
	waits = qp->pending_count != 0;
	soft_unlock(&qp->sq_lock);
	if (wake)
		soft_peer_wake(qp);
	return waits;
}

/* True: some WR still waits. */
static bool context_work(struct soft_context *context)
{
	bool waits = false;

	soft_lock(&context->list_lock);
	for (struct soft_qp *qp = context->qps; qp; qp = qp->next)
		waits |= qp_work(qp);
	soft_unlock(&context->list_lock);
	return waits;
}

static void wait_for_kick(struct soft_thread *thread, bool waits)
{
	struct timespec until;

	if (!waits) {
		pthread_cond_wait(&thread->cond, &thread->mutex);
		return;
	}
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += RETRY_NS;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	pthread_cond_timedwait(&thread->cond, &thread->mutex, &until);
}

static void *thread_main(void *arg)
{
	struct soft_thread *thread = arg;
	bool waits = false;

	pthread_mutex_lock(&thread->mutex);
	while (!thread->stop) {
		if (!thread->kicked)
			wait_for_kick(thread, waits);
		thread->kicked = false;
		pthread_mutex_unlock(&thread->mutex);
		waits = context_work(thread->context);
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
