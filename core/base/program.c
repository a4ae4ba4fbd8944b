/* SPDX-License-Identifier: MIT */
#include "core/base/program.h"
#include <errno.h>
#include <limits.h>
#include <string.h>

static char noted[NAME_MAX + 1];

void shunt_program_note(const char *name)
{
	strncpy(noted, name, sizeof(noted) - 1);
}

const char *shunt_program_name(void)
{
	return noted[0] ? noted : program_invocation_short_name;
}
