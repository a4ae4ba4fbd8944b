/* SPDX-License-Identifier: MIT */
/* Memory that is mapped and nobody's: AddressSanitizer reports the first byte that is read or written there. */
#ifndef SHUNT_CORE_BASE_POISON_H
#define SHUNT_CORE_BASE_POISON_H

#include <stddef.h>
#include <stdint.h>

#ifndef __has_feature
#define __has_feature(feature) 0	/* clang's */
#endif

#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define SHUNT_POISONS 1
#include <sanitizer/asan_interface.h>
#else
#define SHUNT_POISONS 0
#endif

static inline void shunt_poison(const void *at, size_t bytes)
{
#if SHUNT_POISONS
	__asan_poison_memory_region(at, bytes);
#else
	(void)at, (void)bytes;
#endif
}

static inline void shunt_unpoison(const void *at, size_t bytes)
{
#if SHUNT_POISONS
	__asan_unpoison_memory_region(at, bytes);
#else
	(void)at, (void)bytes;
#endif
}

#if SHUNT_POISONS
void __asan_loadN(void *at, long bytes);	/* as the compiler knows them */
void __asan_storeN(void *at, long bytes);
#endif

/* A copy is about to be made that the compiler does not see. */
static inline void shunt_poison_look(void *to, const void *from, size_t bytes)
{
#if SHUNT_POISONS
	if (bytes) {
		__asan_loadN((void *)(uintptr_t)from, (long)bytes);
		__asan_storeN(to, (long)bytes);
	}
#else
	(void)to, (void)from, (void)bytes;
#endif
}

#endif
