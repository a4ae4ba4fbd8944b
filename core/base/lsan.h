/* SPDX-License-Identifier: MIT */
/*
 * Memory of our own, zero until touched, from which malloc()'s is pointed to. LeakSanitizer looks for pointers in
 * data, stacks and malloc()'s memory; what only mmap()'s memory knows it would call a leak of the program's.
 */
#ifndef SHUNT_CORE_BASE_LSAN_H
#define SHUNT_CORE_BASE_LSAN_H

#include <stddef.h>

/* Page aligned; what is not touched costs address space alone. NULL: none. */
void *shunt_lsan_map(size_t bytes);
void shunt_lsan_unmap(void *roots, size_t bytes);

#endif
