/* SPDX-License-Identifier: MIT */
/*
 * Each move is an assembler block with a landing: a row that says where to go on if an instruction of the block faults.
 * The kernel keeps a table of this kind for its own copies (extable). A block names every register that it changes. So the
 * C code that follows finds its other registers intact, whether the block ran to its end or left by the landing.
 *
 * Other processors than these two have no landings: there a fault is the program's SIGSEGV.
 */
#define _GNU_SOURCE
#include "core/base/copy.h"
#include <ucontext.h>
#include "core/base/poison.h"

#define LINE 64	/* bytes of a cache line */

/* Addresses of code, each as a distance from its own field: instructions [first, last) go on at `to`. */
struct landing {
	int32_t first, last, to;
};

#define LANDING(label)                                                                             \
	"2:	.pushsection shunt_landings, \"a\"\n"                                                  \
	"	.balign	4\n"                                                                             \
	"	.long	1b - ., 2b - ., %l[" #label "] - .\n"                                      \
	"	.popsection\n"

/* Two moves of one width, which may overlap: both loads come before both stores. */
#define PAIR(name, body, ...)                                                                      \
	static inline bool name(char *to, const char *from, char *to2, const char *from2)          \
	{                                                                                          \
		__asm__ goto(body LANDING(bad)                                                     \
			     :                                                                     \
			     : "r"(to), "r"(from), "r"(to2), "r"(from2)                            \
			     : __VA_ARGS__, "memory"                                               \
			     : bad);                                                               \
		return true;                                                                       \
	bad:                                                                                       \
		return false;                                                                      \
	}

/* A line, by four registers. */
#define WHOLE(name, body, ...)                                                                     \
	static inline bool name(char *to, const char *from)                                        \
	{                                                                                          \
		__asm__ goto(body LANDING(bad)                                                     \
			     :                                                                     \
			     : "r"(to), "r"(from)                                                  \
			     : __VA_ARGS__, "memory"                                               \
			     : bad);                                                               \
		return true;                                                                       \
	bad:                                                                                       \
		return false;                                                                      \
	}

#if defined(__x86_64__)

#define LANDS 1
#define MOVES(load, a, b, store)                                                                   \
	"1:	" load "	(%1), %%" a "\n	" load "	(%3), %%" b "\n"                   \
	"	" store "	%%" a ", (%0)\n	" store "	%%" b ", (%2)\n"
#define LINE_MOVES(store)                                                                          \
	"1:	movups	(%1), %%xmm0\n	movups	16(%1), %%xmm1\n"                                         \
	"	movups	32(%1), %%xmm2\n	movups	48(%1), %%xmm3\n"                                         \
	"	" store "	%%xmm0, (%0)\n	" store "	%%xmm1, 16(%0)\n"                        \
	"	" store "	%%xmm2, 32(%0)\n	" store "	%%xmm3, 48(%0)\n"

PAIR(pair_1, MOVES("movb", "al", "cl", "movb"), "rax", "rcx")
PAIR(pair_4, MOVES("movl", "eax", "ecx", "movl"), "rax", "rcx")
PAIR(pair_8, MOVES("movq", "rax", "rcx", "movq"), "rax", "rcx")
PAIR(pair_16, MOVES("movups", "xmm0", "xmm1", "movups"), "xmm0", "xmm1")
WHOLE(line, LINE_MOVES("movups"), "xmm0", "xmm1", "xmm2", "xmm3")
WHOLE(line_past, LINE_MOVES("movntps"), "xmm0", "xmm1", "xmm2", "xmm3")
WHOLE(line_wide,
      "1:	vmovups	(%1), %%ymm0\n	vmovups	32(%1), %%ymm1\n"
      "	vmovups	%%ymm0, (%0)\n	vmovups	%%ymm1, 32(%0)\n",
      "xmm0", "xmm1")

/* The instruction's registers are not the inputs', which the landing finds as they were. */
static bool string(char *to, const char *from, size_t bytes)
{
	__asm__ goto("	movq	%0, %%rdi\n	movq	%1, %%rsi\n	movq	%2, %%rcx\n"
		     "1:	rep movsb\n" LANDING(bad)
		     :
		     : "r"(to), "r"(from), "r"(bytes)
		     : "rdi", "rsi", "rcx", "memory"
		     : bad);
	return true;
bad:
	return false;
}

static inline void settle_past(void)
{
	__builtin_ia32_sfence();
}

enum { UNKNOWN, NARROW, WIDE };

static uint8_t width;	/* any thread finds out the same */

static __attribute__((noinline)) uint8_t find_width(void)
{
	__builtin_cpu_init();
	return __builtin_cpu_supports("avx2") ? WIDE : NARROW;
}

static inline bool is_wide(void)
{
	if (__builtin_expect(__atomic_load_n(&width, __ATOMIC_RELAXED) == UNKNOWN, 0))
		__atomic_store_n(&width, find_width(), __ATOMIC_RELAXED);
	return __atomic_load_n(&width, __ATOMIC_RELAXED) == WIDE;
}

/* Instructions with narrow registers are slow behind wide ones, unless the upper halves are said to be empty. */
static inline void settle_wide(void)
{
	__asm__ volatile("vzeroupper" ::: "memory");
}

static inline uintptr_t *counter(ucontext_t *context)
{
	return (uintptr_t *)&context->uc_mcontext.gregs[REG_RIP];
}

#elif defined(__aarch64__)

#define LANDS 1
#define MOVES(load, a, b, store)                                                                   \
	"1:	" load "	" a ", [%1]\n	" load "	" b ", [%3]\n"                     \
	"	" store "	" a ", [%0]\n	" store "	" b ", [%2]\n"

