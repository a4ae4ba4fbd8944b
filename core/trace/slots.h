/* SPDX-License-Identifier: MIT */
/* A set of slots of a record ring is one word. */
#ifndef SHUNT_CORE_TRACE_SLOTS_H
#define SHUNT_CORE_TRACE_SLOTS_H

#include <stdbool.h>
#include <stdint.h>
#include "shunt/wire.h"

_Static_assert(SHUNT_TRACE_SLOTS == 64, "a set of slots is one word");

static inline uint64_t shunt_slot_bit(uint32_t at)
{
	return 1ull << at;
}

/* Takes the first slot out of the set. False: it is empty. */
static inline bool shunt_slot_take(uint64_t *slots, uint32_t *at)
{
	if (!*slots)
		return false;
	*at = (uint32_t)__builtin_ctzll(*slots);
	*slots &= *slots - 1;
	return true;
}

#endif
