/* SPDX-License-Identifier: MIT */
/*
 * Seats: the numbers of a link by which the peer names our streams. A seat has a control line in our
 * arena and a ring, both of which the peer writes.
 *
 * Seats are given by the service thread. They are taken away with seats_lock held, so a holder of that
 * lock finds every seat again that it has seen. The table is written under group.lock.
 */
#ifndef SHUNT_CORE_LANE_SEATS_H
#define SHUNT_CORE_LANE_SEATS_H

#include "core/link/link.h"

/* A number, a control line and the first ring for the seat, on this lane. rx.lock of its stream held. 0 or -errno. */
int shunt_seats_take(struct shunt_link *link, struct shunt_seat *seat, struct shunt_lane *lane,
		     struct shunt_place *place);
/* The device fetches nothing from the stream's stage any more. A dead link goes with its last seat. */
void shunt_seats_leave(struct shunt_link *link, struct shunt_seat *seat);

#endif
