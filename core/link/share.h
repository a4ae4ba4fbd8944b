/* SPDX-License-Identifier: MIT */
/*
 * Mappings of links. Of a peer's segment a process maps no more than its own has, whatever the peer says. A segment may
 * have 64 GiB, and a stranger may have many links. A process that has limited its address space (core/base/space.h)
 * has a small arena, and maps less. It says in HELLO how much that is (`maps`), and the peer carves its rings out of that
 * part of its arena. Service thread, apart from shunt_share_thread().
 *
 * - In a process whose address space is limited (RLIMIT_AS) the service thread and all links take a quarter of what
 *   the limit leaves (core/link/share.c). Starting the thread and making a link read from /proc/self/statm how much
 *   is left. Such a process keeps what it has when the limit is lowered later. A link gets half of what may be taken,
 *   at least 15 MiB. Of it 3.5 MiB are the arena, and the rest is for the peer's segment. Of that it maps the
 *   beginning, and says in HELLO how much. The peer divides that part of its arena into smaller blocks
 *   (shunt_arena_bound()). The verbs device has no such way, so no link of it is made under a limit.
 */
#ifndef SHUNT_CORE_LINK_SHARE_H
#define SHUNT_CORE_LINK_SHARE_H

#include <stdbool.h>
#include <stdint.h>
#include "shunt/wire.h"

struct shunt_links;
struct shunt_link;

/*
 * There is address space for a service thread and a link. False: it is said how much is missing, unless it has been
 * told before. service_lock held.
 */
bool shunt_share_thread(struct shunt_links *links, bool told);
/* The service thread must not have a heap of its own: the next thread is it. service_lock held. */
void shunt_share_spare_heap(const struct shunt_links *links);

/*
 * Decides what a link that is being made may map. Returns the size of its arena; 0: there is too little address space,
 * or the device has no way to do with less. Inside shunt_own_fds_begin().
 */
uint64_t shunt_share_plan(struct shunt_link *link);
/* Bytes of the peer's segment that the link maps at most. 0: its device maps nothing. Its domain is there. */
uint64_t shunt_share_maps(const struct shunt_link *link);
/* Bytes of our segment, which the link maps at present, guards apart. The peer's: shunt_lanes_mapped(). */
uint64_t shunt_share_space(const struct shunt_link *link);
/* The link's domain is there. */
void shunt_share_begin(struct shunt_link *link);
/* The peer maps as little as its HELLO says. NULL; or why there can be no link. Before its QPs are connected. */
const char *shunt_share_heed(struct shunt_link *link, const struct shunt_hello *hello);
/* So many bytes of the peer's segment are mapped. */
void shunt_share_settle(struct shunt_link *link, uint64_t mapped);
/* Nothing is mapped any more. */
void shunt_share_end(struct shunt_link *link);

#endif
