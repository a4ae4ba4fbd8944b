/* SPDX-License-Identifier: MIT */
/*
 * Handlers that never return: siglongjmp() and pthread_exit() out of a call that waits, as time-outs of databases and
 * clients do it, also on another stack and in a call of a handler. Nothing of the call is left, and the connection goes on.
 */
#include "cases.h"

#include <dirent.h>
#include <malloc.h>
#include <sched.h>
#include <setjmp.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/syscall.h>

#define OFTEN 64
#define MANY 64	/* descriptors of a wait for which memory is asked for */

static __thread sigjmp_buf away;
static volatile sig_atomic_t entered;	/* calls that a handler may leave */

static void on_jump(int sig)
{
	(void)sig;
	caught++;
	siglongjmp(away, 1);
}

static void on_exit_thread(int sig)
{
	(void)sig;
	caught++;
	pthread_exit(NULL);
}

static void install(struct end *e, int sig, void (*handler)(int), int flags)
{
	struct sigaction sa = {.sa_handler = handler, .sa_flags = flags};

	MUST(e, sigaction(sig, &sa, NULL));
	caught = 0;
}

/* Writes over the stack of the call that was left. */
static __attribute__((noinline)) void scribble(void)
{
	volatile char stack[16384];

	for (size_t i = 0; i < sizeof(stack); i++)
		stack[i] = (char)0xa5;
}

static int open_descriptors(struct end *e)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	MUST(e, dir ? 0 : -1);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* --- each call that waits --- */

static struct end *end;
static int set;			/* the connection in it */
static const char *much;	/* more than a connection takes that nobody reads */
#define MUCH (256u << 20)

static fd_set *only(int fd)
{
	static __thread fd_set sets;

	FD_ZERO(&sets);
	FD_SET(fd, &sets);
	return &sets;
}

static struct pollfd *many(int fd)
{
	static struct pollfd fds[MANY];

	for (int i = 0; i < MANY; i++)
		fds[i] = (struct pollfd){.fd = fd, .events = POLLIN};
	return fds;
}

static sigset_t *open_mask(void)
{
	static sigset_t none;

	sigemptyset(&none);
	return &none;
}

#define IOV (&(struct iovec){j->buf, 4})
#define POLLFD (&(struct pollfd){.fd = j->fd, .events = POLLIN})
#define EVENT (&(struct epoll_event){.events = 0})
#define CALLS(X)										\
	X(recv, recv(j->fd, j->buf, 4, 0))							\
	X(read, read(j->fd, j->buf, 4))								\
	X(readv, readv(j->fd, IOV, 1))								\
	X(peek, recv(j->fd, j->buf, 4, MSG_PEEK))						\
	X(recvmsg, recvmsg(j->fd, &(struct msghdr){.msg_iov = IOV, .msg_iovlen = 1}, 0))	\
	X(recvmmsg, recvmmsg(j->fd, &(struct mmsghdr){.msg_hdr = {.msg_iov = IOV,		\
			     .msg_iovlen = 1}}, 1, 0, NULL))					\
	X(raw_recv, syscall(SYS_recvfrom, j->fd, j->buf, 4, 0, NULL, NULL))			\
	X(poll, poll(POLLFD, 1, -1))								\
	X(poll_many, poll(many(j->fd), MANY, -1))						\
	X(ppoll, ppoll(POLLFD, 1, NULL, open_mask()))						\
	X(raw_ppoll, syscall(SYS_ppoll, POLLFD, 1, NULL, NULL, 8))				\
	X(select, select(j->fd + 1, only(j->fd), NULL, NULL, NULL))				\
	X(pselect, pselect(j->fd + 1, only(j->fd), NULL, NULL, NULL, open_mask()))		\
	X(epoll_wait, epoll_wait(set, EVENT, 1, -1))						\
	X(epoll_pwait, epoll_pwait(set, EVENT, 1, -1, open_mask()))				\
	X(accept, accept(end->lfd, NULL, NULL))							\
	X(send, send(j->fd, much, MUCH, 0))

static int cancel_state(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
	return state;
}

/* 1: the handler has jumped, and cancellation is enabled. */
#define X(name, call)							\
	static void name##_job(struct job *j)				\
	{								\
		if (!sigsetjmp(away, 1)) {				\
			entered++;					\
			j->result = (long)(call);			\
			j->result = -1;					\
			return;						\
		}							\
		scribble();						\
		j->result = cancel_state() == PTHREAD_CANCEL_ENABLE;	\
	}
CALLS(X)
#undef X

