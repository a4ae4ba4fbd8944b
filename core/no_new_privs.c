/* SPDX-License-Identifier: MIT */
#include "core/no_new_privs.h"
#include <sys/prctl.h>
#include "core/leave.h"
#include "core/poll/cancel.h"
#include "core/service.h"

void shunt_no_new_privs_follow(struct shunt_engine *engine)
{
	struct shunt_service *service = engine->service;

	if (!atomic_load(&engine->loop.no_new_privs))
		return;
	(void)engine->sys->prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	atomic_store(&service->follows, true);
	sem_post(&service->followed);
}

void shunt_no_new_privs_run(struct shunt_task *task)
{
	shunt_no_new_privs_follow(shunt_service_of(task, no_new_privs)->engine);
}

/* A thread that starts after the flag was set follows by itself. leave_lock held. */
static void await_service(struct shunt_engine *engine)
{
	struct shunt_service *service;
	bool running;

	shunt_lock_take(&engine->service_lock);
	service = engine->service;
	running = service && service->threaded;
	shunt_lock_leave(&engine->service_lock);
	if (!running || atomic_load(&service->follows))
		return;
	shunt_loop_post(&engine->loop, &service->tasks.no_new_privs);
	while (!atomic_load(&service->follows))
		(void)sem_wait(&service->followed);
	shunt_leave_await_porter(engine, false);
}

bool shunt_engine_no_new_privs(struct shunt_engine *engine)
{
	int saved = errno, state;

	if (engine->config.soft_model[0])	/* the device has a thread, too */
		return false;
	state = shunt_cancel_off();
	shunt_lock_take(&engine->leave_lock);
	atomic_store(&engine->loop.no_new_privs, true);
	await_service(engine);
	shunt_lock_leave(&engine->leave_lock);
	shunt_cancel_restore(state);
	errno = saved;
	return true;
}
