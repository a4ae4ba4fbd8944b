/* SPDX-License-Identifier: MIT */
/*
 * How a wait looks for completions before it sleeps: the modes of `poll` (RB-16, RB-19), and the spin that
 * two of them know. The waits ask; they do not know the modes by name.
 *
 * A call's own first look takes all that has come, in every mode. Before the wait arms, and with one wake-up, it
 * takes:
 *
 *	event     nothing; then what is there, so each burst has an event
 *	batch     nothing; then poll_batch at most. The rest raises no event, so the wait looks once more
 *	hybrid    all, until a poll finds nothing; and so again
 *	adaptive  as hybrid, then it spins: Algorithm 3 of RDMAbox with a hook that success resets
 *	busy      it does not arm while it has the core for itself. Each 50 µs it yields the core, and looks for closes,
 *		  switches and cancellation
 *
 * - Spin (adaptive). It ends with the first of three: spin_us, twice what a sleep costs here, or
 *   poll_retry polls in a row that found nothing. Any completion starts the count again; 120 is the paper's
 *   value, 0 makes it hybrid. Time is the better measure, because a poll may cost 30 ns or microseconds. So by
 *   default the count never ends a spin first.
 * - Fruitless spins. After n fruitless tries in a row only every 2^n-th wait spins, at worst every 64th. A try that
 *   lasted as long as its wait was to is not one of them, up to sixteen in a row. So a program that pauses for 10 µs
 *   between a request and the next sleeps in neither. Where a spin sees 100 µs pass between two looks at the clock,
 *   another thread had the core. That counts as three tries, and repeated it leads to every 1024th, until one pays.
 *   With one usable core a wait never spins.
 * - The cost of a sleep is the shortest round trip of two threads that sleep and wake each other on two cores. These
 *   are the service thread and its starter. The measurement takes less than a millisecond. Where the two never met on
 *   two cores, the cost is unknown and bounds nothing.
 * - Where busy sleeps all the same (as hybrid). It does so where a yield has given the core to another thread. The
 *   runtime of Go has more threads than cores, and one that spins would be in the way of one that has work. Later waits do not
 *   spin either, as after a fruitless spin, until one has found something by itself. It sleeps on one usable core, and
 *   with a signal mask, which only the
 *   kernel can change while it looks. It does so where no completion could end the wait. Then the awaited direction
 *   is on TCP, a retirement is to be answered, or no stream of the set is on a link. Kernel descriptors beside
 *   streams are looked at now and then.
 */
#ifndef SHUNT_CORE_POLL_POLLING_H
#define SHUNT_CORE_POLL_POLLING_H

#include <stdbool.h>
#include <stdint.h>

struct shunt_group;

#define SHUNT_YIELD_SHARED 5000	/* ns: a yield that takes longer has given the core to another thread */

struct shunt_polling {
	const char *name;
	bool drains;	/* polls until a poll finds nothing before it arms; otherwise arms at once */
	bool bounded;	/* one wake-up takes poll_batch completions and no more */
	bool spins;	/* goes on polling after that, as long as it pays */
	bool stays;	/* goes on polling as long as there is something to wait for */
};

const struct shunt_polling *shunt_polling(const struct shunt_group *group);

struct shunt_spin {	/* the polling of one wait, after its first poll has found nothing */
	const struct shunt_polling *mode;
	uint64_t deadline;	/* of the wait */
	uint64_t budget;	/* ns */
	uint64_t until, looked;	/* by the clock; 0: not looked at yet */
	uint64_t gap;		/* ns between two looks that mean: somebody else had the core */
	uint64_t retries;	/* empty polls in a row that end it */
	uint64_t empty;		/* polls in a row that found nothing */
	uint32_t turns;
	bool displaced;
};

/* ns that a spin may last; 0: none. */
uint64_t shunt_polling_most(struct shunt_group *group);
/* False: this wait is not to spin. */
bool shunt_spin_begin(struct shunt_group *group, struct shunt_spin *spin, uint64_t deadline);
/* A look at the clock. False: the spin is over. */
bool shunt_spin_look(struct shunt_group *group, struct shunt_spin *spin);
/*
 * The spin is over; whether it found what was waited for. True: nothing was found, but the wait is not to sleep
 * either: it is a cancellation point here, looks around, and goes on.
 */
bool shunt_spin_end(struct shunt_group *group, struct shunt_spin *spin, bool hit);

/* A poll has taken `found` completions. False: that was one fruitless poll too many. */
static inline bool shunt_spin_counts(struct shunt_spin *spin, int found)
{
	spin->empty = found > 0 ? 0 : spin->empty + 1;
	return spin->empty < spin->retries;
}

/* The same, with a look at the clock now and then. */
static inline bool shunt_spin_on(struct shunt_group *group, struct shunt_spin *spin, int found)
{
	return shunt_spin_counts(spin, found) &&
	       (++spin->turns & 15 || shunt_spin_look(group, spin));
}

#endif
