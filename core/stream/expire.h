/* SPDX-License-Identifier: MIT */
/* The end of streams whose time is over (user_timeout.h). Service thread. */
#ifndef SHUNT_CORE_STREAM_EXPIRE_H
#define SHUNT_CORE_STREAM_EXPIRE_H

struct shunt_task;

void shunt_expire_run(struct shunt_task *task);

#endif
