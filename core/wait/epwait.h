/* SPDX-License-Identifier: MIT */
/*
 * epoll_wait() on a set that holds streams on a link.
 */
#ifndef SHUNT_CORE_WAIT_EPWAIT_H
#define SHUNT_CORE_WAIT_EPWAIT_H

#include <stdbool.h>

struct shunt_engine;
struct shunt_epset;

/* Readable for a poll on the set itself, after hearing what the companion has to say; takes the group lock. */
bool shunt_epset_absorb(struct shunt_engine *engine, struct shunt_epset *set);

#endif