PAIR(pair_1, MOVES("ldrb", "w9", "w10", "strb"), "x9", "x10")
PAIR(pair_4, MOVES("ldr", "w9", "w10", "str"), "x9", "x10")
PAIR(pair_8, MOVES("ldr", "x9", "x10", "str"), "x9", "x10")
PAIR(pair_16, MOVES("ldr", "q0", "q1", "str"), "v0", "v1")
WHOLE(line,
      "1:	ldp	q0, q1, [%1]\n	ldp	q2, q3, [%1, #32]\n"
      "	stp	q0, q1, [%0]\n	stp	q2, q3, [%0, #32]\n",
      "v0", "v1", "v2", "v3")
#define line_past line
#define line_wide line
#define string shunt_copy_plain

static inline bool is_wide(void)
{
	return false;
}

static inline void settle_wide(void)
{
}

static inline void settle_past(void)
{
}

static inline uintptr_t *counter(ucontext_t *context)
{
	return (uintptr_t *)&context->uc_mcontext.pc;
}

#else

#define LANDS 0

#endif

#if LANDS

extern const struct landing __start_shunt_landings[] __attribute__((visibility("hidden")));
extern const struct landing __stop_shunt_landings[] __attribute__((visibility("hidden")));

static uintptr_t place(const int32_t *distance)
{
	return (uintptr_t)distance + (uintptr_t)(intptr_t)*distance;
}

bool shunt_copy_lands(void *context)
{
	uintptr_t *at = counter(context);

	for (const struct landing *row = __start_shunt_landings; row < __stop_shunt_landings; row++)
		if (*at >= place(&row->first) && *at < place(&row->last)) {
			*at = place(&row->to);
			return true;
		}
	return false;
}

/* No more than a line. */
static inline __attribute__((always_inline)) bool few(char *to, const char *from, size_t bytes)
{
	char *last = to + bytes;
	const char *end = from + bytes;

	if (bytes > 32)
		return pair_16(to, from, to + 16, from + 16) &&
		       pair_16(last - 32, end - 32, last - 16, end - 16);
	if (bytes >= 16)
		return pair_16(to, from, last - 16, end - 16);
	if (bytes >= 8)
		return pair_8(to, from, last - 8, end - 8);
	if (bytes >= 4)
		return pair_4(to, from, last - 4, end - 4);
	if (bytes)
		return pair_1(to, from, last - 1, end - 1) &&
		       (bytes < 3 || pair_1(to + 1, from + 1, to + 1, from + 1));
	return true;
}

/* More than a line. The first line and the last may overlap others; those between are whole lines of `to`. */
static inline __attribute__((always_inline)) bool lines(char *to, const char *from, size_t bytes,
							bool (*edge)(char *to, const char *from),
							bool (*move)(char *to, const char *from))
{
	size_t at = LINE - ((uintptr_t)to & (LINE - 1));

	if (!edge(to, from))
		return false;
	for (; bytes - at > LINE; at += LINE)
		if (!move(to + at, from + at))
			return false;
	return edge(to + bytes - LINE, from + bytes - LINE);
}

static bool wide_lines(char *to, const char *from, size_t bytes)
{
	bool whole = lines(to, from, bytes, line_wide, line_wide);

	settle_wide();
	return whole;
}

bool shunt_copy_narrow(void *to, const void *from, size_t bytes)
{
	shunt_poison_look(to, from, bytes);
	return bytes <= LINE ? few(to, from, bytes) : lines(to, from, bytes, line, line);
}

static __attribute__((noinline)) bool many(void *to, const void *from, size_t bytes)
{
	if (!is_wide())
		return shunt_copy_narrow(to, from, bytes);
	shunt_poison_look(to, from, bytes);
	return wide_lines(to, from, bytes);
}

/* A short copy saves no register. */
bool shunt_copy_plain(void *to, const void *from, size_t bytes)
{
	if (bytes > LINE)
		return many(to, from, bytes);
	shunt_poison_look(to, from, bytes);
	return few(to, from, bytes);
}

bool shunt_copy_4(void *to, const void *from)
{
	shunt_poison_look(to, from, 4);
	return pair_4(to, from, to, from);
}

bool shunt_copy_8(void *to, const void *from)
{
	shunt_poison_look(to, from, 8);
	return pair_8(to, from, to, from);
}

/*
 * x86 orders plain stores, but these may become visible after a later plain store, such as the one that announces the
 * bytes. The fence puts them before it. The reader needs nothing for it.
 */
bool shunt_copy_past(void *to, const void *from, size_t bytes)
{
	bool whole;

	shunt_poison_look(to, from, bytes);
	whole = bytes <= LINE ? few(to, from, bytes) : lines(to, from, bytes, line, line_past);
	settle_past();
	return whole;
}

bool shunt_copy_string(void *to, const void *from, size_t bytes)
{
	shunt_poison_look(to, from, bytes);
	return string(to, from, bytes);
}

#else

bool shunt_copy_lands(void *context)
{
	(void)context;
	return false;
}

bool shunt_copy_narrow(void *to, const void *from, size_t bytes)
{
	return shunt_copy_plain(to, from, bytes);
}

bool shunt_copy_plain(void *to, const void *from, size_t bytes)
{
	memcpy(to, from, bytes);
	return true;
}

bool shunt_copy_4(void *to, const void *from)
{
	return shunt_copy_plain(to, from, 4);
}

bool shunt_copy_8(void *to, const void *from)
{
	return shunt_copy_plain(to, from, 8);
}

bool shunt_copy_past(void *to, const void *from, size_t bytes)
{
	return shunt_copy_plain(to, from, bytes);
}

bool shunt_copy_string(void *to, const void *from, size_t bytes)
{
	return shunt_copy_plain(to, from, bytes);
}

#endif