static const struct call {
	const char *name;
	void (*work)(struct job *j);
} calls[] = {
#define X(name, call) {#name, name##_job},
	CALLS(X)
#undef X
};

#define COUNT (sizeof(calls) / sizeof(calls[0]))

static void prepare(struct end *e)
{
	void *memory = mmap(NULL, MUCH, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	MUST(e, memory == MAP_FAILED ? -1 : 0);
	much = memory;
	end = e;
	if (e->lfd < 0)
		e->lfd = make_listener(e, 0);
	set = set_of(e, e->fd, EPOLLIN);
}

/* The last of the calls, send(), is for connections that are not used any more. */
static void hit_each(struct end *e, void (*handler)(int), int flags)
{
	struct job j;

	for (size_t i = 0; i < COUNT - 1; i++) {
		install(e, SIGUSR1, handler, flags);
		job_hit(e, &j, calls[i].work, e->fd);
		job_join(e, &j);
		say(e, "%s: jumped %ld, done %d, %d caught", calls[i].name, j.result, j.done,
		    (int)caught);
	}
}

static void each(struct end *e)
{
	prepare(e);
	hit_each(e, on_jump, 0);
	hit_each(e, on_jump, SA_RESTART);
	ask(e, e->fd);
	wait_on(e, set, 0);
	finish(e, e->fd);
}

static void from_send(struct end *e)
{
	struct job j;

	prepare(e);
	install(e, SIGUSR1, on_jump, 0);
	for (int i = 0; i < 3; i++) {
		job_hit(e, &j, send_job, e->fd);
		job_join(e, &j);
		say(e, "jumped %ld", j.result);
	}
	tell(e);
	shutdown(e->fd, SHUT_WR);
	drain(e, e->fd);
}

static void from_send_peer(struct end *e)
{
	static char buf[65536];
	ssize_t r;

	await(e);
	while ((r = MUST(e, recv(e->fd, buf, sizeof(buf), 0))) > 0)
		;
	close(e->fd);
}

/* --- over and over --- */

static const struct call *chosen;

static void often_job(struct job *j)
{
	while (caught < OFTEN)
		chosen->work(j);
}

/* At every moment of the call, before and in its sleep. */
static void hit_often(struct end *e)
{
	struct job j;

	install(e, SIGUSR1, on_jump, SA_RESTART);
	entered = 0;
	job_start(e, &j, often_job, e->fd);
	for (int i = 0; i < OFTEN; i++) {
		while (entered <= i)
			sched_yield();
		usleep(i % 8 * 40);
		pthread_kill(j.thread, SIGUSR1);
		while (caught <= i)
			sched_yield();
	}
	job_join(e, &j);
}

/* Neither a descriptor nor memory for each jump. The first round takes what all share. */
static void often(struct end *e)
{
	prepare(e);
	for (chosen = calls; chosen < calls + COUNT - 1; chosen++) {
		int descriptors;
		size_t memory;

		hit_often(e);
		descriptors = open_descriptors(e);
		memory = mallinfo2().uordblks;
		hit_often(e);
		say(e, "%s: a descriptor each %d, memory each %d", chosen->name,
		    open_descriptors(e) - descriptors >= OFTEN / 2,
		    mallinfo2().uordblks > memory + OFTEN * 256);
	}
	ask(e, e->fd);
	finish(e, e->fd);
}

/* --- what the thread and its process can do then --- */

static void cancelled_job(struct job *j)
{
	recv_job(j);
	scribble();
	j->result = recv(j->fd, j->buf, 4, 0);
}

/* A thread whose first call was left can be cancelled in its second. */
static void then_cancelled(struct end *e)
{
	struct job j;
	void *value;

	prepare(e);
	install(e, SIGUSR1, on_jump, 0);
	job_hit(e, &j, cancelled_job, e->fd);
	while (!caught)
		usleep(100);
	asleep(e, j.tid);
	MUST(e, pthread_cancel(j.thread));
	MUST(e, pthread_join(j.thread, &value));
	say(e, "cancelled %d", value == PTHREAD_CANCELED);
	ask(e, e->fd);
	finish(e, e->fd);
}

/* A thread may end in its handler. */
static void then_gone(struct end *e)
{
	prepare(e);
	hit_each(e, on_exit_thread, SA_RESTART);
	ask(e, e->fd);
	finish(e, e->fd);
}

static void then_forked(struct end *e)
{
	pid_t pid;

	prepare(e);
	hit_each(e, on_jump, 0);
	pid = MUST(e, fork());
	if (!pid) {
		become(e, "child");
		ask(e, e->fd);
		_exit(0);
	}
	reap(e, pid);
	ask(e, e->fd);
	close(set);
	close(e->lfd);
	finish(e, e->fd);
}

/* A call is left while another thread waits for the same. */
static void beside_another(struct end *e)
{
	struct job other, j;

	prepare(e);
	install(e, SIGUSR1, on_jump, 0);
	for (size_t i = 0; i < COUNT - 2; i++) {
		job_sleeps(e, &other, job_poll, e->fd);
		job_hit(e, &j, calls[i].work, e->fd);
		job_join(e, &j);
		put(e, e->fd, "ping");
		job_report(e, calls[i].name, &other);
		show(e, e->fd, 4, MSG_WAITALL);
	}
	finish(e, e->fd);
}

/* --- where the handler runs --- */

static volatile int order[3], seen;

static void on_value(int sig, siginfo_t *info, void *context)
{
	(void)sig, (void)context;
	order[seen++] = info->si_value.sival_int;
}

/* Of several signals of one number each wait takes one, the oldest first. */
static void in_order(struct end *e)
{
	struct sigaction sa = {.sa_sigaction = on_value, .sa_flags = SA_SIGINFO};
	struct pollfd p = {.fd = e->fd, .events = POLLIN};
	sigset_t blocked;

	MUST(e, sigaction(SIGRTMIN, &sa, NULL));
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGRTMIN);
	pthread_sigmask(SIG_BLOCK, &blocked, NULL);
	for (int i = 1; i <= 3; i++)
		MUST(e, pthread_sigqueue(pthread_self(), SIGRTMIN, (union sigval){.sival_int = i}));
	for (int i = 0; i < 3; i++) {
		TRY(e, ppoll(&p, 1, NULL, open_mask()));
		say(e, "%d seen, the last %d", seen, order[i]);
	}
	ask(e, e->fd);
	finish(e, e->fd);
}

