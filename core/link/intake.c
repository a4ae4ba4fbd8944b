/* SPDX-License-Identifier: MIT */
#include "core/link/intake.h"
#include "core/base/machine.h"

/* Where TCP has all, nothing is left to pass. */
static bool is_possible(uint32_t word, uint32_t event)
{
	switch (event) {
	case SHUNT_INTAKE_OPENS:
		return !(word & SHUNT_INTAKE_OPEN);
	case SHUNT_INTAKE_CLOSES:
		return word & SHUNT_INTAKE_OPEN;
	case SHUNT_INTAKE_PASSES:
		return word & SHUNT_INTAKE_LINK || !(word & SHUNT_INTAKE_COPIED);
	case SHUNT_INTAKE_REPEATS:
		return word & SHUNT_INTAKE_OPEN &&
		       !(word & (SHUNT_INTAKE_REPEAT | SHUNT_INTAKE_COPIED));
	case SHUNT_INTAKE_CATCHES_UP:
		return !(word & SHUNT_INTAKE_LINK);
	default:
		return true;
	}
}

uint32_t shunt_intake_after(uint32_t word, uint32_t event)
{
	if (!is_possible(word, event))
		return SHUNT_MACHINE_WRONG;
	switch (event) {
	case SHUNT_INTAKE_OPENS:
		return word | SHUNT_INTAKE_OPEN;
	case SHUNT_INTAKE_CLOSES:
		return word & ~(uint32_t)SHUNT_INTAKE_OPEN;
	case SHUNT_INTAKE_PASSES:
		return word ^ SHUNT_INTAKE_LINK;
	case SHUNT_INTAKE_DIES:
		return word | SHUNT_INTAKE_FINAL;
	case SHUNT_INTAKE_RETIRES:
		return (word & ~(uint32_t)(SHUNT_INTAKE_LINK | SHUNT_INTAKE_REPEAT)) |
		       SHUNT_INTAKE_COPIED;
	case SHUNT_INTAKE_IS_OVER:
		return word | SHUNT_INTAKE_COPIED;
	case SHUNT_INTAKE_REPEATS:
		return word | SHUNT_INTAKE_REPEAT;
	case SHUNT_INTAKE_CATCHES_UP:
		return word & ~(uint32_t)SHUNT_INTAKE_REPEAT;
	default:
		return SHUNT_MACHINE_WRONG;
	}
}

static const char *const events[SHUNT_INTAKE_EVENTS] = {
	"OPENS", "CLOSES", "PASSES", "DIES", "RETIRES", "IS_OVER", "REPEATS", "CATCHES_UP",
};
static const char *const facts[] = { "link", "open", "final", "copied", "repeat", NULL };
const struct shunt_machine shunt_intake_machine = { "intake", "core/link/intake.h",
						    shunt_intake_after, events, facts };

void shunt_intake_turn(struct shunt_intake *intake, enum shunt_intake_event event)
{
	shunt_machine_turn(&shunt_intake_machine, &intake->word, event);
}

bool shunt_intake_try(struct shunt_intake *intake, enum shunt_intake_event event)
{
	uint32_t before;

	return shunt_machine_try(&shunt_intake_machine, &intake->word, event, &before);
}
