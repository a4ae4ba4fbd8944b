/* SPDX-License-Identifier: MIT */
/*
 * fork() needs no wrapper: pthread_atfork() sees every one, also those inside libc (daemon(), forkpty()). Our
 * handlers are the process' first, so they run closest to the fork itself. The prepare handler runs after all others
 * (malloc's lock may be held by then), the child handler before them.
 *
 * - A signal's handler that forks may return into a call in the child, too. The sleep that it interrupted is the
 *   parent's: the child leaves nothing of it behind (shunt_group_sleeps).
 * - _Fork() runs no handlers: its child closes our descriptors, too, and for it every other one is the kernel's for
 *   ever. The same goes for some children of clone() or of a system call by number (fork, clone, clone3). Such a
 *   child copies memory and descriptors, runs on its parent's stack or a function of its own, and runs no handlers.
 */
#include <pthread.h>
#include "core/fd/uring_file.h"
#include "preload/process.h"
#include "preload/uring.h"

/* An engine may appear in another thread between prepare and the fork. */
static __thread bool prepared __attribute__((tls_model("initial-exec")));

static void fork_prepare(void)
{
	prepared = shunt_process_has_engine();
	if (prepared)
		shunt_engine_fork_prepare(shunt_process.engine);
}

static void parent(void)
{
	if (prepared)
		shunt_engine_fork_parent(shunt_process.engine);
	if (shunt_uring_watching())
		shunt_uring_file_share(shunt_process.files);
}

static void child(void)
{
	shunt_process_ours();
	shunt_lock_free(&shunt_process.limits_lock);
	shunt_process.anew = false;	/* who listens is the parent; a child that accepts joins it */
	if (prepared)
		shunt_engine_fork_child(shunt_process.engine);
	else
		shunt_process_forget(true);
}

void shunt_process_atfork(void)
{
	pthread_atfork(fork_prepare, parent, child);
}

struct shunt_engine *shunt_process_prepare_fork(void)
{
	bool ours = shunt_process_has_engine() && !shunt_process_foreign();
	struct shunt_engine *engine = ours ? shunt_process.engine : NULL;

	if (engine)
		shunt_engine_clone_prepare(engine);
	return engine;
}

void shunt_process_parted(struct shunt_engine *engine)
{
	if (engine)
		shunt_engine_clone_parent(engine);
}

void shunt_process_forked(struct shunt_engine *engine)
{
	shunt_process_ours();
	shunt_lock_free(&shunt_process.limits_lock);
	shunt_process_forget(false);
	if (engine)
		shunt_signal_defer_leave();	/* as shunt_engine_clone_parent() in the parent */
}

/*
 * The fork without handlers, for use in signal handlers: no lock may be taken, and those that
 * other threads hold stay locked in the child. The engine cannot go on there.
 */
pid_t _Fork(void)
{
	pid_t pid = real(_Fork)();

	if (pid == 0)
		shunt_process_forked(NULL);
	return pid;
}
