/* SPDX-License-Identifier: MIT */
/*
 * A state machine in one word. Its header names the facts that the word's bits say and the events; its `after` is the
 * table. The functions here are the only writers of the word.
 */
#ifndef SHUNT_CORE_BASE_MACHINE_H
#define SHUNT_CORE_BASE_MACHINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "core/base/lock_check.h"

#define SHUNT_MACHINE_WRONG (~0u)	/* no state */

/* The word after an event; SHUNT_MACHINE_WRONG: there the event cannot come. */
typedef uint32_t shunt_machine_after(uint32_t word, uint32_t event);

/* The event takes effect. False: it cannot come, and nothing has changed. *before: the word without it. */
static inline bool shunt_machine_try(_Atomic uint32_t *word, shunt_machine_after *after, uint32_t event, uint32_t *before)
{
	uint32_t now;

	*before = atomic_load(word);
	do {
		now = after(*before, event);
		if (now == SHUNT_MACHINE_WRONG)
			return false;
	} while (!atomic_compare_exchange_weak(word, before, now));
	return true;
}

/* The same for an event that comes only where it can: builds that check locks abort where it does not. */
static inline uint32_t shunt_machine_turn(_Atomic uint32_t *word, shunt_machine_after *after, uint32_t event,
					  const char *where)
{
	uint32_t before;

	if (!shunt_machine_try(word, after, event, &before))
		shunt_refuse_turn(where, before, event);
	return before;
}

#endif
