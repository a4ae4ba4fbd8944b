/*
 * fork() needs no wrapper: pthread_atfork() sees every one, also those inside libc (daemon(),
 * forkpty()). Ours are the first handlers of the process, so they run closest to the fork itself:
 * prepare after everybody else's (malloc's lock may be held by then), child before everybody else's.
 */
#include <pthread.h>
#include <unistd.h>
#include "preload/process.h"

static bool has_engine(void)
{
	return shunt_process.engine && shunt_process.files->limit;
}

static void prepare(void)
{
	if (has_engine())
		shunt_engine_fork_prepare(shunt_process.engine);
}

static void parent(void)
{
	if (has_engine())
		shunt_engine_fork_parent(shunt_process.engine);
}

static void child(void)
{
	shunt_process.pid = getpid();
	shunt_process.forked = true;
	if (has_engine())
		shunt_engine_fork_child(shunt_process.engine);
}

void shunt_process_atfork(void)
{
	pthread_atfork(prepare, parent, child);
}

/*
 * The fork without handlers, for use in signal handlers: no lock may be taken, and those that
 * other threads hold stay locked in the child. The engine cannot go on there.
 */
pid_t _Fork(void)
{
	pid_t pid = real(_Fork)();

	if (pid == 0) {
		shunt_process.pid = getpid();
		shunt_process_forget();
	}
	return pid;
}
