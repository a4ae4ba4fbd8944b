/* SPDX-License-Identifier: MIT */
/*
 * Reservations of a period: the classes that have one (HA-13), and the parts of their links. At its
 * end, the tokens that each class has used. Service thread.
 */
#ifndef SHUNT_CORE_QOS_GRANTS_H
#define SHUNT_CORE_QOS_GRANTS_H

#include <stdint.h>

struct shunt_service;
struct shunt_throttle;

/* The period has begun in the ledger: each member has its reservation. */
void shunt_grants_make(struct shunt_service *service, uint64_t now);
/* A member that has come within a period: its part of what is left of that, as far as there is room. */
void shunt_grants_newcomer(struct shunt_service *service, struct shunt_throttle *throttle,
			   uint64_t now);
/* The period is over: its tally. Tokens that all members have used. */
uint64_t shunt_grants_settle(struct shunt_service *service);

#endif
