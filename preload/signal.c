/* SPDX-License-Identifier: MIT */
/*
 * A handler must end a wait that polls in user space, as it would end a system call. It may never return, so it must find
 * nothing of the wait held. So the kernel is given one of our two handlers. It tells the waiting thread, and calls the
 * program's where the thread is in no call of ours. SA_RESTART selects which of the two. The kernel keeps all flags as
 * the program gave them, so we keep only the handler, one word for each signal. Therefore no lock is needed, and all of
 * this may be used in a handler.
 *
 * Once ours is installed the word is never empty again. A signal under way while the program goes back to SIG_DFL
 * still finds the handler it was sent to.
 *
 * Handlers installed inside libc or by raw system calls are not seen.
 *
 * SIGSEGV and SIGBUS are seen first by us: a fault in a copy of ours goes on there (core/base/copy.h) and ends as EFAULT.
 * The program's handler, or the default action, has every other one. Where the program has no handler the kernel has
 * faults() from the engine's beginning on, and the program reads SIG_DFL. If the thread blocks the signal, or the process
 * ignores it, the kernel kills without asking a handler. Only a system call for each copy could prevent that.
 */
#include <sys/syscall.h>
#include "core/base/copy.h"
#include "core/base/signal_defer.h"
#include "core/fd/thread.h"
#include "core/wait/epwait.h"
#include "preload/gate.h"
#include "preload/process.h"

#define SIGNALS 65

typedef void handler_call(int number, siginfo_t *info, void *context);

static _Atomic(handler_call *) handlers[SIGNALS];
/* siginterrupt(): which signals signal() shall install without SA_RESTART. */
static _Atomic uint64_t interrupting;
/* Faults: what the kernel has in sa_flags and the program has not asked for. */
static _Atomic int added[SIGNALS];
/* faults() stands in for SIG_DFL. */
static _Atomic bool watching;

static bool is_fault(int number)
{
	return number == SIGSEGV || number == SIGBUS;
}

/* The kernel has gone back to SIG_DFL (SA_RESETHAND), and the program's handler has not run. */
static void install_again(int number, struct sigaction *now, handler_call *ours)
{
	if (now->sa_flags & (int)SA_RESETHAND && now->sa_handler == SIG_DFL) {
		now->sa_sigaction = ours;
		real(sigaction)(number, now, NULL);
	}
}

/* The fault was in a copy of ours, which goes on. Also with si_code 0, where a library has sent the signal again. */
static bool lands(int number, void *context, handler_call *ours)
{
	struct sigaction now;
	int saved = errno;

	if (!shunt_copy_lands(context))
		return false;
	if (!real(sigaction)(number, NULL, &now))
		install_again(number, &now, ours);
	errno = saved;
	return true;
}

/* The thread is in a call of ours, so the handler runs at its end (core/base/signal_defer.h). */
static bool put_off(int number, siginfo_t *info, void *context, bool restart, handler_call *ours)
{
	struct sigaction now;

	/* Without SA_SIGINFO the kernel fills nothing in. */
	if (real(sigaction)(number, NULL, &now) ||
	    !shunt_signal_defer_put_off(number, now.sa_flags & SA_SIGINFO ? info : NULL, context,
					restart ? SHUNT_SIGNAL_RESTARTS : SHUNT_SIGNAL_BREAKS))
		return false;
	install_again(number, &now, ours);
	return true;
}

static inline void go_on(int number, siginfo_t *info, void *context, bool restart, handler_call *ours)
{
	struct shunt_thread before;
	struct shunt_plain_wait wait;
	uintptr_t mark;

	if (unlikely(is_fault(number)) && lands(number, context, ours))
		return;
	if (shunt_signal_defer.depth) {
		shunt_thread_signalled(restart);
		if (put_off(number, info, context, restart, ours))
			return;
	}
	mark = shunt_gate_mark;
	shunt_gate_mark = 0;	/* of a real call that the handler interrupts: its own calls are others */
	before = shunt_thread_interrupt();
	wait = shunt_epwait_interrupt();
	/* A handler without SA_SIGINFO takes the first argument and leaves the others, as ours does. */
	atomic_load_explicit(&handlers[number], memory_order_acquire)(number, info, context);
	shunt_epwait_resume(&wait);
	shunt_thread_resume(&before);
	shunt_gate_mark = mark;
}

static void breaks(int number, siginfo_t *info, void *context)
{
	go_on(number, info, context, false, breaks);
}

static void restarts(int number, siginfo_t *info, void *context)
{
	go_on(number, info, context, true, restarts);
}

/*
 * Stands in for SIG_DFL. An instruction that faults does so again after the return, and any other signal is sent again.
 * Then the kernel does what it does by default, and a core dump shows the place.
 */
static void faults(int number, siginfo_t *info, void *context)
{
	struct sigaction nobody = { .sa_handler = SIG_DFL };

	if (lands(number, context, faults))
		return;
	real(sigaction)(number, &nobody, NULL);
	if (info->si_code <= 0 || (number == SIGBUS && info->si_code == BUS_MCEERR_AO))
		real(syscall)(SYS_rt_tgsigqueueinfo, getpid(), (pid_t)real(syscall)(SYS_gettid),
			      number, info);
}

static bool is_ours(const struct sigaction *action)
{
	return action->sa_sigaction == breaks || action->sa_sigaction == restarts ||
	       action->sa_sigaction == faults;
}

static bool is_handler(const struct sigaction *action)
{
	return action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN && !is_ours(action);
}

/* libc keeps the first two real-time signals for itself; two others cannot be handled. */
static bool can_handle(int number)
{
	return number > 0 && number < SIGNALS && number != SIGKILL && number != SIGSTOP &&
	       (number < __SIGRTMIN || number >= SIGRTMIN);
}

