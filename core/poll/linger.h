/* SPDX-License-Identifier: MIT */
/*
 * A look without time that is the last before its thread sleeps. The runtime of Go makes one: netpoll(0), and if that
 * finds nothing, the thread gives up its P and waits in netpoll(-1). A message then wakes two threads, for the one that
 * watches over the others sleeps and wakes with them. So this look goes on for a moment, three times as long as the
 * spin of a wait (polling.h). After n fruitless ones in a row only every 2^n-th does, at worst every 16th. One that is
 * followed by a sleep no longer than itself is not fruitless.
 *
 * It yields the core every 2 µs. Two such programs have more threads to run than cores, and the thread that is to send
 * may wait for this one. A yield that has let another run ends it, after one more look.
 */
#ifndef SHUNT_CORE_POLL_LINGER_H
#define SHUNT_CORE_POLL_LINGER_H

#include <stdbool.h>
#include <stdint.h>

struct shunt_group;

struct shunt_linger {
	uint64_t until;	/* ns; 0: one look more */
	uint64_t yield;	/* ns: when next */
};

/* False: this look is not to go on: `poll` does not spin, or it has not paid lately. */
bool shunt_linger_begin(struct shunt_group *group, struct shunt_linger *linger);
/* Nothing was found. True: look again. *yielded: others may have run since. */
bool shunt_linger_on(struct shunt_group *group, struct shunt_linger *linger, bool *yielded);
/* The sleep that followed has ended with something. Early enough, and the look counts as one that has paid. */
void shunt_linger_slept(struct shunt_group *group);
/* Something was. */
void shunt_linger_found(struct shunt_group *group);

#endif
