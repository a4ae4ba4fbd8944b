#include <errno.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include "core/base/signal_defer.h"

#define BIT(number) (1ull << ((number) - 1))

__thread struct shunt_inside shunt_inside;

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

bool shunt_inside_put_off(int number, siginfo_t *info, void *context)
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
		shunt_inside.blocked |= BIT(number);
		shunt_inside.late = 1;
	}
	errno = saved;
	return queued;
}

void shunt_inside_catch_up(void)
{
	uint64_t set = shunt_inside.blocked;
	int saved = errno;

	shunt_inside.blocked = 0;
	shunt_inside.late = 0;
	change_mask(SIG_UNBLOCK, set);
	errno = saved;
}
