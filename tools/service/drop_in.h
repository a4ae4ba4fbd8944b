/* SPDX-License-Identifier: MIT */
/*
 * The text of a drop-in, made from the unit's own settings: with it the service runs under Shunt. Lists
 * that the unit has are added to, and no list is made. No path in it has to be there, so the unit starts when the library
 * has been removed, too.
 */
#ifndef SHUNT_TOOLS_SERVICE_DROP_IN_H
#define SHUNT_TOOLS_SERVICE_DROP_IN_H

#include <stdio.h>
#include "tools/service/unit_file.h"

/* The first line of each: what lacks it is not ours, and stays. */
#define SHUNT_DROP_IN_MARK "# Made by `shunt service enable"

/* Writes it. `library` is an absolute name. */
void shunt_drop_in_write(FILE *out, const struct shunt_unit *unit, const char *library);
/* Says on standard error, a line each, what of the unit keeps connections on TCP in spite of it. */
void shunt_drop_in_warn(const struct shunt_unit *unit);

#endif
