/* SPDX-License-Identifier: MIT */
/*
 * Peers that come to a name of ours while there are no descriptors or memory for them wait. Their arrival would be
 * reported again at once, so the service thread accepts no client for SHUNT_DEAF_NS.
 */
#ifndef SHUNT_CORE_LOOP_DEAF_H
#define SHUNT_CORE_LOOP_DEAF_H

#define SHUNT_DEAF_NS 100000000ull

#include <stdbool.h>

struct shunt_engine;
struct shunt_service;

enum shunt_deaf {	/* bits */
	SHUNT_DEAF_SHORT = 1,	/* of descriptors or memory */
	SHUNT_DEAF_CROWDED = 2,	/* the porter has no room for more strangers (porter.h) */
};

/* No client of our names is accepted while there is a reason. Service thread. */
void shunt_deaf_set(struct shunt_service *service, enum shunt_deaf why, bool deaf);

/* The next client of a listening descriptor: a descriptor of ours, or -errno. Service thread. */
int shunt_deaf_accept(struct shunt_engine *engine, int fd, int flags);
/* They are heard again if it is time. Service thread. */
void shunt_deaf_look(struct shunt_service *service);

#endif
