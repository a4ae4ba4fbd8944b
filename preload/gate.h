/* SPDX-License-Identifier: MIT */
/*
 * A call is a call, whatever name led to it. Names are the fast way, and some roads go round them: dlsym() with the C
 * library's own handle, RTLD_DEEPBIND, dlmopen(), POSIX aio, stdio. All of these end at SYSCALL instructions of the C
 * library, which are replaced by jumps here if their bytes are known (gate_sites.h).
 *
 * - When: as the engine is made, at the program's first socket, if no other thread runs. A program without sockets pays
 *   nothing. With SHUNT_GATE=calls in the environment it is when the library is loaded. Another thread could be between
 *   two instructions that are replaced.
 * - A site jumps to its trampoline near the library, and that to gate_entry.c. If the call concerns no descriptor that
 *   is carried, the site's own SYSCALL is made. Otherwise the call becomes the exported one of its name, on the caller's stack.
 * - The real calls of preload/ are the library's own, by thunks that leave a mark. A site that finds it makes the system
 *   call. The mark is the stack pointer: a handler that leaves by a jump leaves a mark that does not count any more.
 * - A child on this memory, of vfork() or posix_spawn(), is known by its process id. Its calls are the kernel's.
 * - clone and its kind, exec and exit are no sites. The cancellation points of glibc 2.41
 *   and later are one function with a SYSCALL of its own shape. There the gate stays shut.
 * - It stays shut under valgrind, rr and sanitizers, too, which replace the same code or watch it.
 */
#ifndef SHUNT_PRELOAD_GATE_H
#define SHUNT_PRELOAD_GATE_H

#include <stdbool.h>
#include <stdint.h>
#include "core/base/config.h"

struct link_map;
struct shunt_calls;

/* gate_open.c: opens the gate, unless that has been tried. `alone`: only if no other thread runs. errno is kept. */
void shunt_gate_open(bool alone);
/* When the library is loaded: only with SHUNT_GATE=calls in the environment. */
void shunt_gate_begin(void);
bool shunt_gate_is_open(void);
/* The same for a name space that has just been made: it begins with this library. errno and dlerror() are kept. */
void shunt_gate_open_in(const struct link_map *first);

/* gate.c: what a system call of the program means. Registers, as the entry has pushed them. */
struct shunt_gate_frame {
	long a, b, c, d, e, f; /* rdi, rsi, rdx, r10, r8, r9 */
	long number;
	void *site;
};

/* Made without vector registers: does the call concern a descriptor that is carried? */
bool shunt_gate_wants(const struct shunt_gate_frame *frame);
/*
 * It may: makes the call, and `number` becomes the kernel's result, -errno where it fails. False: it is the kernel's after
 * all.
 */
bool shunt_gate_call(struct shunt_gate_frame *frame);

/* gate_entry.c: where trampolines jump. rcx has the address of the SYSCALL. */
void shunt_gate_enter(void);
/* gate_entry.c: the real calls lead to the thunks from here on. */
void shunt_gate_use_thunks(void);

/* gate_entry.c: the C library's own calls, without a mark. Once the gate is open. */
const struct shunt_calls *shunt_gate_behind(void);

/* The mark of a thunk that is under way: its stack pointer; 0: none. */
extern __thread uintptr_t shunt_gate_mark
	__attribute__((visibility("hidden"), tls_model("initial-exec")));

#endif
