/* SPDX-License-Identifier: MIT */
/*
 * Seats: the numbers of a link by which the peer names our streams. A seat has a control line in our
 * arena and a ring, both of which the peer writes.
 *
 * Seats are given by the service thread. They are taken away with seats_lock held, so a holder of that
 * lock finds every seat again that it has seen. The table is written under group.lock.
 */
#ifndef SHUNT_CORE_LINK_SEATS_H
#define SHUNT_CORE_LINK_SEATS_H

#include "core/link/link.h"

/* Each stream that has a seat. seats_lock or group.lock held. */
#define shunt_seats_each(link, stream) shunt_seats_each_by(shunt_link_stream, link, stream)
/* The same, each held: the body lets go of it (shunt_streams_unhold), and may not leave the loop before. */
#define shunt_seats_each_held(link, stream) shunt_seats_each_by(shunt_seats_hold, link, stream)
#define shunt_seats_each_by(of, link, stream)                                                      \
	for (uint32_t seat_ = 1; seat_ < (link)->top; seat_++)                                     \
		if (((stream) = of(link, seat_)) != NULL)

/* A number, a control line and the first ring for the stream, on this lane. 0 or -errno. */
int shunt_seats_take(struct shunt_link *link, struct shunt_stream *stream, struct shunt_lane *lane,
		     struct shunt_place *place);
/* The device fetches nothing from the stream's stage any more. A dead link goes with its last seat. */
void shunt_seats_leave(struct shunt_link *link, struct shunt_stream *stream);
/* The stream of that number, held; NULL: none. No lock right of streams_lock held. */
struct shunt_stream *shunt_seats_hold(struct shunt_link *link, uint32_t id);

#endif
