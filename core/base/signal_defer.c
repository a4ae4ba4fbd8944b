/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include "core/base/signal_defer.h"

#define BIT(number) (1ull << ((number) - 1))

__thread struct shunt_signal_defer shunt_signal_defer;

/* Raised by what the thread does itself: it cannot go on before the handler has run, or never will. */
static bool is_own(int number)
{
	return number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL || number == SIGTRAP ||
	       number == SIGSYS || number == SIGABRT;
}

static long change_mask(int how, uint64_t set)
{
	return syscall(SYS_rt_sigprocmask, how, &set, NULL, sizeof(set));
}

bool shunt_signal_defer_put_off(int number, siginfo_t *info, void *context)
{
	siginfo_t nothing = { .si_signo = number, .si_code = SI_QUEUE };
	ucontext_t *back = context;
	int saved = errno;
	bool queued;

	if (is_own(number))
		return false;
	change_mask(SIG_BLOCK, BIT(number));	/* it is not with SA_NODEFER */
	queued = !syscall(SYS_rt_tgsigqueueinfo, getpid(), (pid_t)syscall(SYS_gettid), number,
			  info ? info : &nothing);
	if (queued) {
		sigaddset(&back->uc_sigmask, number);
		shunt_signal_defer.blocked |= BIT(number);
		shunt_signal_defer.late = 1;
	}
	errno = saved;
	return queued;
}

void shunt_signal_defer_catch_up(void)
{
	uint64_t set = shunt_signal_defer.blocked;
	int saved = errno;

	shunt_signal_defer.blocked = 0;
	shunt_signal_defer.late = 0;
	change_mask(SIG_UNBLOCK, set);
	errno = saved;
}
