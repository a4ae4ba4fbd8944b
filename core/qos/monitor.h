/* SPDX-License-Identifier: MIT */
/*
 * The monitor of a node that hands out tokens (HA-01…04, HA-10…14): periods, pools, and what clients say of them. It
 * works where the rules have a capacity. It is the service's, and outlives rules: a thread may be about to take tokens,
 * and a peer keeps what it has been lent. All of it is the service thread's; statistics read under group.lock.
 *
 * Clients of one trust domain share a pool's word: those of one device and, within one host, of one user. So nobody
 * takes tokens away from another user's clients. The monitor divides what the ledger allows among the pools.
 *
 * Reservations. The monitor is the service thread of the node (core/qos/monitor.c). At the beginning of a period it
 * tells each link its tokens. Then it looks each millisecond, or each eighth when nothing happens. A look reads the
 * pools, hears the reports and fills the pools to what the ledger allows. The ledger and a client's account are pure.
 * They agree on one thing: the reservation is what is left, what was spent and what was given back. A report never
 * says too much of what was given back. So consumed tokens, tokens that are out and pools never exceed the capacity,
 * whatever is late. The monitor is the service's and outlives rules, because a peer keeps the page that it was lent.
 */
#ifndef SHUNT_CORE_QOS_MONITOR_H
#define SHUNT_CORE_QOS_MONITOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "core/device/page.h"
#include "core/qos/capacity.h"
#include "core/qos/ledger.h"
#include "core/qos/own_sends.h"
#include "core/qos/rules.h"

struct shunt_link;
struct shunt_service;
struct shunt_task;

#define SHUNT_POOLS 16 /* further domains have their reservations alone */

struct shunt_pool { /* of a trust domain */
	struct shunt_page page; /* made while there are links */
	struct shunt_ledger_pool tokens;
	bool remote;
	uid_t user; /* within one host */
	uint32_t links;
	bool drawn; /* since it was filled last */
	bool accused; /* that a client has written into it was said */
};

struct shunt_monitor {
	struct shunt_ledger ledger;
	struct shunt_capacity capacity;
	bool fixed; /* the capacity does not follow what is used */
	bool profiled; /* its mean and deviation are known */
	struct shunt_own_sends own;
	struct shunt_pool pools[SHUNT_POOLS];
	uint64_t look_at; /* ns */
	uint64_t allowed; /* of what was drawn in this period: clients may have used it (holding.h) */
	uint32_t quiet; /* looks in a row that found nothing new */
	uint32_t members; /* links */
	uint32_t batch;
	bool asked; /* for reports, in this period */
};

/* For rules with a capacity: clients that join need tokens. NULL: out of memory. */
struct shunt_monitor *shunt_monitor_begin(struct shunt_service *service,
					  const struct shunt_qos_rules *rules);
/* With the service; `copy`: in a fork's child. */
void shunt_monitor_free(struct shunt_service *service, bool copy);
/* The link carries connections of ours: the peer needs tokens from now on. Its throttle exists. */
void shunt_monitor_join(struct shunt_link *link);
/* Its peer needs no tokens any more, and is told so. */
void shunt_monitor_dismiss(struct shunt_link *link);
/* The link is over. */
void shunt_monitor_leave(struct shunt_link *link);
/* Due steps: a look at the pools, the end of a period. */
void shunt_monitor_run(struct shunt_service *service, struct shunt_task *task, uint64_t now);

#endif
