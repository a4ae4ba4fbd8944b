/* SPDX-License-Identifier: MIT */
/*
 * How long calls of the program wait for answers of a peer's service thread, over a link: all calls, for all its streams,
 * together. Time that a call has waited is spent, and comes back sixteen times slower. Peers answer in microseconds, and
 * never meet the limit. A peer that does not answer, or each time just in time, costs the limit once.
 *
 * A stranger that has spent it is deaf: its link ends as by its death. Any other peer could do us worse, and may just be
 * stopped by a debugger.
 */
#ifndef SHUNT_CORE_LINK_PATIENCE_H
#define SHUNT_CORE_LINK_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

struct shunt_link;

#define SHUNT_PATIENCE 5000000000ull		/* ns */
#define SHUNT_PATIENCE_STRANGE 200000000ull	/* of a stranger: two periods of a CPU quota (cpu.max) */
#define SHUNT_PATIENCE_MOMENT 100		/* a call that must not wait: one part of these */

struct shunt_patience {
	_Atomic uint64_t spent;	/* ns, as of `at` */
	_Atomic uint64_t at;
};

/* The peer is another user's process, or of another host or network namespace. */
bool shunt_patience_strange(const struct shunt_link *link);
/* ns that a call may wait from `now` on. `moment`: it is one that must not wait. Any thread. */
uint64_t shunt_patience_left(struct shunt_link *link, uint64_t now, bool moment);
/* It has waited since `begun`. */
void shunt_patience_spend(struct shunt_link *link, uint64_t begun, uint64_t now);
/* Nothing is left. True: the link is a stranger's, and ends. */
bool shunt_patience_is_over(struct shunt_link *link);

#endif
