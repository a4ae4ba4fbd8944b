/* SPDX-License-Identifier: MIT */
#include "core/lane/heading.h"
#include "core/base/lock_check.h"

#define UNPASSED SHUNT_HEADING_UNPASSED_MASK
#define HALF (SHUNT_HEADING_UNPOSTED | SHUNT_HEADING_AWAITED)	/* of a HANDBACK */

static bool is_possible(uint32_t word, enum shunt_heading_event event)
{
	bool both = (word & UNPASSED) == 2 * SHUNT_HEADING_UNPASSED;

	switch (event) {
	case SHUNT_HEADING_UPGRADES:
		return !(word & (SHUNT_HEADING_LINK | UNPASSED | SHUNT_HEADING_HALTED |
				 SHUNT_HEADING_KERNELS));
	case SHUNT_HEADING_HANDS_BACK:
	case SHUNT_HEADING_ANNOUNCES:
		return word & SHUNT_HEADING_LINK && !both && !(word & SHUNT_HEADING_HALTED);
	case SHUNT_HEADING_WITHDRAWS:
	case SHUNT_HEADING_IS_PASSED:
		return word & UNPASSED;
	case SHUNT_HEADING_RETIRES:
		return !(word & SHUNT_HEADING_LINK);
	default:
		return true;
	}
}

uint32_t shunt_heading_after(uint32_t word, enum shunt_heading_event event)
{
	if (!is_possible(word, event))
		return SHUNT_HEADING_WRONG;
	switch (event) {
	case SHUNT_HEADING_BEGINS:
		return 0;
	case SHUNT_HEADING_UPGRADES:
		return (word & ~(uint32_t)HALF) | SHUNT_HEADING_LINK | SHUNT_HEADING_UNPASSED;
	case SHUNT_HEADING_HANDS_BACK:
		return ((word & ~(uint32_t)(SHUNT_HEADING_LINK | HALF)) + SHUNT_HEADING_UNPASSED) |
		       SHUNT_HEADING_UNPOSTED;
	case SHUNT_HEADING_IS_POSTED:
		return word & ~(uint32_t)HALF;
	case SHUNT_HEADING_IS_AWAITED:
		return word & SHUNT_HEADING_UNPOSTED ? word | SHUNT_HEADING_AWAITED : word;
	case SHUNT_HEADING_ANNOUNCES:
		return word + SHUNT_HEADING_UNPASSED;
	case SHUNT_HEADING_WITHDRAWS:
	case SHUNT_HEADING_IS_PASSED:
		return word - SHUNT_HEADING_UNPASSED;
	case SHUNT_HEADING_LEAVES:
		return word & ~(uint32_t)(SHUNT_HEADING_LINK | HALF);
	case SHUNT_HEADING_FAILS:
		return word | SHUNT_HEADING_HALTED;
	case SHUNT_HEADING_EXPIRES:
		return word & ~(uint32_t)SHUNT_HEADING_HALTED;
	case SHUNT_HEADING_SETTLES:
		return word & SHUNT_HEADING_KERNELS;
	case SHUNT_HEADING_RETIRES:
		return word | SHUNT_HEADING_KERNELS;
	case SHUNT_HEADING_EVENTS:
		break;
	}
	return SHUNT_HEADING_WRONG;
}

/* Sets *word to the state before the event, or to the one where it cannot come. */
static bool enter(struct shunt_heading *heading, enum shunt_heading_event event, uint32_t *word)
{
	uint32_t after;

	*word = atomic_load(&heading->word);
	do {
		after = shunt_heading_after(*word, event);
		if (after == SHUNT_HEADING_WRONG)
			return false;
	} while (!atomic_compare_exchange_weak(&heading->word, word, after));
	return true;
}

uint32_t shunt_heading_turn(struct shunt_heading *heading, enum shunt_heading_event event)
{
	uint32_t word;

	if (!enter(heading, event, &word))
		shunt_refuse_turn("core/lane/heading.h", word, event);
	return word;
}

bool shunt_heading_try(struct shunt_heading *heading, enum shunt_heading_event event)
{
	uint32_t word;

	return enter(heading, event, &word);
}
