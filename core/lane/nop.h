/* SPDX-License-Identifier: MIT */
/*
 * NOP, a net under the credits (XR-20). The reserve of receives makes a deadlock impossible as long as no LANE message
 * is lost, and a reliable connection loses none (docs/dev/PROTOCOL.md). So a NOP shows an error of this engine, or a peer
 * that has stood still for seconds, and the counter `nops` stays 0 else.
 *
 * A lane is starved if its streams wait for a receive of the peer's. The looks of core/recovery/idle.c find those on
 * links where nothing has moved for two seconds. The lane then sends its last LANE once more, in a slot of the reserve.
 * The peer sees that this LANE is not new, and sends its own again. Both ends do so once, so no answer makes another.
 */
#ifndef SHUNT_CORE_LANE_NOP_H
#define SHUNT_CORE_LANE_NOP_H

#include "core/lane/lane.h"
#include "core/poll/group.h"

/* Nothing has moved for long: asks the peer if the lane is starved, once for each credit. True: it did. Service thread. */
bool shunt_nop_ask(struct shunt_lane *lane);
/* The peer has said nothing new. */
void shunt_nop_answer(struct shunt_lane *lane) SHUNT_REQUIRES(lane->group->lock);

#endif
