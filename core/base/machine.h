/* SPDX-License-Identifier: MIT */
/*
 * A state machine in one word. Its header names the facts that the word's bits say and the events; its `after` is the
 * table. The functions here are the only writers of the word. At SHUNT_LOG=debug each turn is a line: which machine,
 * the address of its word, the event, and the facts before and after.
 */
#ifndef SHUNT_CORE_BASE_MACHINE_H
#define SHUNT_CORE_BASE_MACHINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "core/base/lock_check.h"
#include "core/base/log.h"

#define SHUNT_MACHINE_WRONG (~0u)	/* no state */

/* The word after an event; SHUNT_MACHINE_WRONG: there the event cannot come. */
typedef uint32_t shunt_machine_after(uint32_t word, uint32_t event);

struct shunt_machine {
	const char *name;
	const char *where;		/* the header that has its facts and events */
	shunt_machine_after *after;
	const char *const *events;	/* their names, in the order of the header */
	const char *const *facts;	/* of each bit, NULL-terminated; or else NULL: the word is the last event */
};

#define SHUNT_MACHINE_TEXT 160

/* Writes the names of the bits in `word` with commas between, or "-" for 0. Returns `text`, of SHUNT_MACHINE_TEXT bytes. */
const char *shunt_machine_text(const char *const *facts, uint64_t word, char *text);
/* Writes the line. */
void shunt_machine_say(const struct shunt_machine *machine, const void *word, uint32_t event,
		       uint32_t before, uint32_t after) __attribute__((cold));

/* The event takes effect. False: it cannot come, and nothing has changed. *before: the word without it. */
static inline bool shunt_machine_try(const struct shunt_machine *machine, _Atomic uint32_t *word,
				     uint32_t event, uint32_t *before)
{
	uint32_t now;

	*before = atomic_load(word);
	do {
		now = machine->after(*before, event);
		if (now == SHUNT_MACHINE_WRONG)
			return false;
	} while (!atomic_compare_exchange_weak(word, before, now));
	if (__builtin_expect(shunt_log_wants(SHUNT_LOG_DEBUG), 0) && now != *before)
		shunt_machine_say(machine, word, event, *before, now);
	return true;
}

/* The same for an event that comes only where it can: builds that check locks abort where it does not. */
static inline uint32_t shunt_machine_turn(const struct shunt_machine *machine,
					  _Atomic uint32_t *word, uint32_t event)
{
	uint32_t before;

	if (!shunt_machine_try(machine, word, event, &before))
		shunt_refuse_turn(machine->where, before, event);
	return before;
}

#endif
