/* SPDX-License-Identifier: MIT */
/*
 * Keepalive (XR-07): is the peer of an idle lane still there? An RDMA WRITE of no bytes asks its device, which answers
 * without memory, without a receive, and without anybody over there noticing. Only lanes whose device can fail are
 * asked (lane.retains): that the peer of the soft device has ended, the channel says at once. Service thread.
 *
 * It is the device that answers. A process that is stopped (SIGSTOP) keeps its links, as the kernel keeps its TCP
 * connections; so does one that never calls anything.
 *
 * Other ends have other witnesses. The channel of a killed process is closed at once. Where something is under way,
 * the device says so (dead_ms). Otherwise two silent periods of keepalive_ms are asked about; together
 * that is at most their sum. Then the streams fail over, and the word of the kernel counts. Its idle socket has the
 * keepalive settings of the program. core/stream/destroyed.h and user_timeout.h have what the kernel cannot tell.
 *
 * There is one timer for all lanes, the service thread's. A look at 64 lanes is one go; the next 64 have to wait 10
 * ms. A process without a link to an RDMA device is never woken for it. A process with such links is woken twice in
 * keepalive_ms, and once more for the answers.
 */
#ifndef SHUNT_CORE_RECOVERY_KEEPALIVE_H
#define SHUNT_CORE_RECOVERY_KEEPALIVE_H

#include "core/lane/lane.h"

struct shunt_link;
struct shunt_service;
struct shunt_task;

/* The link is up. */
void shunt_keepalive_begin(struct shunt_link *link);
/* keepalive_ms has changed. */
void shunt_keepalive_change(struct shunt_service *service);
/* The link's memory goes. */
void shunt_keepalive_forget(struct shunt_link *link);
/* Asks lanes that have been silent. */
void shunt_keepalive_run(struct shunt_task *task);

/* A lane waits for an answer. */
static inline bool shunt_keepalive_waits(struct shunt_lane *lane)
{
	return atomic_load(&lane->retired) < lane->probe && !atomic_load(&lane->failed);
}

#endif
