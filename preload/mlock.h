/* SPDX-License-Identifier: MIT */
/* Mappings of Shunt's own, which the program does not lock in memory. */
#ifndef SHUNT_PRELOAD_MLOCK_H
#define SHUNT_PRELOAD_MLOCK_H

#include <stddef.h>
#include <sys/types.h>

/* As mmap(), and about to be unmapped. */
void *shunt_mlock_map(void *at, size_t bytes, int prot, int flags, int fd, off_t offset);
void shunt_mlock_unmapped(void *at);

#endif
