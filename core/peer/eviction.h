/* SPDX-License-Identifier: MIT */
/*
 * A link that no connection uses for link_idle_s ends, with its queue pairs and its registered memory (XR-46). The end
 * that connected to the peer decides, because it alone claims connections on the link. The next connection to that process
 * makes a link anew. Service thread.
 */
#ifndef SHUNT_CORE_PEER_EVICTION_H
#define SHUNT_CORE_PEER_EVICTION_H

struct shunt_service;
struct shunt_task;

/* A link is up: the time may come to look at it. */
void shunt_eviction_begin(struct shunt_service *service);
void shunt_eviction_run(struct shunt_task *task);

#endif
