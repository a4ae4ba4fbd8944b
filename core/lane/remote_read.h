/* SPDX-License-Identifier: MIT */
/*
 * Bytes that were written to the peer's ring, and words of its control line, from there.
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

/*
 * A word that the peer has written in its control line of the stream, by RDMA READ, so that the peer need not run.
 * False: it cannot be had. tx.lock and lane.lock held.
 */
bool shunt_remote_read_word(struct shunt_seat *seat, uint32_t word, uint64_t *value);

#endif
