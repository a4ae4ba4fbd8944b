/* SPDX-License-Identifier: MIT */
/*
 * A direction as its reader has it: where the next byte comes from, and what the link may still bring. It is the
 * counterpart of the sender's heading (core/link/heading.h).
 *
 *	the link's messages     UPGRADE opens it ─── HANDBACK closes it ─── the queue pair's death ends it
 *	the program's reading   TCP ─── passes what opened it ──▶ ring ─── passes what closed it ──▶ TCP
 *
 * The reader is behind the messages by what it has not read: seat.in.boundary is where it passes next, seat.in.second the place
 * after that. All facts are one word, and shunt_intake_turn() is its only writer; a seat begins with 0. OPENS,
 * CLOSES and REPEATS come under group.lock, the other events under rx.lock. tests/unit/intake_test.c has the table of states
 * and events.
 */
#ifndef SHUNT_CORE_LINK_INTAKE_H
#define SHUNT_CORE_LINK_INTAKE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum shunt_intake_fact {
	SHUNT_INTAKE_LINK = 1 << 0,	/* the next byte for the program comes from the ring, not from TCP */
	SHUNT_INTAKE_OPEN = 1 << 1,	/* the link may bring more */
	SHUNT_INTAKE_FINAL = 1 << 2,	/* the link is dead: its bytes end at seat.in.tail, and TCP has the rest */
	SHUNT_INTAKE_COPIED = 1 << 3,	/* TCP has all that is not read: what the link still brings is a copy */
	SHUNT_INTAKE_REPEAT = 1 << 4,	/* the kernel's queue begins with bytes that the link has brought, too (repeat.h) */
};

enum shunt_intake_event {
	SHUNT_INTAKE_OPENS,	/* UPGRADE has come */
	SHUNT_INTAKE_CLOSES,	/* HANDBACK has come */
	SHUNT_INTAKE_PASSES,	/* the reader has come to seat.in.boundary */
	SHUNT_INTAKE_DIES,	/* the queue pair is dead */
	SHUNT_INTAKE_RETIRES,	/* the peer is asked for all that is not read over TCP */
	SHUNT_INTAKE_IS_OVER,	/* the program has been told that the connection is over */
	SHUNT_INTAKE_REPEATS,	/* REPEAT has come */
	SHUNT_INTAKE_CATCHES_UP,	/* the reader is on TCP, and the bytes that it had read are out of the kernel's queue */
	SHUNT_INTAKE_EVENTS
};

struct shunt_intake {
	_Atomic uint32_t word;
};

extern const struct shunt_machine shunt_intake_machine;
/* As shunt_machine_after, of core/base/machine.h. */
uint32_t shunt_intake_after(uint32_t word, uint32_t event);
/* The event takes effect. Builds that check locks abort where it cannot come. */
void shunt_intake_turn(struct shunt_intake *intake, enum shunt_intake_event event);
/* The same for an event that depends on what the peer says. False: it cannot come, and nothing has changed. */
bool shunt_intake_try(struct shunt_intake *intake, enum shunt_intake_event event);

static inline bool shunt_intake_is(const struct shunt_intake *intake, uint32_t facts)
{
	return atomic_load(&intake->word) & facts;
}

static inline bool shunt_intake_on_link(const struct shunt_intake *intake)
{
	return shunt_intake_is(intake, SHUNT_INTAKE_LINK);
}

static inline bool shunt_intake_open(const struct shunt_intake *intake)
{
	return shunt_intake_is(intake, SHUNT_INTAKE_OPEN);
}

static inline bool shunt_intake_final(const struct shunt_intake *intake)
{
	return shunt_intake_is(intake, SHUNT_INTAKE_FINAL);
}

static inline bool shunt_intake_repeats(const struct shunt_intake *intake)
{
	return __builtin_expect(shunt_intake_is(intake, SHUNT_INTAKE_REPEAT), 0);
}

static inline bool shunt_intake_copied(const struct shunt_intake *intake)
{
	return shunt_intake_is(intake, SHUNT_INTAKE_COPIED);
}

#endif
