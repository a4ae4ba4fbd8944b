/* SPDX-License-Identifier: MIT */
/*
 * The node holds a client that sends beyond its tokens (meter.h). CREDIT and larger rings of the link's streams are
 * withheld until the arrived bytes have fallen due. The node's program reads as it likes. All else is said: FIN,
 * RESET, RELEASE, SWITCHED, and what a hand-back needs. So a client without tokens of its own gets its limit in the
 * long run, and a ring of each of its streams beyond that. A client that sends without credit, too, is distrusted.
 *
 * A client is named when it has been held for a second within a minute. One that exits may be held without any fault:
 * what it has accepted goes out without tokens.
 *
 * The meter. Lanes of a link with a limit are metered: each data message that comes is counted, under group.lock. The
 * meter is the client's bucket as the node sees it. It saves 35 ms, counted from the last poll that has emptied the
 * CQs (engine.group.emptied_at). So a late poll, which brings much at once, accuses nobody. A lower rate counts for what
 * was posted 250 ms after it was told. Beyond the limit, and a send buffer of each stream, the link is held.
 * rx.withheld keeps CREDIT, RING and word 15 back (core/lane/lane_serve.c). The service thread does that work when
 * the excess has fallen due.
 */
#ifndef SHUNT_CORE_QOS_HOLDING_H
#define SHUNT_CORE_QOS_HOLDING_H

#include <stdbool.h>
#include <stdint.h>
#include "core/lane/window.h"
#include "core/qos/meter.h"

struct shunt_link;
struct shunt_task;
struct shunt_throttle;

enum shunt_holds {
	SHUNT_HOLDS_OFF, /* nothing is counted */
	SHUNT_HOLDS_COUNTS, /* what arrives is within the client's right */
	SHUNT_HOLDS_LINK, /* the client is beyond its right: its streams get no credit */
};

/* Of a link, in its throttle. group.lock. */
struct shunt_holding {
	struct shunt_arrivals arrivals;
	struct shunt_meter meter;
	_Atomic uint8_t
		state; /* enum shunt_holds; the service thread looks without the lock, too */
	bool named; /* in the present minute */
	uint64_t times; /* that COUNTS has become LINK */
	uint64_t held_at; /* ns: when it last did */
	uint64_t window_at; /* ns: from then on for a minute, */
	uint64_t held_ns; /* how long it was held, without the present time */
	uint64_t spare; /* tokens beyond the client's right that do not count yet */
	uint64_t room; /* bytes that may come until LINK ends: the rings have no more */
};

/* The client is being told this rate; 0: none, and nothing is counted. Service thread. */
void shunt_holding_tell(struct shunt_throttle *throttle, uint64_t rate, uint64_t now);
/* A new period: the client has so many tokens, and its limit, if any, beside them. Service thread, as for the next. */
void shunt_holding_allow(struct shunt_throttle *throttle, uint64_t tokens, uint64_t now);
/* It has drawn so many more in this period; or given back, modulo 2^64. */
void shunt_holding_add(struct shunt_throttle *throttle, uint64_t tokens);
/* There are no periods any more: only the limit counts. */
void shunt_holding_end_periods(struct shunt_throttle *throttle);
/* The link goes. */
void shunt_holding_end(struct shunt_throttle *throttle);
/* Lets go of a client that is within its right again, and names it. `task` is told when to look again. */
void shunt_holding_serve(struct shunt_throttle *throttle, struct shunt_task *task, uint64_t now);
/* The client is held: it gets no further seats. Service thread. */
bool shunt_holding_is_held(const struct shunt_link *link);

#endif
