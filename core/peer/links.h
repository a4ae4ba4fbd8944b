/* SPDX-License-Identifier: MIT */
/*
 * The links of the process: a peer comes to a rendezvous, a link is added, and one that is over is
 * destroyed. Service thread.
 */
#ifndef SHUNT_CORE_PEER_LINKS_H
#define SHUNT_CORE_PEER_LINKS_H

#include <stdint.h>

struct shunt_link;
struct shunt_service;
struct shunt_source;
struct shunt_task;

/* A peer's process has come to a rendezvous, whose `source` this is: see loop.h. */
void shunt_links_welcome(struct shunt_source *source, uint32_t events);
/* One more link; it may be dead at once. */
void shunt_links_add(struct shunt_service *service, struct shunt_link *link);
/* The same, where the loop knows its channel. */
void shunt_links_list(struct shunt_service *service, struct shunt_link *link);
/* Links that are over and have no stream are destroyed. seats_lock held. */
void shunt_links_bury(struct shunt_service *service);
/* What was posted on lanes has settled; links that are over are buried, and streams reaped. */
void shunt_links_run(struct shunt_task *task);

#endif
