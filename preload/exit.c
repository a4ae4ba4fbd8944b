/* SPDX-License-Identifier: MIT */
/*
 * The kernel sends what is in a socket after its process is gone. For streams that left the kernel
 * the engine must do it before: at exit() and quick_exit(), behind all handlers (process.c), and here.
 * A child of vfork() that could not exec comes here as well, and ends nothing.
 *
 * - A process that exits sends what is staged and then the FINs. It waits for both, and for other threads that are
 *   posting, up to 5 seconds in all. That comes after handlers of the program and destructors of libraries, which may
 *   use connections. The constructor registers it before libc registers the dynamic linker's handler
 *   (preload/begin.c). The call exit flushes stdio after the handlers, so streams of fopencookie find the connections
 *   ended.
 * - If two threads call _exit(), the process has the status of the first. The second waits for the end.
 */
#include <pthread.h>
#include <unistd.h>
#include "preload/process.h"

/* A handler that ends the process while its thread does so goes on. No system call: a filter may allow none but exit. */
static void be_first(void)
{
	pthread_t self = pthread_self(), first = 0;

	if (atomic_compare_exchange_strong(&shunt_process.leaver, &first, self) || first == self)
		return;
	while (!shunt_process_confined())
		pause();
}

void _exit(int status)
{
	if (shunt_process.engine && !shunt_process_foreign()) {
		be_first();
		shunt_process_finish();
	}
	real(_exit)(status);
	__builtin_unreachable();
}

void _Exit(int status)
{
	_exit(status);
}
