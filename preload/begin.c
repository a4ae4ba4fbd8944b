/* SPDX-License-Identifier: MIT */
/* The constructor, and what the first use of the process, its settings and its engine makes. */
#include <stdlib.h>
#include "core/base/program.h"
#include "preload/gate.h"
#include "preload/inherit.h"
#include "preload/go/go.h"
#include "preload/process.h"

/* libc would write what stdio still has when the connections have ended. It does not wait for a thread that writes, either. */
static void flush(FILE *file, int fd)
{
	if (!shunt_as_stream(shunt_lookup(fd)) || ftrylockfile(file))
		return;
	fflush_unlocked(file);
	funlockfile(file);
}

static void end(int status, void *unused)
{
	(void)status;
	(void)unused;
	flush(stdout, STDOUT_FILENO);
	flush(stderr, STDERR_FILENO);
	shunt_process_finish();
}

/* The last, because calls of the program may come as soon as its code has been replaced. */
static void begin_go(void)
{
	static const struct shunt_go_host host = { shunt_syscall_of_program, shunt_process_shared,
						    shunt_thread_sleeps_next };
	const struct shunt_config *config;

	if (!shunt_go_is_program())
		return;
	config = shunt_process_config();
	if (config)
		shunt_go_begin(&host, config->go == SHUNT_GO_AUTO);
}

/*
 * Nothing happens here but the look-ups, one for inherited connections among them, and a Go program's code is changed.
 * Most programs never open a TCP socket, and for them Shunt shall cost nothing to speak of.
 *
 * Destructors of libraries and handlers of the program may use connections, so the engine ends after them. exit() calls
 * handlers in reverse order. The dynamic linker's, which runs all destructors, is registered after constructors like
 * this one have run. A destructor of ours, or atexit(), would run before other libraries' destructors.
 * If a registration fails, peers learn of the end from the kernel.
 */
__attribute__((constructor)) static void begin(void)
{
	shunt_calls_resolve();
	shunt_calls_find_clock();
	shunt_memory_resolve();
	shunt_program_note(program_invocation_short_name);
	shunt_process_begin();
	shunt_process_atfork();
	(void)on_exit(end, NULL);
	(void)at_quick_exit(shunt_process_finish);
	shunt_gate_begin();
	shunt_inherit_begin();
	begin_go();
}
