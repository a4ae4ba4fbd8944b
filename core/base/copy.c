/* SPDX-License-Identifier: MIT */
#include "core/base/copy.h"
#ifdef __SSE2__	/* each x86-64 has it */
#include <emmintrin.h>
#endif

#define LINE 64	/* bytes of a cache line */

/* Bytes before the first line of `to`; all, where there is no whole one. */
static size_t before_line(const void *to, size_t bytes)
{
	size_t before = -(uintptr_t)to & (LINE - 1);

	return before < bytes ? before : bytes;
}

static inline void plain_line(char *to, const char *from)
{
	memcpy(to, from, LINE);	/* the compiler's moves, of the widest registers that it may use */
}

void shunt_copy_plain(void *to, const void *from, size_t bytes)
{
	size_t at = before_line(to, bytes);

	memcpy(to, from, at);
	for (; bytes - at >= LINE; at += LINE) {
		plain_line((char *)to + at, (const char *)from + at);
		__asm__ volatile("" ::: "memory");	/* else the loop may become a call of memcpy */
	}
	memcpy((char *)to + at, (const char *)from + at, bytes - at);
}

#ifdef __SSE2__

static inline void past_line(char *to, const char *from)
{
	__m128i part[LINE / sizeof(__m128i)];

	for (size_t i = 0; i < LINE / sizeof(__m128i); i++)
		part[i] = _mm_loadu_si128((const __m128i *)from + i);
	for (size_t i = 0; i < LINE / sizeof(__m128i); i++)
		_mm_stream_si128((__m128i *)to + i, part[i]);
}

/*
 * x86 orders plain stores, but these may become visible after a later plain store, such as the one that announces the
 * bytes. The sfence puts them before it. The reader needs nothing for it.
 */
void shunt_copy_past(void *to, const void *from, size_t bytes)
{
	size_t at = before_line(to, bytes);

	memcpy(to, from, at);
	for (; bytes - at >= LINE; at += LINE)
		past_line((char *)to + at, (const char *)from + at);
	memcpy((char *)to + at, (const char *)from + at, bytes - at);
	_mm_sfence();
}

#else

void shunt_copy_past(void *to, const void *from, size_t bytes)
{
	shunt_copy_plain(to, from, bytes);
}

#endif
