/*
 * A stream gathers bytes for more that its program has announced (MSG_MORE, TCP_CORK). tcp(7): a cork holds
 * bytes for at most 200 ms; then the service thread sends them.
 */
#ifndef SHUNT_CORE_GATHER_H
#define SHUNT_CORE_GATHER_H

struct shunt_engine;
struct shunt_service;

/* A stream has begun to gather. Any thread, any lock. */
void shunt_gather_begin(struct shunt_engine *engine);
/* Milliseconds until the next look; -1: nobody gathers. Service thread. */
int shunt_gather_tick(struct shunt_service *service);

#endif
