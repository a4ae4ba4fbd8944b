/* SPDX-License-Identifier: MIT */
/*
 * To be preloaded beside counted.so, which is the library compiled with -fsanitize=thread. The compiler calls the
 * functions below at each access to memory and at each atomic instruction. They stand in for ThreadSanitizer's own,
 * and note by thread which cache lines it has read and written, in how many calls of each kind.
 *
 * A thread writes to its own table only, so nothing here waits. Not seen: what memcpy(3) and the kernel touch, and what a
 * thread touches of its own stack. Bytes of messages are copied so, and no second thread of the process touches them.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/bench/lines.h"

#define THREADS 40
#define LINES 8192	/* places in a thread's table, a power of two */
#define SITES 4096	/* the same */
#define LINE_BITS 6
#define STACK 32768	/* bytes above a frame that are the thread's own */

enum { READ, WRITE, WAYS };

struct line {
	uintptr_t number;	/* address >> LINE_BITS; 0: the place is free */
	uint32_t last[WAYS];	/* number of the call that did so last */
	uint32_t calls[WAYS][LINES_KINDS];	/* how many calls of each kind have; accesses for LINES_OTHER */
	uintptr_t site[WAYS];	/* code that did so first */
};

struct site {	/* an atomic read-modify-write, or a function that is entered */
	uintptr_t code;	/* 0: the place is free */
	uintptr_t word;	/* its address; 0: a function */
	uint32_t last;	/* number of the call in which it happened last */
	uint32_t calls[LINES_KINDS];	/* calls in which it happened */
	uint32_t times[LINES_KINDS];
	uint32_t failed[LINES_KINDS];	/* compare-exchanges that found another value */
};

static struct thread {
	uint32_t call;
	enum lines_kind kind;
	uint32_t calls[LINES_KINDS];
	struct line lines[LINES];
	struct site sites[SITES];
} threads[THREADS];

static _Atomic bool counting;
static _Atomic uint32_t joined, lost;
static __thread uint32_t mine;	/* index of the thread's table + 1 */

/* The thread's table; NULL: nothing is noted now. */
static struct thread *table(void)
{
	if (!atomic_load_explicit(&counting, memory_order_relaxed))
		return NULL;
	if (!mine)
		mine = atomic_fetch_add(&joined, 1) + 1;
	if (mine <= THREADS)
		return &threads[mine - 1];
	atomic_fetch_add(&lost, 1);
	return NULL;
}

static uint32_t scatter(uintptr_t key)
{
	return (uint32_t)((key * 0x9e3779b97f4a7c15ull) >> 40);
}

static void note_line(struct thread *thread, uintptr_t number, int way, uintptr_t code)
{
	uint32_t at = scatter(number) % LINES;
	struct line *line;
	int tries = 0;

	while ((line = &thread->lines[at])->number != number && line->number) {
		at = (at + 1) % LINES;
		if (++tries == LINES / 2) {
			atomic_fetch_add(&lost, 1);
			return;
		}
	}
	line->number = number;
	if (!line->site[way])
		line->site[way] = code;
	if (thread->kind != LINES_OTHER && line->last[way] == thread->call)
		return;
	line->last[way] = thread->call;
	line->calls[way][thread->kind]++;
}

/* The same lines serve one call after another there. */
static bool is_own_stack(uintptr_t at)
{
	return at - (uintptr_t)__builtin_frame_address(0) < STACK;
}

static void note(const volatile void *address, size_t bytes, int way, void *code)
{
	struct thread *thread = table();
	uintptr_t at = (uintptr_t)address;

	if (!thread || !bytes || is_own_stack(at))
		return;
	for (uintptr_t n = at >> LINE_BITS; n <= (at + bytes - 1) >> LINE_BITS; n++)
		note_line(thread, n, way, (uintptr_t)code);
}

