/* SPDX-License-Identifier: MIT */
/* Young connections (core/fd/young.h), for the engine's own use; api.h has what the libc boundary may ask. */
#ifndef SHUNT_CORE_YOUNG_H
#define SHUNT_CORE_YOUNG_H

#include <stdbool.h>

struct shunt_engine;

/* Those that are connected are the kernel's for good, and `sockets`: so are the others, without a system call. */
void shunt_young_give_up(struct shunt_engine *engine, bool sockets);
/* Around a fork, in the parent, and in the child: a connection that was young throughout is the kernel's. */
void shunt_young_parted(struct shunt_engine *engine);
void shunt_young_forked(struct shunt_engine *engine);

#endif
