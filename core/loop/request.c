/* SPDX-License-Identifier: MIT */
#include "core/loop/request.h"
#include "core/service.h"

#define SHUNT_TRACE_LOOK 1000000 /* ns */

void shunt_request_watch(struct shunt_engine *engine)
{
	struct shunt_service *service = engine->service;

	if (service && !atomic_exchange(&service->watching, true))
		shunt_loop_wake(&engine->loop);
}

void shunt_request_retry(struct shunt_engine *engine)
{
	struct shunt_service *service = engine->service;

	shunt_request_watch(engine);
	if (service && atomic_load(&service->resting))
		shunt_loop_wake(&engine->loop);
}

void shunt_request_refuse(struct shunt_engine *engine, struct shunt_stream *stream, bool on)
{
	if (stream->refusing == on)
		return;
	stream->refusing = on;
	if (on)
		atomic_fetch_add(&engine->service->refusing, 1);
	else
		atomic_fetch_sub(&engine->service->refusing, 1);
	shunt_request_watch(engine);
}

void shunt_request_memory(struct shunt_engine *engine)
{
	if (engine->service)
		shunt_loop_remind(&engine->loop, &engine->service->tasks.reclaim, 0);
}

void shunt_request_completions(struct shunt_engine *engine)
{
	struct shunt_service *service = engine->service;

	if (shunt_config_live(&engine->config.slow_ms) && !shunt_task_waits(&service->tasks.mock))
		shunt_loop_remind(&engine->loop, &service->tasks.mock, 0);
}

void shunt_request_gather(struct shunt_engine *engine)
{
	struct shunt_task *task = &engine->service->tasks.gather;

	if (!shunt_task_waits(task))
		shunt_loop_remind(&engine->loop, task, shunt_now(engine) + SHUNT_GATHER_LOOK);
}

void shunt_request_trace(struct shunt_engine *engine)
{
	if (engine->service)
		shunt_loop_remind(&engine->loop, &engine->service->tasks.tracing,
				  shunt_now(engine) + SHUNT_TRACE_LOOK);
}
