/* SPDX-License-Identifier: MIT */
/*
 * The service thread's half of core/stream/doubt.h: who holds a connection that has come from another process, or was
 * used before a fork? Looks are for many connections at once, and take a tenth of the thread's time at most.
 */
#ifndef SHUNT_CORE_PEER_DOUBT_H
#define SHUNT_CORE_PEER_DOUBT_H

struct shunt_service;
struct shunt_stream;
struct shunt_task;

/* The stream in doubt has lasted: its holders are looked for soon. */
void shunt_doubt_look(struct shunt_service *service, struct shunt_stream *stream);
/* The service thread has ended: they are looked for when they are used again. */
void shunt_doubt_forget(struct shunt_service *service);
void shunt_doubt_run(struct shunt_task *task);

#endif
