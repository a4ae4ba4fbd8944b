/* SPDX-License-Identifier: MIT */
/*
 * A variable of a running engine gets another value (XR-35). Most are read where they count, each time. Others are
 * copied into lanes or timers: those follow here. Service thread.
 */
#ifndef SHUNT_CORE_ADMIN_LIVE_H
#define SHUNT_CORE_ADMIN_LIVE_H

#include <stddef.h>

struct shunt_engine;
struct shunt_task;

/* 0; or -1, `why` is one line, and nothing has changed. */
int shunt_live_set(struct shunt_engine *engine, const char *name, const char *text, char *why,
		   size_t room);
/* Lanes that could not follow at once. */
void shunt_live_run(struct shunt_task *task);

#endif
