/* SPDX-License-Identifier: MIT */
/*
 * Copies between the program's memory and memory that another core, or a device, writes or reads (LN-12).
 *
 * The program's memory may not be there: a wild pointer, the end of a truncated file. The kernel says EFAULT then, and
 * these copies fail. They do not look beforehand. The handler of SIGSEGV and SIGBUS finds a landing for the instruction
 * that has faulted (PF-63). Nobody knows how much was copied before the fault.
 *
 * memcpy of some C libraries copies a few KiB and more with one string instruction. Where another core has the lines
 * of `to`, that is slower than plain stores (docs/dev/EXPERIMENTS.md), so `auto` has a loop of its own.
 *
 * The soft device has told the peer of nothing by the time of such a fault. So post_send returns EFAULT as if the WR
 * had not been posted, and the reader of a ring has not moved. The call ends with EFAULT, or with the bytes before.
 */
#ifndef SHUNT_CORE_BASE_COPY_H
#define SHUNT_CORE_BASE_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum shunt_copy_choice { SHUNT_COPY_AUTO, SHUNT_COPY_MEMCPY, SHUNT_COPY_NT };	/* words of `copy` */

#define SHUNT_COPY_LARGE (12 << 10) /* bytes; shorter copies are plain, whatever `copy` says */

/* By plain stores. False: a fault. */
bool shunt_copy_plain(void *to, const void *from, size_t bytes) __attribute__((warn_unused_result));
/* Copies one word of 4 or 8 bytes as above, with little cost beside the load. */
bool shunt_copy_4(void *to, const void *from) __attribute__((warn_unused_result));
bool shunt_copy_8(void *to, const void *from) __attribute__((warn_unused_result));
/* By those that each processor has. The other has wider ones where it can (AVX2). */
bool shunt_copy_narrow(void *to, const void *from, size_t bytes)
	__attribute__((warn_unused_result));
/*
 * By stores that go past the caches, where the processor has them, else as above. A later store of the
 * thread is seen after the bytes: the call ends with the barrier that such stores need.
 */
bool shunt_copy_past(void *to, const void *from, size_t bytes) __attribute__((warn_unused_result));
/* As memcpy of the C library copies many bytes: by a string instruction, where the processor has one. */
bool shunt_copy_string(void *to, const void *from, size_t bytes)
	__attribute__((warn_unused_result));

/*
 * In a handler of SIGSEGV or SIGBUS, with its third argument (a ucontext_t of SA_SIGINFO). True: the fault was in one of
 * these copies, which goes on to fail when the handler returns. Async-signal-safe.
 */
bool shunt_copy_lands(void *context);

/* As *choice says, which another thread may change. */
static inline __attribute__((warn_unused_result)) bool shunt_copy(void *to, const void *from,
								  size_t bytes,
								  const uint64_t *choice)
{
	uint64_t chosen;

	if (__builtin_expect(bytes < SHUNT_COPY_LARGE, 1))
		return shunt_copy_plain(to, from, bytes);
	chosen = __atomic_load_n(choice, __ATOMIC_RELAXED);
	if (chosen == SHUNT_COPY_AUTO)
		return shunt_copy_plain(to, from, bytes);
	if (chosen == SHUNT_COPY_NT)
		return shunt_copy_past(to, from, bytes);
	return shunt_copy_string(to, from, bytes);
}

#endif
