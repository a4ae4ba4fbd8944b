/*
 * Peers that come to a name of ours while there are no descriptors or memory for them wait. Their arrival
 * would be reported again at once, so the service thread hears nobody who comes for SHUNT_DEAF_NS.
 */
#ifndef SHUNT_CORE_DEAF_H
#define SHUNT_CORE_DEAF_H

#define SHUNT_DEAF_NS 100000000ull

struct shunt_engine;
struct shunt_service;

/* The next who has come to a listening descriptor: one of ours, or -errno. Service thread. */
int shunt_deaf_accept(struct shunt_engine *engine, int fd, int flags);
/* Milliseconds until they are heard again, -1: they are. Service thread. */
int shunt_deaf_tick(struct shunt_service *service);

#endif
