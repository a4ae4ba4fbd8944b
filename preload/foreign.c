/*
 * Whose memory this is. A child of vfork(), or of a clone() that shares memory, has its parent's: only its process id
 * says so, and asking for that costs a system call. A word saves the question: it is set while nobody but this process
 * has ever been able to run on this memory. It is cleared before such a child is made, and by the kernel in the child of
 * a fork, where the handlers of fork.c set it anew, if there are any.
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

/* The arguments that the flags do not ask for are passed on as they are, as libc does. */
int clone(int (*run)(void *), void *stack, int flags, void *arg, ...)
{
	pid_t *parent_tid, *child_tid;
	va_list rest;
	void *tls;

	va_start(rest, arg);
	parent_tid = va_arg(rest, pid_t *);
	tls = va_arg(rest, void *);
	child_tid = va_arg(rest, pid_t *);
	va_end(rest);
	if (flags & CLONE_VM && !(flags & CLONE_THREAD))
		shunt_process_shared();
	return real(clone)(run, stack, flags, arg, parent_tid, tls, child_tid);
}
SHUNT_SAME(__clone, clone);
