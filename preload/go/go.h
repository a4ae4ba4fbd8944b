/* SPDX-License-Identifier: MIT */
/*
 * Go programs make their system calls themselves. Before Go's first instruction the SYSCALL instructions that core/go
 * finds are replaced by jumps, and from then on those calls come here. All of them do, or none. A program that is not
 * known stays as it is, on TCP, and the log says why.
 *
 * - The instruction is replaced, not its function. The registers are the kernel's there, whatever Go's calling
 *   convention is. Nothing is written to Go's stack, and nothing of Go's (g, m) is touched.
 * - A site jumps to its trampoline in a page near the program. That does what the instruction before SYSCALL did, and
 *   goes to entry.c. There C is called on a stack of the thread's own, or it goes back to a SYSCALL in the trampoline.
 * - Every thread of Go is a thread of libc (runtime/cgo), so it has thread-local memory, where its stack is noted.
 * - A signal handler of Go's may come while the thread is in C. Its own calls take the SYSCALL of the trampoline. They
 *   concern the runtime's pipe, standard error and signals, and no connection.
 * - Memory that is writable and executable at once is not needed where /proc/self/mem may be written.
 */
#ifndef SHUNT_PRELOAD_GO_GO_H
#define SHUNT_PRELOAD_GO_GO_H

#include <stdbool.h>
#include <stdint.h>
#include "core/go/sites.h"

/* The part of preload/ in it. */
struct shunt_go_host {
	/* A system call by its number: -1 and errno where it fails, like syscall(2). */
	long (*call)(long number, long a, long b, long c, long d, long e, long f);
	/* A child that shares this memory is about to be made. */
	void (*shares)(void);
	/* Whether this thread's next wait without time is its last look before it sleeps. */
	void (*sleeps_next)(bool next);
};

/* Is the program of this process one of Go? Other programs pay for a look at their headers. */
bool shunt_go_is_program(void);
/* Logs what becomes of it. When the library is loaded. `wanted`: false with SHUNT_TUNE=go=off. */
void shunt_go_begin(const struct shunt_go_host *host, bool wanted);

/* patch.c: replaces the instructions. False, with the reason: nothing has been replaced, or every call goes to the kernel. */
bool shunt_go_patch(const struct shunt_go_sites *sites, const struct shunt_go_image *image,
		    const char **why);

/* entry.c: threads that enter get a stack. False: there is no key for its end. */
bool shunt_go_entry_begin(const struct shunt_go_host *host);
/* Where trampolines jump: rcx has the address of their SYSCALL; all other registers are as SYSCALL takes them. */
void shunt_go_enter(void);
void shunt_go_enter_vfork(void);
/* To the SYSCALL of the trampoline. */
void shunt_go_pass(void);
/* Of the word that says that the thread is in C: from the thread's pointer (FS). */
int32_t shunt_go_busy_offset(void);

#endif