/* Translates the kernel's old action into the program's terms. */
static void translate(int number, struct sigaction *action, handler_call *handler, int flags)
{
	if (action->sa_sigaction == faults)
		action->sa_handler = SIG_DFL;
	else if (is_ours(action))
		action->sa_sigaction = handler;
	if (is_fault(number))
		action->sa_flags &= ~flags;
}

/*
 * Changes the program's action into the one that the kernel gets. A landing needs the context, which some kernels give
 * with SA_SIGINFO only.
 */
static void stand_before(int number, struct sigaction *action)
{
	if (action->sa_handler == SIG_DFL)
		action->sa_sigaction = faults;
	else
		action->sa_sigaction = action->sa_flags & SA_RESTART ? restarts : breaks;
	if (is_fault(number)) {
		atomic_store(&added[number], SA_SIGINFO & ~action->sa_flags);
		action->sa_flags |= SA_SIGINFO;
	}
}

static bool stands_in(int number, const struct sigaction *action)
{
	return is_fault(number) && action->sa_handler == SIG_DFL && atomic_load(&watching);
}

static int change(int number, const struct sigaction *action, struct sigaction *old)
{
	handler_call *before = atomic_load(&handlers[number]);
	int flags = atomic_load(&added[number]);
	struct sigaction ours;

	if (action && (is_handler(action) || stands_in(number, action))) {
		ours = *action;
		stand_before(number, &ours);
		if (is_handler(action))
			before = atomic_exchange(&handlers[number], action->sa_sigaction);
		action = &ours;
	} else if (action) {
		atomic_store(&added[number], 0);
	}
	if (real(sigaction)(number, action, old))
		return -1;
	if (old)
		translate(number, old, before, flags);
	return 0;
}

/* Also before a handler that a library has installed past us. If another thread sets one at this moment, its handler is put back. */
static void watch(int number)
{
	struct sigaction set, before;

	if (real(sigaction)(number, NULL, &set) || is_ours(&set) || set.sa_handler == SIG_IGN)
		return;
	if (!change(number, &set, &before) && before.sa_sigaction != set.sa_sigaction)
		change(number, &before, NULL);
}

void shunt_signal_watch_faults(void)
{
	atomic_store(&watching, true);
	watch(SIGSEGV);
	watch(SIGBUS);
}

/* A child of vfork() has its own handlers in the kernel, but the words here are its parent's. */
static int change_foreign(int number, const struct sigaction *action, struct sigaction *old)
{
	int result = real(sigaction)(number, action, old);

	if (!result && old)
		translate(number, old, atomic_load(&handlers[number]), atomic_load(&added[number]));
	return result;
}

int sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
	if (!can_handle(number) || !shunt_process_enabled())
		return real(sigaction)(number, action, old);
	if (action && shunt_process_foreign())
		return change_foreign(number, action, old);
	return change(number, action, old);
}
SHUNT_SAME(__sigaction, sigaction);

/* --- the older calls, all of them ways to say sigaction() --- */

static sighandler_t install(int number, sighandler_t handler, int flags, bool block_itself)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags }, old;

	if (handler == SIG_ERR || number < 1 || number >= SIGNALS) {
		errno = EINVAL;
		return SIG_ERR;
	}
	sigemptyset(&action.sa_mask);
	if (block_itself)
		sigaddset(&action.sa_mask, number);
	return sigaction(number, &action, &old) ? SIG_ERR : old.sa_handler;
}

sighandler_t signal(int number, sighandler_t handler)
{
	bool interrupt = number > 0 && number < SIGNALS &&
			 atomic_load(&interrupting) >> (number - 1) & 1;

	return install(number, handler, interrupt ? 0 : SA_RESTART, true);
}
SHUNT_SAME(bsd_signal, signal);
SHUNT_SAME(ssignal, signal);

sighandler_t sysv_signal(int number, sighandler_t handler)
{
	return install(number, handler, SA_RESETHAND | SA_NODEFER | SA_INTERRUPT, false);
}
SHUNT_SAME(__sysv_signal, sysv_signal);

/* libc changes the flag in the kernel behind our back; ours must be the one that says the same. */
int siginterrupt(int number, int interrupt)
{
	struct sigaction action;
	uint64_t bit;

	if (!can_handle(number) || sigaction(number, NULL, &action))
		return real(siginterrupt)(number, interrupt);
	bit = 1ULL << (number - 1);
	if (interrupt) {
		atomic_fetch_or(&interrupting, bit);
		action.sa_flags &= ~SA_RESTART;
	} else {
		atomic_fetch_and(&interrupting, ~bit);
		action.sa_flags |= SA_RESTART;
	}
	return sigaction(number, &action, NULL);
}

static sighandler_t signal_hold(int number, const sigset_t *set, bool *held)
{
	struct sigaction old;
	sigset_t mask;

	if (sigprocmask(SIG_BLOCK, set, &mask) || sigaction(number, NULL, &old))
		return SIG_ERR;
	*held = sigismember(&mask, number);
	return old.sa_handler;
}

sighandler_t sigset(int number, sighandler_t handler)
{
	sighandler_t before;
	sigset_t set, mask;
	bool held = false;

	sigemptyset(&set);
	if (handler == SIG_ERR || sigaddset(&set, number)) {
		errno = EINVAL;
		return SIG_ERR;
	}
	if (handler == SIG_HOLD) {
		before = signal_hold(number, &set, &held);
		return before != SIG_ERR && held ? SIG_HOLD : before;
	}
	before = install(number, handler, 0, false);
	if (before == SIG_ERR || sigprocmask(SIG_UNBLOCK, &set, &mask))
		return SIG_ERR;
	return sigismember(&mask, number) ? SIG_HOLD : before;
}
