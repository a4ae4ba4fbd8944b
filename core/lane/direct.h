/* SPDX-License-Identifier: MIT */
/* The short way of a send: work requests that are posted at once, from the program's own buffer (RB-02). lane.lock held. */
#ifndef SHUNT_CORE_LANE_DIRECT_H
#define SHUNT_CORE_LANE_DIRECT_H

#include "core/base/iov.h"
#include "core/lane/lane.h"

/*
 * Posts up to `bytes` of `from` straight from the program's buffers, as WRs of their own. No chain is under
 * construction, and nothing of the stream is staged. Returns how many bytes the QP took.
 */
size_t shunt_direct_send(struct shunt_lane *lane, struct shunt_seat *seat, struct shunt_iov *from,
			 size_t bytes) SHUNT_REQUIRES(lane->lock);

#endif
