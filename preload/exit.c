/* SPDX-License-Identifier: MIT */
/*
 * The kernel sends what is in a socket after its process is gone. For streams that left the kernel
 * the engine must do it before: at exit() and quick_exit(), behind all handlers (process.c), and here.
 * A child of vfork() that could not exec comes here as well, and ends nothing.
 */
#include <unistd.h>
#include "preload/process.h"

void _exit(int status)
{
	if (shunt_process.engine)
		shunt_process_finish();
	real(_exit)(status);
	__builtin_unreachable();
}

void _Exit(int status)
{
	_exit(status);
}
