/* SPDX-License-Identifier: MIT */
/*
 * The merge queue of a lane: streams with work for it, and those whose work waits for a completion. A
 * stream is in one of the two at most; its work is in seat.work. Under lane.queue_lock.
 *
 * Batching. A lane that another thread holds, or that may not post, does not make a sender wait. The bytes are copied
 * into the stream's stage (64 KiB), the stream is queued, the sender leaves. The holder serves the queue until it is
 * empty. Work requests are built then and not before, so waiting bytes are merged. Between the fragments of a large
 * send the queue is served too. While others wait in it, a stream posts a fragment and goes to its end (XR-22).
 *
 * `batch` says what becomes of contiguous bytes of a stream, and of several work requests:
 *
 *	single  each send is its own; each has a doorbell
 *	merge   one work request, up to `frag`; each has a doorbell
 *	chain   each send is its own; one doorbell for up to `chain`
 *	hybrid  one work request; one doorbell
 *
 * A lone send on an idle lane is posted at once, whatever the mode. Bytes that could be posted are kept back for two
 * reasons:
 *
 * - Bytes are on their way already (CP-01). The device has work requests that it has not carried out, and the
 *   stream's last one is among them and signaled. Then less than a fragment of new bytes waits for its completion.
 *   The soft device executes at once, so it happens there only with a cost model or a fault. The end of a stream, a
 *   switch, or any control message ends the wait.
 * - The program says so: MSG_MORE, TCP_CORK. The bytes wait until a send without it, a full buffer or ring, the end,
 *   the cork's removal or TCP_NODELAY. They wait at most 200 ms (250 with the service thread's rhythm), as tcp(7)
 *   says.
 */
#ifndef SHUNT_CORE_LANE_LANE_QUEUE_H
#define SHUNT_CORE_LANE_LANE_QUEUE_H

#include "core/lane/lane.h"

/* Queues work for the stream. Any lock left of queue_lock may be held. */
void shunt_lane_enqueue(struct shunt_lane *lane, struct shunt_seat *seat, uint32_t work);
/* The same until WRs have completed. */
void shunt_lane_hold(struct shunt_lane *lane, struct shunt_seat *seat, uint32_t work);
/* Those that were held are looked at again. */
void shunt_lane_requeue(struct shunt_lane *lane);
/* The first in it, and its work. NULL: it is empty. */
struct shunt_seat *shunt_lane_dequeue(struct shunt_lane *lane, uint32_t *work);
/* The seat is being given up: it is in neither list any more, and nobody serves it. */
void shunt_lane_dismiss(struct shunt_lane *lane, struct shunt_seat *seat)
	SHUNT_REQUIRES(lane->lock);
/* Nothing that is queued will be posted any more. */
void shunt_lane_abandon(struct shunt_lane *lane);

#endif
