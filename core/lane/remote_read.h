/* SPDX-License-Identifier: MIT */
/*
 * Bytes that were written to the peer's ring, from there.
 *
 * A retirement needs bytes that lie unread in the peer's ring, which a completed work request no longer has.
 * core/lane/remote_read.c looks at them on the soft device and READs them from an RDMA device.
 */
#ifndef SHUNT_CORE_LANE_REMOTE_READ_H
#define SHUNT_CORE_LANE_REMOTE_READ_H

#include "core/link/seat.h"

/* Copies the stream's bytes [from, to), which are unread in the peer's ring. False: they cannot be had. tx.lock and
 * lane.lock held. */
bool shunt_remote_read_ring(struct shunt_seat *seat, uint8_t *out, uint64_t from, uint64_t to);

#endif
