/* SPDX-License-Identifier: MIT */
/*
 * Peers that come to a name of ours while there are no descriptors or memory for them wait. Their arrival would be
 * reported again at once, so the service thread accepts no client for SHUNT_DEAF_NS.
 */
#ifndef SHUNT_CORE_PEER_DEAF_H
#define SHUNT_CORE_PEER_DEAF_H

#define SHUNT_DEAF_NS 100000000ull

#include <stdbool.h>

struct shunt_engine;
struct shunt_service;
struct shunt_task;

enum shunt_deaf {	/* bits */
	SHUNT_DEAF_SHORT = 1,	/* of descriptors or memory */
	SHUNT_DEAF_CROWDED = 2,	/* the porter has no room for more strangers (porter.h) */
};

/* The next client of a listening descriptor: a descriptor of ours, or -errno. Service thread. */
int shunt_deaf_accept(struct shunt_engine *engine, int fd, int flags);
/* A peer has come to a door. True: there is no room, so all doors are shut. Service thread, as is the next. */
bool shunt_deaf_shuts(struct shunt_service *service);
/* There may be room again, or descriptors. */
void shunt_deaf_run(struct shunt_task *task);

#endif
