/* SPDX-License-Identifier: MIT */
/*
 * Does this memory belong to this process alone? A child of vfork(), or of a clone() that shares memory, runs on its
 * parent's memory. Only its process id tells, which costs a system call. A word saves the question: it is set while
 * nobody but this process has ever been able to run on this memory. It is cleared before such a child is made.
 * MADV_WIPEONFORK clears it in the child of a fork, where the handlers of fork.c, if installed, set it anew.
 */
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>
#include "preload/process.h"

static _Atomic int never;
static _Atomic int *alone = &never;	/* without such a page every question goes to the kernel */

void shunt_process_ours(void)
{
	shunt_process.pid = getpid();
	if (alone != &never)
		atomic_store(alone, 1);
}

void shunt_process_begin(void)
{
	void *page = mmap(NULL, sizeof(*alone), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page != MAP_FAILED && !madvise(page, sizeof(*alone), MADV_WIPEONFORK))
		alone = page;
	else if (page != MAP_FAILED)
		munmap(page, sizeof(*alone));
	shunt_process_ours();
}

void shunt_process_shared(void)
{
	atomic_store(alone, 0);
}

bool shunt_process_foreign(void)
{
	return unlikely(!atomic_load(alone)) && shunt_process.pid && shunt_process.pid != getpid();
}

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
