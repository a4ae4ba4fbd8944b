/* SPDX-License-Identifier: MIT */
/* Tests of state machines (core/base/machine.h): their table, row by row, and what is true of all states. */
#ifndef SHUNT_TESTS_UNIT_MACHINE_ROWS_H
#define SHUNT_TESTS_UNIT_MACHINE_ROWS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "core/base/machine.h"

#define WRONG SHUNT_MACHINE_WRONG

struct machine_row {
	const char *name;
	uint32_t before;
	uint32_t event;
	uint32_t after;
};

#define ROWS(rows) rows, sizeof(rows) / sizeof(*(rows))

static inline void rows_hold(shunt_machine_after *after, const struct machine_row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t now = after(rows[i].before, rows[i].event);

		if (now != rows[i].after)
			fail_msg("%s: %#x, not %#x", rows[i].name, now, rows[i].after);
	}
}

/* At most 32 events. */
static inline void each_event_has_rows(uint32_t events, const struct machine_row *rows, size_t count)
{
	uint32_t seen = 0;

	for (size_t i = 0; i < count; i++)
		seen |= UINT32_C(1) << rows[i].event;
	for (uint32_t event = 0; event < events; event++)
		if (!(seen & UINT32_C(1) << event))
			fail_msg("no row for event %u", event);
}

/* All states, of at most 8 bits, that any order of events reaches from 0. Returns how many there are. */
static inline size_t states_hold(shunt_machine_after *after, uint32_t events, void (*holds)(uint32_t word))
{
	uint32_t queue[256] = { 0 };
	bool seen[256] = { true };
	size_t count = 1;

	for (size_t i = 0; i < count; i++) {
		holds(queue[i]);
		for (uint32_t event = 0; event < events; event++) {
			uint32_t now = after(queue[i], event);

			if (now == WRONG)
				continue;
			assert_in_range(now, 0, 255);
			if (seen[now])
				continue;
			seen[now] = true;
			queue[count++] = now;
		}
	}
	return count;
}

/* Each event has a name, and each bit that `states_hold()` has seen. */
static inline void names_hold(const struct shunt_machine *machine, uint32_t events, uint32_t bits)
{
	for (uint32_t event = 0; event < events; event++)
		assert_non_null(machine->events[event]);
	for (uint32_t bit = 0; machine->facts && bit < bits; bit++)
		assert_non_null(machine->facts[bit]);
	assert_true(!machine->facts || !machine->facts[bits]);
}

#endif
