/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
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

static bool queue(int number, const siginfo_t *info)
{
	return !syscall(SYS_rt_tgsigqueueinfo, getpid(), (pid_t)syscall(SYS_gettid), number, info);
}

static bool is_pending(int number)
{
	uint64_t set = 0;

	return !syscall(SYS_rt_sigpending, &set, sizeof(set)) && set & BIT(number);
}

static bool take(int number, siginfo_t *info)
{
	uint64_t set = BIT(number);
	struct timespec none = { 0, 0 };

	return syscall(SYS_rt_sigtimedwait, &set, info, &none, sizeof(set)) == number;
}

/* Before others of a number that queues: those go behind it, up to a mark that was put behind them. */
static bool queue_first(int number, const siginfo_t *info)
{
	siginfo_t mark = { .si_signo = number, .si_code = SI_QUEUE }, next;
	bool queued;

	if (number < __SIGRTMIN || !is_pending(number))
		return queue(number, info);
	mark.si_value.sival_ptr = &mark;
	if (!queue(number, &mark))
		return false;
	queued = queue(number, info);
	while (take(number, &next) && (next.si_code != SI_QUEUE || next.si_value.sival_ptr != &mark))
		queue(number, &next);
	return queued;
}

bool shunt_signal_defer_put_off(int number, siginfo_t *info, void *context, uint32_t kind)
{
	siginfo_t nothing = { .si_signo = number, .si_code = SI_QUEUE };
	ucontext_t *back = context;
	int saved = errno;
	bool queued;

	if (is_own(number) && !shunt_signal_defer.waits)
		return false;
	change_mask(SIG_BLOCK, BIT(number));	/* it is not with SA_NODEFER */
	queued = queue_first(number, info ? info : &nothing);
	if (queued) {
		if (sigismember(&back->uc_sigmask, number))	/* outside its wait the thread blocks it */
			shunt_signal_defer.masked |= BIT(number);
		else
			shunt_signal_defer.blocked |= BIT(number);
		sigaddset(&back->uc_sigmask, number);
		shunt_signal_defer.late |= kind;
	}
	errno = saved;
	return queued;
}

/* All that is known of them is forgotten first: the handlers may make calls, and never return. */
void shunt_signal_defer_catch_up(const sigset_t *mask)
{
	uint64_t blocked = shunt_signal_defer.blocked, masked = shunt_signal_defer.masked;
	struct timespec none = { 0, 0 };
	int saved = errno;

	shunt_signal_defer.blocked = shunt_signal_defer.masked = 0;
	shunt_signal_defer.late = 0;
	change_mask(SIG_UNBLOCK, blocked);
	if (masked && mask)	/* handlers run under the wait's mask */
		syscall(SYS_ppoll, NULL, 0, &none, mask, sizeof(masked));
	errno = saved;
}

void shunt_signal_defer_end(void)
{
	shunt_signal_defer.depth = 0;
	if (shunt_signal_defer.late)
		shunt_signal_defer_catch_up(NULL);
}