static void note_site(uintptr_t word, bool success, void *code)
{
	struct thread *thread = table();
	uintptr_t key = (uintptr_t)code;
	struct site *site;
	uint32_t at = scatter(key ^ word << 7) % SITES;
	int tries = 0;

	if (!thread)
		return;
	while ((site = &thread->sites[at])->code && (site->code != key || site->word != word)) {
		at = (at + 1) % SITES;
		if (++tries == SITES / 2) {
			atomic_fetch_add(&lost, 1);
			return;
		}
	}
	site->code = key;
	site->word = word;
	site->times[thread->kind]++;
	site->failed[thread->kind] += !success;
	if (thread->kind != LINES_OTHER && site->last == thread->call)
		return;
	site->last = thread->call;
	site->calls[thread->kind]++;
}

static void note_atomic(const volatile void *address, size_t bytes, bool success, void *code)
{
	note(address, bytes, WRITE, code);
	note_site((uintptr_t)address, success, code);
}

/* --- the window --- */

void lines_begin(void)
{
	atomic_store(&counting, true);
}

void lines_end(void)
{
	atomic_store(&counting, false);
}

void lines_call(enum lines_kind kind)
{
	struct thread *thread = table();

	if (!thread)
		return;
	thread->call++;
	thread->kind = kind;
	thread->calls[kind]++;
}

static void write_counts(FILE *file, const uint32_t counts[LINES_KINDS])
{
	for (int i = 0; i < LINES_KINDS; i++)
		fprintf(file, " %u", counts[i]);
}

/* Offset within its object, for addr2line(1). */
static uintptr_t offset(uintptr_t code)
{
	Dl_info info;

	return code && dladdr((void *)code, &info) ? code - (uintptr_t)info.dli_fbase : 0;
}

static void write_thread(FILE *file, uint32_t number, const struct thread *thread)
{
	fprintf(file, "thread %u", number);
	write_counts(file, thread->calls);
	for (const struct line *line = thread->lines; line < thread->lines + LINES; line++) {
		if (!line->number)
			continue;
		fprintf(file, "\nline %u %lx", number, line->number << LINE_BITS);
		write_counts(file, line->calls[READ]);
		write_counts(file, line->calls[WRITE]);
		fprintf(file, " %lx %lx", offset(line->site[READ]), offset(line->site[WRITE]));
	}
	for (const struct site *site = thread->sites; site < thread->sites + SITES; site++) {
		if (!site->code)
			continue;
		fprintf(file, "\nsite %u %lx %lx", number, offset(site->code), site->word);
		write_counts(file, site->calls);
		write_counts(file, site->times);
		write_counts(file, site->failed);
	}
	fprintf(file, "\n");
}

void lines_write(const char *path)
{
	FILE *file = fopen(path, "w");
	uint32_t count = atomic_load(&joined);

	if (!file) {
		perror(path);
		exit(1);
	}
	fprintf(file, "lost %u\n", atomic_load(&lost));
	for (uint32_t i = 0; i < count && i < THREADS; i++)
		write_thread(file, i, &threads[i]);
	fclose(file);
}

/* --- the compiler's calls --- */

#define CODE __builtin_return_address(0)

/* One declaration each, as nothing else calls them. */
#define ACCESS(bytes)                                                                              \
	void __tsan_read##bytes(void *at);                                                         \
	void __tsan_write##bytes(void *at);                                                        \
	void __tsan_unaligned_read##bytes(void *at);                                               \
	void __tsan_unaligned_write##bytes(void *at);                                              \
	void __tsan_read##bytes(void *at)                                                          \
	{                                                                                          \
		note(at, bytes, READ, CODE);                                                       \
	}                                                                                          \
	void __tsan_write##bytes(void *at)                                                         \
	{                                                                                          \
		note(at, bytes, WRITE, CODE);                                                      \
	}                                                                                          \
	void __tsan_unaligned_read##bytes(void *at)                                                \
	{                                                                                          \
		note(at, bytes, READ, CODE);                                                       \
	}                                                                                          \
	void __tsan_unaligned_write##bytes(void *at)                                               \
	{                                                                                          \
		note(at, bytes, WRITE, CODE);                                                      \
	}

ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)

