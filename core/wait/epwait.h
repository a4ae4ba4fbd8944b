/* SPDX-License-Identifier: MIT */
/*
 * epoll_wait() on a set that holds streams on a link.
 *
 * Level-triggered watches go back to the end of the ready list while they are ready.
 *
 * - Kicks. A stream that becomes ready kicks a set in which a thread sleeps, unless a thread of the set is just
 *   looking (group.looker). That one takes what there is, and kicks another for what is left. ADD and MOD kick only
 *   for what is true at once. Of several sets with EPOLLEXCLUSIVE one is kicked. tests/calls/wakes.sh counts.
 * - Kernel descriptors in the same set are looked at after 100,000 cycles of busy streams, or 4,000 of spinning. They
 *   are also looked at beside a report of several streams.
 */
#ifndef SHUNT_CORE_WAIT_EPWAIT_H
#define SHUNT_CORE_WAIT_EPWAIT_H

#include <stdbool.h>

struct shunt_engine;
struct shunt_epset;

struct shunt_plain_wait {	/* of a thread, in a set whose descriptors are all the kernel's */
	struct shunt_engine *engine;
	struct shunt_epset *set;	/* NULL: it is in none */
	int fd;
};

/* A handler of the program runs in this thread: its wait lets go of everything, and holds it again when that has returned. */
struct shunt_plain_wait shunt_epwait_interrupt(void);
void shunt_epwait_resume(const struct shunt_plain_wait *wait);
/* Readable for a poll on the set itself, after hearing what the companion has to say; takes the group lock. */
bool shunt_epset_absorb(struct shunt_engine *engine, struct shunt_epset *set);

#endif
