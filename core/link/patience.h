/* SPDX-License-Identifier: MIT */
/*
 * How long a link waits for a peer's service thread to answer LEAVE: all calls, for all streams of the link, together.
 * The time for which an answer is due is spent, and comes back sixteen times slower. A peer that answers, as peers do, in
 * microseconds, never meets the limit. A peer that does not answer, or always just in time, costs it once.
 *
 * A stranger that has spent it counts as silent: its link ends (core/peer/silent.h). Any other peer keeps the link, and
 * the call gives up. It could do us worse, and a debugger may have stopped it.
 */
#ifndef SHUNT_CORE_LINK_PATIENCE_H
#define SHUNT_CORE_LINK_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

struct shunt_link;

#define SHUNT_PATIENCE 5000000000ull	/* ns */
#define SHUNT_PATIENCE_STRANGE 200000000ull	/* ns, with a stranger: two periods of a CPU quota (cpu.max) */

/* Written under group.lock. */
struct shunt_patience {
	_Atomic uint32_t asked;	/* RETIREs without an answer */
	uint64_t since;		/* ns: when the first was asked, or the last was answered */
	uint64_t spent;		/* ns, as of `since` */
};

/* The peer is another user's process of this host, or one of another network namespace. */
bool shunt_patience_strange(const struct shunt_link *link);
/* An answer is due. Any thread; group.lock not held. */
void shunt_patience_begin(struct shunt_link *link);
/* It has come, or nobody wants it any more. Any thread; group.lock not held. */
void shunt_patience_end(struct shunt_link *link);
/* ns: when a stranger will count as silent; SHUNT_NEVER: nothing is asked, or the peer is no stranger. Any thread. */
uint64_t shunt_patience_due(struct shunt_link *link);
/* ns until which a call that begins to wait now may do so. group.lock held. */
uint64_t shunt_patience_until(struct shunt_link *link);

#endif
