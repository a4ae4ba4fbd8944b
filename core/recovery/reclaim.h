/* SPDX-License-Identifier: MIT */
/*
 * Memory that is not needed goes back; more of it in engine.h.
 *
 * - The service thread looks once a second while a ring has grown or a block is empty, and when idle.c asks it to.
 * - A stream is idle when nothing of it has moved for 5 seconds. Then its rings are exchanged for some of ring_min
 *   without pages, by the service threads of both ends. The sender's hears of the offer once a thread of its process
 *   polls, or it looks itself. Looks find out what is idle, so it costs a send or a receive nothing. A ring that has not
 *   grown is exchanged only where bytes have come in it, and its pages can go back. The first request and its answer
 *   afterwards take pages again, some 10 us. The ring of a direction that has ended stays until the stream is closed.
 * - A block that was empty at the look before, too, is deregistered, and its pages go back to the system.
 * - A ring goes back to its block in two cases. Its reader has passed the last byte in it (RING_FROM), or both ends
 *   have released the stream. By then every write to it has been carried out. So neither the ring nor its block can
 *   be written to again, and the ring may be handed out at once.
 */
#ifndef SHUNT_CORE_RECOVERY_RECLAIM_H
#define SHUNT_CORE_RECOVERY_RECLAIM_H

#include "core/loop/loop.h"

/* Looks for rings that are quiet and blocks that are empty. */
void shunt_reclaim_run(struct shunt_task *task);

#endif
