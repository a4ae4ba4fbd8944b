/* SPDX-License-Identifier: MIT */
#include "core/loop/request.h"
#include "core/base/config.h"
#include "core/fd/own_fds.h"
#include "core/loop/loop.h"
#include "core/trace/slow_step.h"

#define SHUNT_TRACE_LOOK 1000000 /* ns */

void shunt_request_watch(struct shunt_loop *loop)
{
	if (!atomic_exchange(&loop->requests.watching, true))
		shunt_loop_wake(loop);
}

void shunt_request_retry(struct shunt_loop *loop)
{
	shunt_request_watch(loop);
	if (atomic_load(&loop->requests.resting))
		shunt_loop_wake(loop);
}

void shunt_request_refuse(struct shunt_loop *loop, bool *refusing, bool on)
{
	if (*refusing == on)
		return;
	*refusing = on;
	if (on)
		atomic_fetch_add(&loop->requests.refusing, 1);
	else
		atomic_fetch_sub(&loop->requests.refusing, 1);
	shunt_request_watch(loop);
}

void shunt_request_memory(struct shunt_loop *loop)
{
	shunt_loop_remind(loop, &loop->requests.reclaim, 0);
}

void shunt_request_completions(struct shunt_loop *loop)
{
	if (shunt_config_live(&loop->steps->config->slow_ms) &&
	    !shunt_task_waits(&loop->requests.mock))
		shunt_loop_remind(loop, &loop->requests.mock, 0);
}

void shunt_request_gather(struct shunt_loop *loop)
{
	if (!shunt_task_waits(&loop->requests.gather))
		shunt_loop_remind(loop, &loop->requests.gather,
				  loop->fds->sys->now() + SHUNT_GATHER_LOOK);
}

void shunt_request_trace(struct shunt_loop *loop)
{
	shunt_loop_remind(loop, &loop->requests.trace, loop->fds->sys->now() + SHUNT_TRACE_LOOK);
}

void shunt_request_owner(struct shunt_loop *loop)
{
	shunt_loop_post(loop, &loop->requests.fork_owner);
}
