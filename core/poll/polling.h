/* SPDX-License-Identifier: MIT */
/*
 * How a wait looks for completions before it sleeps: the modes of SHUNT_POLL (RB-16, RB-19), and the spin that
 * two of them know. The waits ask; they do not know the modes by name.
 */
#ifndef SHUNT_CORE_POLL_POLLING_H
#define SHUNT_CORE_POLL_POLLING_H

#include <stdbool.h>
#include <stdint.h>

struct shunt_engine;

struct shunt_polling {
	const char *name;
	bool drains;	/* polls until a poll finds nothing before it arms; otherwise arms at once */
	bool bounded;	/* one wake-up takes SHUNT_POLL_BATCH completions and no more */
	bool spins;	/* goes on polling after that, as long as it pays */
	bool stays;	/* goes on polling as long as there is something to wait for */
};

const struct shunt_polling *shunt_polling(const struct shunt_engine *engine);

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

/* False: this wait is not to spin. */
bool shunt_spin_begin(struct shunt_engine *engine, struct shunt_spin *spin, uint64_t deadline);
/* A look at the clock. False: the spin is over. */
bool shunt_spin_look(struct shunt_engine *engine, struct shunt_spin *spin);
/*
 * The spin is over; whether it found what was waited for. True: nothing was found, but the wait is not to sleep
 * either: it is a cancellation point here, looks around, and goes on.
 */
bool shunt_spin_end(struct shunt_engine *engine, struct shunt_spin *spin, bool hit);

/* A poll has taken `found` completions. False: that was one fruitless poll too many. */
static inline bool shunt_spin_counts(struct shunt_spin *spin, int found)
{
	spin->empty = found > 0 ? 0 : spin->empty + 1;
	return spin->empty < spin->retries;
}

/* The same, with a look at the clock now and then. */
static inline bool shunt_spin_on(struct shunt_engine *engine, struct shunt_spin *spin, int found)
{
	return shunt_spin_counts(spin, found) && (++spin->turns & 15 || shunt_spin_look(engine, spin));
}

#endif