void __tsan_init(void);
void __tsan_func_entry(void *caller);
void __tsan_func_exit(void *unused);
void __tsan_read_range(void *at, size_t bytes);
void __tsan_write_range(void *at, size_t bytes);
void *__tsan_memcpy(void *to, const void *from, size_t bytes);
void *__tsan_memmove(void *to, const void *from, size_t bytes);
void *__tsan_memset(void *to, int value, size_t bytes);
void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_signal_fence(int order);

void __tsan_init(void)
{
}

void __tsan_func_entry(void *caller)
{
	(void)caller;
	note_site(0, true, CODE);
}

void __tsan_func_exit(void *unused)
{
	(void)unused;
}

void __tsan_read_range(void *at, size_t bytes)
{
	note(at, bytes, READ, CODE);
}

void __tsan_write_range(void *at, size_t bytes)
{
	note(at, bytes, WRITE, CODE);
}

void *__tsan_memcpy(void *to, const void *from, size_t bytes)
{
	return memcpy(to, from, bytes);
}

void *__tsan_memmove(void *to, const void *from, size_t bytes)
{
	return memmove(to, from, bytes);
}

void *__tsan_memset(void *to, int value, size_t bytes)
{
	return memset(to, value, bytes);
}

void __tsan_atomic_thread_fence(int order)
{
	(void)order;
	atomic_thread_fence(memory_order_seq_cst);
}

void __tsan_atomic_signal_fence(int order)
{
	(void)order;
	atomic_signal_fence(memory_order_seq_cst);
}

/* The strongest order is right for each. */
#define MODIFY(bits, name, builtin)                                                                \
	uint##bits##_t __tsan_atomic##bits##_##name(volatile uint##bits##_t *at,                   \
						    uint##bits##_t value, int order);              \
	uint##bits##_t __tsan_atomic##bits##_##name(volatile uint##bits##_t *at,                   \
						    uint##bits##_t value, int order)               \
	{                                                                                          \
		(void)order;                                                                       \
		note_atomic(at, bits / 8, true, CODE);                                             \
		return builtin(at, value, __ATOMIC_SEQ_CST);                                       \
	}

#define COMPARE(bits, name)                                                                        \
	int __tsan_atomic##bits##_##name(volatile uint##bits##_t *at, uint##bits##_t *expected,    \
					 uint##bits##_t value, int order, int otherwise);          \
	int __tsan_atomic##bits##_##name(volatile uint##bits##_t *at, uint##bits##_t *expected,    \
					 uint##bits##_t value, int order, int otherwise)           \
	{                                                                                          \
		bool done = __atomic_compare_exchange_n(at, expected, value, false,                \
							__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);       \
                                                                                                   \
		(void)order;                                                                       \
		(void)otherwise;                                                                   \
		note_atomic(at, bits / 8, done, CODE);                                             \
		return done;                                                                       \
	}

#define ATOMIC(bits)                                                                               \
	uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t *at, int order);   \
	void __tsan_atomic##bits##_store(volatile uint##bits##_t *at, uint##bits##_t value,        \
					 int order);                                               \
	uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t *at, int order)    \
	{                                                                                          \
		(void)order;                                                                       \
		note(at, bits / 8, READ, CODE);                                                    \
		return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                      \
	}                                                                                          \
	void __tsan_atomic##bits##_store(volatile uint##bits##_t *at, uint##bits##_t value,        \
					 int order)                                                \
	{                                                                                          \
		(void)order;                                                                       \
		note(at, bits / 8, WRITE, CODE);                                                   \
		__atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                     \
	}                                                                                          \
	MODIFY(bits, exchange, __atomic_exchange_n)                                                \
	MODIFY(bits, fetch_add, __atomic_fetch_add)                                                \
	MODIFY(bits, fetch_sub, __atomic_fetch_sub)                                                \
	MODIFY(bits, fetch_and, __atomic_fetch_and)                                                \
	MODIFY(bits, fetch_or, __atomic_fetch_or)                                                  \
	MODIFY(bits, fetch_xor, __atomic_fetch_xor)                                                \
	COMPARE(bits, compare_exchange_strong)                                                     \
	COMPARE(bits, compare_exchange_weak)

ATOMIC(8)
ATOMIC(16)
ATOMIC(32)
ATOMIC(64)
