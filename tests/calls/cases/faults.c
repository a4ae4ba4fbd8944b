/* SPDX-License-Identifier: MIT */
/*
 * Buffers that are not there, or only their beginning: the kernel's copy says EFAULT, and no signal is raised. A fault of
 * the program's own is the program's, whatever handlers it has.
 */
#include "cases.h"

#include <setjmp.h>
#include <sys/mman.h>

#define PAGE 4096

/* The middle of three pages, of which the others may not be touched. */
static char *lone(struct end *e)
{
	char *p = mmap(NULL, 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(e, p == MAP_FAILED ? -1 : 0);
	MUST(e, mprotect(p + PAGE, PAGE, PROT_READ | PROT_WRITE));
	memset(p + PAGE, 'a', PAGE);
	return p + PAGE;
}

/* Of a file, of which the first page is left. */
static char *cut_short(struct end *e)
{
	int fd = MUST(e, memfd_create("cases", MFD_CLOEXEC));
	char *p;

	MUST(e, ftruncate(fd, 4 * PAGE));
	p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	MUST(e, p == MAP_FAILED ? -1 : 0);
	memset(p, 'b', 4 * PAGE);
	MUST(e, ftruncate(fd, PAGE));
	close(fd);
	return p;
}

/* Far from where mappings come to lie by themselves. */
static char *unmapped(struct end *e)
{
	char *p = mmap((void *)0x200000000000, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(e, p == MAP_FAILED ? -1 : 0);
	MUST(e, munmap(p, PAGE));
	return p;
}

static void calls_send(struct end *e, char *p, size_t len)
{
	struct iovec v[3] = { piece("x", 1), piece("yz", 2), { .iov_base = p, .iov_len = len } };
	struct msghdr m = { .msg_iov = v, .msg_iovlen = 3 };

	TRY(e, send(e->fd, p, len, 0));
	TRY(e, send(e->fd, p, len, MSG_DONTWAIT | MSG_NOSIGNAL));
	TRY(e, send(e->fd, p, len, MSG_MORE));
	TRY(e, write(e->fd, p, len));
	TRY(e, sendto(e->fd, p, len, 0, NULL, 0));
	TRY(e, writev(e->fd, v, 3));
	TRY(e, writev(e->fd, v + 2, 1));
	TRY(e, sendmsg(e->fd, &m, 0));
}

static void calls_recv(struct end *e, char *p, size_t len)
{
	char good[3];
	struct iovec v[3] = { { .iov_base = good, .iov_len = 2 },
			      { .iov_base = good + 2, .iov_len = 1 },
			      { .iov_base = p, .iov_len = len } };
	struct msghdr m = { .msg_iov = v, .msg_iovlen = 3 };

	TRY(e, recv(e->fd, p, len, 0));
	TRY(e, recv(e->fd, p, len, MSG_DONTWAIT));
	TRY(e, recv(e->fd, p, len, MSG_PEEK));
	TRY(e, recv(e->fd, p, 10, MSG_WAITALL));
	TRY(e, read(e->fd, p, len));
	TRY(e, recvfrom(e->fd, p, len, 0, NULL, NULL));
	TRY(e, readv(e->fd, v, 3));
	TRY(e, recvmsg(e->fd, &m, 0));
}

static void sends(struct end *e)
{
	static const size_t lengths[] = { 1, 3, 8, 20, 100, 3000, 20000 };
	char *page = lone(e), *cut = cut_short(e), *gone = unmapped(e);

	tens(e);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		size_t len = lengths[i];

		TRY(e, send(e->fd, gone, len, 0));
		TRY(e, send(e->fd, page - PAGE, len, 0));
		TRY(e, send(e->fd, page + PAGE - len / 2 % PAGE, len, 0));
		TRY(e, send(e->fd, page - 1, len, 0));
		TRY(e, send(e->fd, cut + PAGE, len, 0));
		TRY(e, send(e->fd, cut + PAGE - len / 2 % PAGE, len, 0));
	}
	calls_send(e, gone, 10);
	calls_send(e, page + PAGE - 5, 10);
	calls_send(e, cut + PAGE - 5, 10);
	calls_send(e, cut + PAGE, 9000);
	untouched(e);
}

static void receives(struct end *e)
{
	char *page = lone(e), *cut = cut_short(e), *fixed = lone(e), *gone = unmapped(e);

	MUST(e, mprotect(fixed, PAGE, PROT_READ));
	tens(e);
	calls_recv(e, gone, 10);
	calls_recv(e, page - PAGE, 100);
	calls_recv(e, page + PAGE - 5, 10);
	calls_recv(e, page + PAGE - 1, 5000);
	calls_recv(e, page - 1, 10);
	calls_recv(e, fixed, 10);
	calls_recv(e, cut + PAGE, 10);
	calls_recv(e, cut + PAGE - 5, 20000);
	untouched(e);
}

/* The kernel touches no more of a buffer than it fills. */
static void tails(struct end *e)
{
	char *page = lone(e), *cut = cut_short(e);
	struct iovec v[2] = { { .iov_base = page, .iov_len = 10 },
			      { .iov_base = cut + PAGE, .iov_len = 10 } };

	tens(e);
	text(e, "peek", page + PAGE - 10, recv(e->fd, page + PAGE - 10, 5000, MSG_PEEK));
	text(e, "peek", cut + PAGE - 10, recv(e->fd, cut + PAGE - 10, 15000, MSG_PEEK));
	TRY(e, recv(e->fd, cut + PAGE, 10, MSG_PEEK | MSG_TRUNC));
	text(e, "readv", page, readv(e->fd, v, 2));
	show(e, e->fd, 100, MSG_DONTWAIT);
	meet(e);
}

/* A call takes the bytes before a bad one by the buffer, so how many is the kernel's; none is lost or made up. */
static void pieces(struct end *e)
{
	size_t good = 300000, sum = 0;
	char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ssize_t r = 0;

	MUST(e, p == MAP_FAILED ? -1 : 0);
	good = good / PAGE * PAGE;
	pattern((unsigned char *)p, good, 0);
	MUST(e, mprotect(p + good, (1 << 20) - good, PROT_NONE));
	meet(e);
	while (sum < good && (r = send(e->fd, p + sum, (1 << 20) - sum, 0)) > 0)
		sum += r;
	say(e, "more than was there: %d, EFAULT: %d", sum > good, r < 0 && errno == EFAULT);
	TRY(e, send(e->fd, p + good, 1, 0));
	pass(e, &sum, sizeof(sum));
	meet(e);
}

static void pieces_peer(struct end *e)
{
	unsigned char *buf = malloc(1 << 20);
	size_t sum = 0, got = 0;
	ssize_t r = 1;

	meet(e);
	/* The sender waits for room, and says how much it has sent when it is over. */
	while (r > 0 && got < 1 << 20) {
		struct pollfd p[2] = { { .fd = e->fd, .events = POLLIN },
				       { .fd = e->ctl, .events = POLLIN } };

		poll(p, 2, -1);
		if (!(p[0].revents & POLLIN))
			break;
		r = recv(e->fd, buf + got, (1 << 20) - got, MSG_DONTWAIT);
		got += r > 0 ? r : 0;
	}
	take(e, &sum, sizeof(sum));
	while (got < sum && (r = recv(e->fd, buf + got, (1 << 20) - got, 0)) > 0)
		got += r;
	say(e, "all: %d, right: %d", got == sum, mismatch(buf, got, 0) == got);
	meet(e);
	free(buf);
}

/* --- handlers --- */

static volatile sig_atomic_t came[2], on_stack;
static sigjmp_buf back;
static char *stack;

static void note(int number)
{
	char here;

	came[number == SIGBUS]++;
	on_stack = stack && &here >= stack && &here < stack + 16384;
	siglongjmp(back, 1);
}

static void note_info(int number, siginfo_t *info, void *context)
{
	(void)context;
	if (info->si_code > 0 && info->si_addr)
		note(number);
}

static void note_sent(int number, siginfo_t *info, void *context)
{
	(void)context;
	came[number == SIGBUS] += info->si_code == SI_TKILL || info->si_code == SI_USER;
}

static void told(struct end *e, const char *what)
{
	say(e, "%s: SEGV %d, BUS %d, on the other stack %d", what, (int)came[0], (int)came[1],
	    (int)on_stack);
	came[0] = came[1] = on_stack = 0;
}

static void actions(struct end *e, void (*handler)(int), int flags)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags }, old;

	sigaddset(&action.sa_mask, SIGUSR2);
	for (int i = 0; i < 2; i++) {
		TRY(e, sigaction(i ? SIGBUS : SIGSEGV, &action, &old));
		say(e, "before %s, flags %x, mask %d",
		    old.sa_handler == SIG_DFL ? "default" :
		    old.sa_handler == SIG_IGN ? "ignored" :
		    old.sa_handler == note || old.sa_handler == (void (*)(int))(void *)note_info ||
				    old.sa_handler == (void (*)(int))(void *)note_sent ?
						"ours" :
						"strange",
		    (unsigned)old.sa_flags & ~0x04000000u, sigismember(&old.sa_mask, SIGUSR2));
	}
}

