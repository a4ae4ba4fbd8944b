/* SPDX-License-Identifier: MIT */
/*
 * no_new_privs belongs to a thread, takes nothing away that the engine needs, and cannot be refused.
 * So the service thread sets it for itself before the program's thread does, and lives on. Links stay.
 */
#ifndef SHUNT_CORE_NO_NEW_PRIVS_H
#define SHUNT_CORE_NO_NEW_PRIVS_H

struct shunt_engine;
struct shunt_task;

/* The service thread begins, or ends: a thread of the program may wait for it. */
void shunt_no_new_privs_follow(struct shunt_engine *engine);
/* The service thread's part. */
void shunt_no_new_privs_run(struct shunt_task *task);

#endif
