/* SPDX-License-Identifier: MIT */
/*
 * Copies of many bytes between the program and memory that another core, or a device, writes or reads (LN-12).
 *
 * memcpy of some C libraries copies a few KiB and more with one string instruction. Where another core has the lines
 * of `to`, that is slower than plain stores (docs/EXPERIMENTS.md), so `auto` has a loop of its own.
 */
#ifndef SHUNT_CORE_BASE_COPY_H
#define SHUNT_CORE_BASE_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum shunt_copy_choice { SHUNT_COPY_AUTO, SHUNT_COPY_MEMCPY, SHUNT_COPY_NT };	/* words of SHUNT_COPY */

#define SHUNT_COPY_LARGE (12 << 10)	/* bytes; shorter copies are memcpy, whatever SHUNT_COPY says (docs/EXPERIMENTS.md) */

/* By plain stores. */
void shunt_copy_plain(void *to, const void *from, size_t bytes);
/*
 * By stores that go past the caches, where the processor has them, else as above. A later store of the
 * thread is seen after the bytes: the call ends with the barrier that such stores need.
 */
void shunt_copy_past(void *to, const void *from, size_t bytes);

/* As *choice says, which another thread may change. */
static inline void shunt_copy(void *to, const void *from, size_t bytes, const uint64_t *choice)
{
	uint64_t chosen;

	if (__builtin_expect(bytes < SHUNT_COPY_LARGE, 1)) {
		memcpy(to, from, bytes);
		return;
	}
	chosen = __atomic_load_n(choice, __ATOMIC_RELAXED);
	if (chosen == SHUNT_COPY_AUTO)
		shunt_copy_plain(to, from, bytes);
	else if (chosen == SHUNT_COPY_NT)
		shunt_copy_past(to, from, bytes);
	else
		memcpy(to, from, bytes);
}

#endif
