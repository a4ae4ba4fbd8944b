/* SPDX-License-Identifier: MIT */
#include "core/base/machine.h"
#include <stdio.h>

const char *shunt_machine_text(const char *const *facts, uint64_t word, char *text)
{
	size_t length = 0;

	snprintf(text, SHUNT_MACHINE_TEXT, "-");
	for (; *facts; facts++, word >>= 1)
		if (word & 1 && length < SHUNT_MACHINE_TEXT)
			length += (size_t)snprintf(text + length, SHUNT_MACHINE_TEXT - length,
						   "%s%s", length ? ", " : "", *facts);
	return text;
}

static const char *text_of(const struct shunt_machine *machine, uint32_t word, char *text)
{
	return machine->facts ? shunt_machine_text(machine->facts, word, text) :
				machine->events[word];
}

void shunt_machine_say(const struct shunt_machine *machine, const void *word, uint32_t event,
		       uint32_t before, uint32_t after)
{
	char from[SHUNT_MACHINE_TEXT], to[SHUNT_MACHINE_TEXT];

	shunt_log_write(SHUNT_LOG_DEBUG, "%s %p: %s: %s -> %s", machine->name, word,
			machine->events[event], text_of(machine, before, from),
			text_of(machine, after, to));
}
