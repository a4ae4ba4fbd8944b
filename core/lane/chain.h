/* SPDX-License-Identifier: MIT */
/*
 * A chain: the work requests of a lane under construction, posted with one doorbell (RB-03, RB-08).
 * Built when they can be posted and not before, so that what waits is merged (RB-14). lane.lock held.
 *
 * Immediates. Every data message has one. Its length is the completion's. Without an immediate, another message would
 * have to say how far it went, and nearly all sends are one message. A credit always has one, one per half ring: so a
 * completion frees a sender, and no thread scans.
 */
#ifndef SHUNT_CORE_LANE_CHAIN_H
#define SHUNT_CORE_LANE_CHAIN_H

#include "core/lane/lane.h"

int shunt_chain_init(struct shunt_lane *lane);
/* lane.chains or `chain` has changed; no chain is under construction. */
void shunt_chain_change(struct shunt_lane *lane) SHUNT_REQUIRES(lane->lock);
void shunt_chain_fini(struct shunt_lane *lane);

/* Adds a control message that serves `work`; stream NULL: of the lane itself. False: no credit. */
bool shunt_chain_control(struct shunt_chain *chain, struct shunt_seat *seat, enum shunt_imm type,
			 uint32_t work, uint64_t value);
enum shunt_chain_took {
	SHUNT_CHAIN_STALLED,	/* no credit, or the window is closed */
	SHUNT_CHAIN_RING_FULL,	/* the rest has no room at the peer */
	SHUNT_CHAIN_OTHERS,	/* a fragment is in it, and other streams are waiting */
	SHUNT_CHAIN_ALL,
};

/* Adds WRs for what the stream has staged, but no more than a fragment at once while others wait (XR-22). */
enum shunt_chain_took shunt_chain_data(struct shunt_chain *chain, struct shunt_seat *seat);
/* Whether work of the stream is in the chain that is under construction. */
bool shunt_chain_has(const struct shunt_chain *chain, const struct shunt_seat *seat);
/* One doorbell for all that was collected. False: the QP did not take it all; the rest is work again. */
bool shunt_chain_flush(struct shunt_chain *chain);
/* Forgets what was left of an interrupted one. */
void shunt_chain_begin(struct shunt_chain *chain);

#endif