static void on_other_stack_job(struct job *j)
{
	static char stack[65536];
	stack_t other = {.ss_sp = stack, .ss_size = sizeof(stack)};

	sigaltstack(&other, NULL);
	chosen->work(j);
	other.ss_flags = SS_DISABLE;
	sigaltstack(&other, NULL);
}

static void on_other_stack(struct end *e)
{
	struct job j;

	prepare(e);
	install(e, SIGUSR1, on_jump, SA_ONSTACK);
	for (chosen = calls; chosen < calls + COUNT - 1; chosen++) {
		job_hit(e, &j, on_other_stack_job, e->fd);
		job_join(e, &j);
		say(e, "%s: jumped %ld", chosen->name, j.result);
	}
	ask(e, e->fd);
	finish(e, e->fd);
}

static struct job *waiter;

/* Waits in the same call as the thread that it has interrupted, and is interrupted by a handler that jumps. */
static void on_wait(int sig)
{
	struct job nested = {.e = waiter->e, .fd = waiter->fd};

	(void)sig;
	caught++;
	if (recv(nested.fd, nested.buf, 4, 0) < 0)
		say(nested.e, "the handler's call has ended");
}

static void nested_job(struct job *j)
{
	waiter = j;
	chosen->work(j);
}

static void nested(struct end *e)
{
	struct job j;

	prepare(e);
	for (chosen = calls; chosen < calls + COUNT - 1; chosen++) {
		install(e, SIGUSR2, on_wait, 0);
		install(e, SIGUSR1, on_jump, SA_RESTART);
		job_start(e, &j, nested_job, e->fd);
		asleep(e, j.tid);
		pthread_kill(j.thread, SIGUSR2);
		while (!caught)
			usleep(100);
		hit(e, &j);
		job_join(e, &j);
		say(e, "%s: jumped %ld, %d caught", chosen->name, j.result, (int)caught);
	}
	ask(e, e->fd);
	finish(e, e->fd);
}

const struct test cases_jumps[] = {
	{"jump_each", 0, each, echo_peer},
	{"jump_from_send", 0, from_send, from_send_peer},
	{"jump_often", 0, often, echo_peer},
	{"jump_then_cancelled", 0, then_cancelled, echo_peer},
	{"jump_then_gone", 0, then_gone, echo_peer},
	{"jump_then_forked", PROCS, then_forked, echo_peer},
	{"jump_beside_another", 0, beside_another, echo_peer},
	{"jump_on_other_stack", 0, on_other_stack, echo_peer},
	{"jump_nested", 0, nested, echo_peer},
	{"signal_in_order", PROCS, in_order, echo_peer},
	{NULL, 0, NULL, NULL},
};
