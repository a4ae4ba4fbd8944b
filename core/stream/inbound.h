/* SPDX-License-Identifier: MIT */
/*
 * Applies completions. Runs under the group lock, in whichever thread polls; takes no other lock but the innermost.
 * Every value here comes from the peer.
 */
#ifndef SHUNT_CORE_STREAM_INBOUND_H
#define SHUNT_CORE_STREAM_INBOUND_H

#include <stdint.h>

struct ibv_cq;
struct ibv_wc;
struct shunt_group;
struct shunt_stream;

/* Applies one completion. group.lock held. */
void shunt_inbound_apply(struct shunt_group *group, const struct ibv_cq *cq,
			 const struct ibv_wc *wc);
/* Its bytes may have waited for a poll so long: that is noted. group.lock held. */
void shunt_inbound_late(struct shunt_group *group, const struct ibv_wc *wc, uint64_t ns,
			int count);
#endif