/* Of the program's own. */
static void own_faults(struct end *e, volatile char *gone, volatile char *cut)
{
	if (!sigsetjmp(back, 1))
		*gone = 1;
	if (!sigsetjmp(back, 1))
		*cut = 1;
	told(e, "own");
}

static void handlers(struct end *e)
{
	char *cut = cut_short(e) + PAGE, *gone = unmapped(e);
	static char room[16384];
	stack_t other = { .ss_sp = stack = room, .ss_size = sizeof(room) };
	int flags[] = { 0, SA_RESTART, SA_ONSTACK, SA_NODEFER,
			SA_ONSTACK | SA_RESTART | SA_NODEFER };

	MUST(e, sigaltstack(&other, NULL));
	tens(e);
	for (size_t i = 0; i < 2 * sizeof(flags) / sizeof(flags[0]); i++) {
		int with = flags[i / 2] | (i & 1 ? SA_SIGINFO : 0);

		actions(e, i & 1 ? (void (*)(int))(void *)note_info : note, with);
		TRY(e, send(e->fd, gone, 10, 0));
		TRY(e, send(e->fd, cut - 5, 10, 0));
		TRY(e, recv(e->fd, gone, 10, 0));
		TRY(e, recv(e->fd, cut - 5, 10, 0));
		told(e, "calls");
		own_faults(e, gone, cut);
	}
	actions(e, (void (*)(int))(void *)note_sent, SA_SIGINFO);
	TRY(e, raise(SIGSEGV));
	TRY(e, raise(SIGBUS));
	told(e, "sent");
	actions(e, note, (int)SA_RESETHAND);
	TRY(e, send(e->fd, gone, 10, 0));
	TRY(e, send(e->fd, cut, 10, 0));
	own_faults(e, gone, cut);
	actions(e, SIG_DFL, SA_RESTART);
	TRY(e, send(e->fd, gone, 10, 0));
	actions(e, SIG_DFL, 0);
	TRY(e, send(e->fd, cut, 10, 0));
	actions(e, SIG_IGN, 0);
	TRY(e, raise(SIGSEGV));
	TRY(e, kill(getpid(), SIGBUS));
	actions(e, SIG_DFL, 0);
	actions(e, SIG_DFL, 0);
	TRY(e, recv(e->fd, gone, 10, 0));
	TRY(e, recv(e->fd, cut - 5, 10, 0));
	sigaltstack(&(stack_t) { .ss_flags = SS_DISABLE }, NULL);
	stack = NULL;
	untouched(e);
}

