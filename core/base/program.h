/* SPDX-License-Identifier: MIT */
/*
 * The name of the program, as it was when the library was loaded. program_invocation_short_name is a place within
 * argv[0], and programs that give themselves a title write over that.
 */
#ifndef SHUNT_CORE_BASE_PROGRAM_H
#define SHUNT_CORE_BASE_PROGRAM_H

/* Before main(), while there is one thread. A name of more than 255 bytes is cut off. */
void shunt_program_note(const char *name);
/* Where none was noted, what libc says. */
const char *shunt_program_name(void);

#endif
