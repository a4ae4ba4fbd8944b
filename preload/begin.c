/* SPDX-License-Identifier: MIT */
/* The constructor, and what the first use of the process, its settings and its engine makes. */
#include <stdlib.h>
#include <sys/syscall.h>
#include "core/base/program.h"
#include "preload/gate.h"
#include "preload/go/go.h"
#include "preload/process.h"

static void end(int status, void *unused)
{
	(void)status;
	(void)unused;
	shunt_process_finish();
}

/* epoll_pwait() without time is the runtime's last look before its thread sleeps: netpoll(0), then netpoll(-1). */
static long call_of_go(long number, long a, long b, long c, long d, long e, long f)
{
	long result;

	if (number != SYS_epoll_pwait || (int)d)
		return shunt_syscall_of_program(number, a, b, c, d, e, f);
	shunt_thread_sleeps_next(true);
	result = shunt_syscall_of_program(number, a, b, c, d, e, f);
	shunt_thread_sleeps_next(false);
	return result;
}

/* The last, because calls of the program may come as soon as its code has been replaced. */
static void begin_go(void)
{
	static const struct shunt_go_host host = { call_of_go, shunt_process_shared };
	const struct shunt_config *config;

	if (!shunt_go_is_program())
		return;
	config = shunt_process_config();
	if (config)
		shunt_go_begin(&host, config->go == SHUNT_GO_AUTO);
}

/*
 * Nothing happens here but the look-ups, and a Go program's code is changed. Most programs never open a TCP socket, and
 * for them Shunt shall cost nothing to speak of.
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
	begin_go();
}
