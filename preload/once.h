/* SPDX-License-Identifier: MIT */
/* Objects of the process that the first thread to need them makes. */
#ifndef SHUNT_PRELOAD_ONCE_H
#define SHUNT_PRELOAD_ONCE_H

#include <stdbool.h>

/* The thread that moves the word from NONE to MAKING makes the object. Every other thread waits for READY. */
enum { SHUNT_ONCE_NONE, SHUNT_ONCE_MAKING, SHUNT_ONCE_READY };

/* Returns when it is made. At once in the thread that is making something: a library calls us meanwhile. */
void shunt_once_make(_Atomic int *state, void (*maker)(void));
/* Is this thread making something? */
bool shunt_once_makes(void);

#endif
