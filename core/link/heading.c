/* SPDX-License-Identifier: MIT */
#include "core/link/heading.h"
#include "core/base/machine.h"

#define UNPASSED SHUNT_HEADING_UNPASSED_MASK
#define HALF (SHUNT_HEADING_UNPOSTED | SHUNT_HEADING_AWAITED)	/* of a HANDBACK */

static bool is_possible(uint32_t word, uint32_t event)
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

uint32_t shunt_heading_after(uint32_t word, uint32_t event)
{
	if (!is_possible(word, event))
		return SHUNT_MACHINE_WRONG;
	switch (event) {
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
	default:
		return SHUNT_MACHINE_WRONG;
	}
}

static const char *const events[SHUNT_HEADING_EVENTS] = {
	"UPGRADES", "HANDS_BACK", "IS_POSTED", "IS_AWAITED", "ANNOUNCES", "WITHDRAWS", "LEAVES",
	"IS_PASSED", "FAILS", "EXPIRES", "SETTLES", "RETIRES",
};
static const char *const facts[] = {
	"link", "one unpassed", "two unpassed", "unposted", "awaited", "halted", "kernel's", NULL,
};
const struct shunt_machine shunt_heading_machine = { "heading", "core/link/heading.h",
						     shunt_heading_after, events, facts };

uint32_t shunt_heading_turn(struct shunt_heading *heading, enum shunt_heading_event event)
{
	return shunt_machine_turn(&shunt_heading_machine, &heading->word, event);
}

bool shunt_heading_try(struct shunt_heading *heading, enum shunt_heading_event event)
{
	uint32_t before;

	return shunt_machine_try(&shunt_heading_machine, &heading->word, event, &before);
}