/* --- the default action: the process ends by that signal --- */

static void by_wild_write(void)
{
	*(volatile char *)hidden(4096) = 1;
}

static void by_kill(void)
{
	kill(getpid(), SIGSEGV);
	pause();
}

static void by_raise(void)
{
	raise(SIGBUS);
}

static void by_blocked(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGSEGV);
	sigprocmask(SIG_BLOCK, &set, NULL);
	raise(SIGSEGV);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void by_ignored(void)
{
	signal(SIGSEGV, SIG_IGN);
	by_wild_write();
}

static void deaths(struct end *e)
{
	static void (*const ways[])(void) = { by_wild_write, by_kill, by_raise, by_blocked,
					      by_ignored };

	tens(e);
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		pid_t pid = MUST(e, fork());

		if (!pid) {
			TRY(e, send(e->fd, (void *)1, 1, 0));
			ways[i]();
			_exit(1);
		}
		reap(e, pid);
	}
	untouched(e);
}

/* --- while the file gets shorter and longer --- */

static void *shorten(void *arg)
{
	int *job = arg;

	while (!__atomic_load_n(&job[1], __ATOMIC_ACQUIRE)) {
		if (ftruncate(job[0], PAGE) || ftruncate(job[0], 4 * PAGE))
			break;
	}
	return NULL;
}

static void races(struct end *e)
{
	int job[2] = { MUST(e, memfd_create("cases", MFD_CLOEXEC)), 0 }, odd = 0;
	size_t sum = 0;
	pthread_t thread;
	char *p;

	MUST(e, ftruncate(job[0], 4 * PAGE));
	p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, job[0], 0);
	MUST(e, p == MAP_FAILED ? -1 : 0);
	meet(e);
	MUST(e, pthread_create(&thread, NULL, shorten, job));
	for (int i = 0; i < 2000; i++) {
		ssize_t r = send(e->fd, p, 4 * PAGE, 0);

		sum += r > 0 ? r : 0;
		odd += r < 0 && errno != EFAULT;
		r = recv(e->fd, p, 4 * PAGE, MSG_DONTWAIT);
		odd += r < 0 && errno != EFAULT && errno != EAGAIN;
	}
	__atomic_store_n(&job[1], 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	say(e, "other errors: %d", odd);
	shutdown(e->fd, SHUT_WR);
	pass(e, &sum, sizeof(sum));
	meet(e);
	close(job[0]);
}

/* Sends what it has got, as long as it goes. */
static void races_peer(struct end *e)
{
	static char buf[65536];
	size_t sum = 0, got = 0;
	ssize_t r;

	meet(e);
	while ((r = recv(e->fd, buf, sizeof(buf), 0)) > 0) {
		got += r;
		send(e->fd, buf, r, MSG_DONTWAIT);
	}
	take(e, &sum, sizeof(sum));
	say(e, "all: %d", got == sum);
	meet(e);
}

const struct test cases_faults[] = {
	{ "fault_send", 0, sends, tens_peer },
	{ "fault_receive", 0, receives, tens_peer },
	{ "fault_tail", 0, tails, tens_peer },
	{ "fault_parts", 0, pieces, pieces_peer },
	{ "fault_handlers", PROCS, handlers, tens_peer },
	{ "fault_default", PROCS, deaths, tens_peer },
	{ "fault_race", 0, races, races_peer },
	{ NULL, 0, NULL, NULL },
};
