/* SPDX-License-Identifier: MIT */
/*
 * How long streams and links have been idle (XR-31). No send or receive keeps a time: the service thread looks from
 * time to time what has moved. It looks each second while something moves, and ever more seldom, down to twice a
 * minute, while nothing does. So an idle time is never too long, and too short by no more than the time between two
 * looks. A reader of the statistics makes it look as well. A stream that has been idle for long may give memory back
 * (reclaim.h). Service thread, and exit().
 */
#ifndef SHUNT_CORE_RECOVERY_IDLE_H
#define SHUNT_CORE_RECOVERY_IDLE_H

#include <stdint.h>

struct shunt_link;
struct shunt_service;
struct shunt_stream;
struct shunt_task;

/* A link is up: there is something to look at. */
void shunt_idle_begin(struct shunt_service *service);
/* Looks at all that are on links. */
void shunt_idle_run(struct shunt_task *task);
/* ns since a byte of a linked stream has moved on the link. */
uint64_t shunt_idle_stream(struct shunt_stream *stream, uint64_t now);
/* ns since anything has come on a link, or was acknowledged: keepalive asks for that. group.lock held. */
uint64_t shunt_idle_link(struct shunt_link *link, uint64_t now);

#endif
