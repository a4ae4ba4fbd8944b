/* SPDX-License-Identifier: MIT */
/*
 * Calls that make a child which may run on our memory (process.c).
 *
 * - A child of vfork shares our memory but not our descriptors. It is recognised by its process id, and what it does
 *   is not written down. So is a child of a clone that runs no handlers. The id is not asked for with each call. The
 *   kernel clears a page in the child of a fork (MADV_WIPEONFORK), and a word in it says that nobody else can be
 *   running on this memory. The calls vfork and clone, and their numbers in syscall, clear it first
 *   (preload/foreign.c, preload/process.c). A program that makes such a child by an instruction of its own, and calls
 *   libc in it, would be taken for its parent.
 */
#include <sched.h>
#include "preload/process.h"

/* It returns twice, so that nothing of ours may stand between it and its caller: it is left by a jump. */
#ifndef __clang__
__attribute__((optimize("O2")))
#endif
pid_t vfork(void)
{
	shunt_process_shared();
	return real(vfork)();
}
SHUNT_SAME(__vfork, vfork);

struct child {
	int (*run)(void *);
	void *arg;
	struct shunt_engine *engine;	/* prepared for the fork, or NULL */
};

/* On a copy of its parent's memory, where the words still lie. */
static int run_forked(void *arg)
{
	struct child child = *(struct child *)arg;

	shunt_process_forked(child.engine);
	return child.run(child.arg);
}

static int clone_forked(struct child *child, void *stack, int flags, pid_t *parent_tid, void *tls,
			pid_t *child_tid)
{
	int pid;

	child->engine = shunt_process_prepare_fork();
	pid = real(clone)(run_forked, stack, flags, child, parent_tid, tls, child_tid);
	shunt_process_parted(child->engine);
	return pid;
}

/* The arguments that the flags do not ask for are passed on as they are, as libc does. */
int clone(int (*run)(void *), void *stack, int flags, void *arg, ...)
{
	pid_t *parent_tid, *child_tid;
	struct child child = { .run = run, .arg = arg };
	va_list rest;
	void *tls;

	va_start(rest, arg);
	parent_tid = va_arg(rest, pid_t *);
	tls = va_arg(rest, void *);
	child_tid = va_arg(rest, pid_t *);
	va_end(rest);
	if (flags & CLONE_VM && !(flags & CLONE_THREAD))
		shunt_process_shared();
	if (run && stack && !(flags & (CLONE_VM | CLONE_FILES)))
		return clone_forked(&child, stack, flags, parent_tid, tls, child_tid);
	return real(clone)(run, stack, flags, arg, parent_tid, tls, child_tid);
}
SHUNT_SAME(__clone, clone);
