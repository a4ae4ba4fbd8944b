/* SPDX-License-Identifier: MIT */
/*
 * The doors at which relatives knock (core/stream/handover.h). Relatives are the processes that share the page of
 * fork_slots.h. The name of a door is a hash over the owner's process id and the number of the owner's door. Only
 * relatives know its key. A stranger sees a name in /proc/net/unix once the door is open, and learns nothing about
 * another one.
 *
 * A process that closes its door and opens one anew takes the next number: a stranger may sit on the former name by
 * then. So the process that knocks asks at the doors of an owner from the last number down.
 */
#ifndef SHUNT_CORE_FORK_FORK_DOOR_H
#define SHUNT_CORE_FORK_FORK_DOOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "core/loop/endpoint.h"

struct shunt_forks;
struct shunt_sys;

#define SHUNT_FORK_DOORS 32	/* of a process, one by one; leave.c lets it need fewer */

/* A part of the page. */
struct shunt_fork_family {
	uint64_t key[2];	/* by chance, before there is a second process */
	_Atomic uint32_t doors;	/* the most that any relative has opened; any relative raises it */
};

/* False: the system has no randomness yet. */
bool shunt_fork_door_begin(const struct shunt_sys *sys, struct shunt_fork_family *family);
/* The name of a door; `number`: from 0 on. There is a page. */
void shunt_fork_door_name(struct shunt_forks *forks, pid_t owner, uint32_t number,
			  char name[SHUNT_ENDPOINT_NAME]);
/* How many names an owner's door may have: at most SHUNT_FORK_DOORS. */
uint32_t shunt_fork_door_count(struct shunt_forks *forks);
/* A listening private descriptor, or -errno. There is a page. */
int shunt_fork_door_open(struct shunt_forks *forks, struct shunt_porter *porter);

#endif
