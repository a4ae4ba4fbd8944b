/* SPDX-License-Identifier: MIT */
/*
 * The monitor of a node that hands out tokens (HA-01…04, HA-10…14): periods, pools, and what clients say of them. It
 * exists where the rules have a capacity. All of it is the service thread's; statistics read under group.lock.
 *
 * Clients of one trust domain share a pool's word: those of one device and, within one host, of one user. So nobody
 * takes tokens away from another user's clients. The monitor divides what the ledger allows among the pools.
 */
#ifndef SHUNT_CORE_QOS_MONITOR_H
#define SHUNT_CORE_QOS_MONITOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "core/device/page.h"
#include "core/qos/capacity.h"
#include "core/qos/ledger.h"
#include "core/qos/rules.h"

struct shunt_device;
struct shunt_link;
struct shunt_service;
struct shunt_task;

#define SHUNT_POOLS 16 /* further domains have their reservations alone */

struct shunt_pool { /* of a trust domain */
	struct shunt_page page; /* made while there are links */
	struct shunt_ledger_pool tokens;
	bool abroad;
	uid_t user; /* within one host */
	uint32_t links;
	bool drawn; /* since it was filled last */
	bool accused; /* that a client has written into it was said */
};

struct shunt_monitor {
	struct shunt_ledger ledger;
	struct shunt_capacity capacity;
	struct shunt_pool pools[SHUNT_POOLS];
	uint64_t look_at; /* ns */
	uint32_t quiet; /* looks in a row that found nothing new */
	uint32_t members; /* links */
	uint32_t batch;
	bool asked; /* for reports, in this period */
};

/* The rules have a capacity: clients that join need tokens. NULL: out of memory. */
struct shunt_monitor *shunt_monitor_make(struct shunt_service *service, const struct shunt_qos_rules *rules);
/* All have left, or will not be told: the service ends, or it is the copy of a fork. */
void shunt_monitor_free(struct shunt_monitor *monitor);
/* The link carries connections of ours: the peer needs tokens from now on. Its throttle exists. */
void shunt_monitor_join(struct shunt_link *link);
/* The link is over, or (`told`) its peer needs no tokens any more. */
void shunt_monitor_leave(struct shunt_link *link, bool told);
/* What is due: a look at the pools, the end of a period. */
void shunt_monitor_run(struct shunt_service *service, struct shunt_task *task, uint64_t now);

#endif
