/*
 * The links of the process: a peer comes to a rendezvous, a link is added, and one that is over is
 * destroyed. Service thread.
 */
#ifndef SHUNT_CORE_LINKS_H
#define SHUNT_CORE_LINKS_H

#include <stdint.h>

struct shunt_link;
struct shunt_service;
struct shunt_source;

/* A peer's process has come to a rendezvous, whose `source` this is: see loop.h. */
void shunt_links_welcome(struct shunt_source *source, uint32_t events);
/* One more link; it may be dead at once. */
void shunt_links_add(struct shunt_service *service, struct shunt_link *link);
/* Senders whose HANDBACK was on its way may go on over TCP; seats that were refused are let go. */
void shunt_links_settle(struct shunt_service *service);
/* Links that are over and have no stream are destroyed. seats_lock held. */
void shunt_links_bury(struct shunt_service *service);

#endif
