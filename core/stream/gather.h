/* SPDX-License-Identifier: MIT */
/*
 * A stream gathers bytes for more that its program has announced (MSG_MORE, TCP_CORK). By tcp(7) a cork holds bytes
 * for at most 200 ms; then the service thread sends them.
 */
#ifndef SHUNT_CORE_STREAM_GATHER_H
#define SHUNT_CORE_STREAM_GATHER_H

struct shunt_task;

/* Sends what has been gathered for long enough. */
void shunt_gather_run(struct shunt_task *task);

#endif
