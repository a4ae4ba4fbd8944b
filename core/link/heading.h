/* SPDX-License-Identifier: MIT */
/*
 * Where a direction is heading, as its sender has it: the track that the next byte takes, and the switches that the
 * reader is still to hear of or to pass.
 *
 *	         UPGRADES                HANDS_BACK
 *	TCP ────────────────▶ LINK ─────────────────▶ TCP     each is a switch, which the reader passes later
 *	                        │ FAILS                │
 *	                        ▼                      ▼
 *	            HALTED: the reader's place is not known ── SETTLES ──▶ TCP
 *
 * All of it is one word, and shunt_heading_turn() is its only writer; a seat begins with 0. tx.lock, except IS_PASSED
 * (group.lock) and IS_POSTED (lane.lock). tests/unit/heading_test.c has the table of states and events.
 */
#ifndef SHUNT_CORE_LINK_HEADING_H
#define SHUNT_CORE_LINK_HEADING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum shunt_heading_fact {
	SHUNT_HEADING_LINK = 1 << 0,	/* the link takes the next byte, not TCP */
	SHUNT_HEADING_UNPASSED = 1 << 1,	/* how many announced switches the reader has not passed: 0, 1 or 2 */
	SHUNT_HEADING_UNPASSED_MASK = 3 << 1,
	SHUNT_HEADING_UNPOSTED = 1 << 3,	/* the last HANDBACK is still to be given to the queue pair: TCP waits */
	SHUNT_HEADING_AWAITED = 1 << 4,	/* and a sender wants to be told */
	SHUNT_HEADING_HALTED = 1 << 5,	/* the queue pair is dead: what the peer has is not known yet (failover.c) */
	SHUNT_HEADING_KERNELS = 1 << 6,	/* handed back for good: `offset` does not count what TCP has carried since */
};

enum shunt_heading_event {
	SHUNT_HEADING_UPGRADES,	/* to the link, behind what TCP has */
	SHUNT_HEADING_HANDS_BACK,	/* to TCP, behind what the lane is still to post */
	SHUNT_HEADING_IS_POSTED,	/* the lane has posted HANDBACK, or the peer knows of it */
	SHUNT_HEADING_IS_AWAITED,	/* a sender waits for that, if it is still to come */
	SHUNT_HEADING_ANNOUNCES,	/* HANDBACK is being posted; the direction leaves when it has been, */
	SHUNT_HEADING_WITHDRAWS,	/* or stays, because it could not be */
	SHUNT_HEADING_LEAVES,	/* to TCP at once: HANDBACK has been posted, or the peer asks for nothing more of the link */
	SHUNT_HEADING_IS_PASSED,	/* the reader has passed a switch */
	SHUNT_HEADING_FAILS,	/* the queue pair is dead */
	SHUNT_HEADING_EXPIRES,	/* nobody waits for the peer's answer any more */
	SHUNT_HEADING_SETTLES,	/* TCP takes the rest, and the reader knows from where */
	SHUNT_HEADING_RETIRES,	/* the kernel alone serves it */
	SHUNT_HEADING_EVENTS
};

struct shunt_heading {
	_Atomic uint32_t word;
};

extern const struct shunt_machine shunt_heading_machine;
/* As shunt_machine_after, of core/base/machine.h. */
uint32_t shunt_heading_after(uint32_t word, uint32_t event);
/*
 * The event takes effect. Returns the word before it. One that cannot come changes nothing; builds that check locks
 * (core/base/lock_check.h) abort.
 */
uint32_t shunt_heading_turn(struct shunt_heading *heading, enum shunt_heading_event event);
/* The same for an event that depends on what the peer says. False: it cannot come, and nothing has changed. */
bool shunt_heading_try(struct shunt_heading *heading, enum shunt_heading_event event);

static inline bool shunt_heading_is(const struct shunt_heading *heading, uint32_t facts)
{
	return atomic_load(&heading->word) & facts;
}

/* The link takes the next byte. */
static inline bool shunt_heading_on_link(const struct shunt_heading *heading)
{
	return shunt_heading_is(heading, SHUNT_HEADING_LINK);
}

/* Announced switches that the reader has not passed: 0, 1 or 2. */
static inline unsigned int shunt_heading_unpassed(const struct shunt_heading *heading)
{
	return (atomic_load(&heading->word) & SHUNT_HEADING_UNPASSED_MASK) / SHUNT_HEADING_UNPASSED;
}

static inline bool shunt_heading_halted(const struct shunt_heading *heading)
{
	return shunt_heading_is(heading, SHUNT_HEADING_HALTED);
}

#endif
