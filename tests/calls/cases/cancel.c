/* SPDX-License-Identifier: MIT */
/*
 * pthread_cancel: which calls are cancellation points, and that a thread may be cancelled anywhere
 * in them, over and over, without harm to the connection. (Until 2.40, libc does not undo the work
 * of a thread that is cancelled at that moment. So the checks are on what other threads find.)
 */
#include "cases.h"

#include <sys/epoll.h>
#include <sched.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>

#define OFTEN 200

static volatile int cleaned;

static void clean(void *arg)
{
	(void)arg;
	cleaned++;
}

/* --- pending on entry --- */

static int made[2];	/* a set with the connection in it; a listener */
static struct end other;	/* where that listens */

static struct iovec room(struct job *j)
{
	return (struct iovec){j->buf, 4};
}

#define IOV (&(struct iovec){room(j).iov_base, 4})
#define MESSAGE (&(struct msghdr){.msg_iov = IOV, .msg_iovlen = 1})
#define MESSAGES (&(struct mmsghdr){.msg_hdr = {.msg_iov = IOV, .msg_iovlen = 1}})
#define POLLFD (&(struct pollfd){.fd = j->fd, .events = POLLIN})
#define EVENT (&(struct epoll_event){.events = 0})
#define NOW (&(struct timespec){0, 0})
#define ADDRESS ((struct sockaddr *)&other.addr)

static fd_set *only(int fd)
{
	static fd_set set;

	FD_ZERO(&set);
	FD_SET(fd, &set);
	return &set;
}

/* Younger architectures have only ppoll. */
#ifdef SYS_poll
#define RAW_POLL(X) X(raw_poll, syscall(SYS_poll, POLLFD, 1, -1))
#else
#define RAW_POLL(X)
#endif
#define CALLS(X)							\
	X(recv, recv(j->fd, j->buf, 4, 0))				\
	X(recv_now, recv(j->fd, j->buf, 4, MSG_DONTWAIT))		\
	X(recv_peek, recv(j->fd, j->buf, 4, MSG_PEEK))			\
	X(recvfrom, recvfrom(j->fd, j->buf, 4, 0, NULL, NULL))		\
	X(recvmsg, recvmsg(j->fd, MESSAGE, 0))				\
	X(recvmmsg, recvmmsg(j->fd, MESSAGES, 1, 0, NULL))		\
	X(read, read(j->fd, j->buf, 4))					\
	X(read_nothing, read(j->fd, j->buf, 0))				\
	X(readv, readv(j->fd, IOV, 1))					\
	X(preadv2, preadv2(j->fd, IOV, 1, -1, 0))			\
	X(send, send(j->fd, "lost", 4, 0))				\
	X(sendto, sendto(j->fd, "lost", 4, 0, NULL, 0))			\
	X(sendmsg, sendmsg(j->fd, MESSAGE, 0))				\
	X(sendmmsg, sendmmsg(j->fd, MESSAGES, 1, 0))			\
	X(write, write(j->fd, "lost", 4))				\
	X(writev, writev(j->fd, IOV, 1))				\
	X(pwritev2, pwritev2(j->fd, IOV, 1, -1, 0))			\
	X(poll, poll(POLLFD, 1, 0))					\
	X(ppoll, ppoll(POLLFD, 1, NULL, NULL))				\
	X(select, select(j->fd + 1, only(j->fd), NULL, NULL, NULL))	\
	X(pselect, pselect(j->fd + 1, only(j->fd), NULL, NULL, NOW, NULL)) \
	X(epoll_wait, epoll_wait(made[0], EVENT, 1, 0))			\
	X(epoll_pwait, epoll_pwait(made[0], EVENT, 1, -1, NULL))	\
	X(epoll_pwait2, epoll_pwait2(made[0], EVENT, 1, NOW, NULL))	\
	X(accept, accept(made[1], NULL, NULL))				\
	X(accept4, accept4(made[1], NULL, NULL, 0))			\
	X(connect, connect(j->fd, ADDRESS, other.addrlen))		\
	X(close, close(j->fd))						\
	/* And some that are none. */					\
	X(sendfile, sendfile(j->fd, made[1], NULL, 0))			\
	X(getsockopt, getsockopt(j->fd, SOL_SOCKET, SO_ERROR, &(int){0}, &(socklen_t){4})) \
	X(setsockopt, setsockopt(j->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, 4)) \
	X(fcntl, fcntl(j->fd, F_GETFL))					\
	X(dup2, dup2(j->fd, j->fd))					\
	X(unread, ioctl(j->fd, FIONREAD, j->buf))			\
	X(unsent, ioctl(j->fd, TIOCOUTQ, j->buf))			\
	X(epoll_ctl, epoll_ctl(made[0], EPOLL_CTL_MOD, j->fd, EVENT))	\
	X(listen, listen(made[1], 512))					\
	X(raw_recv, syscall(SYS_recvfrom, j->fd, j->buf, 1, MSG_PEEK, NULL, NULL)) \
	RAW_POLL(X)

static const struct call {
	const char *name;
	void (*make)(struct job *j);
} *calling;

static void pending(struct job *j)
{
	pthread_cleanup_push(clean, NULL);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_cancel(pthread_self());
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	calling->make(j);
	pthread_cleanup_pop(0);
}

#define X(name, call) static void call_##name(struct job *j) { j->result = (call); }
CALLS(X)
#undef X

static const struct call calls[] = {
#define X(name, call) {#name, call_##name},
	CALLS(X)
#undef X
};

/* Before it begins; what there is to read stays there, and nothing is sent. */
static void cancel_pending(struct end *e)
{
	struct job j;

	have(e, 10);
	other = *e;
	made[0] = set_of(e, e->fd, EPOLLIN);
	made[1] = make_listener(&other, 0);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		calling = &calls[i];
		cleaned = 0;
		job_start(e, &j, pending, e->fd);
		job_join(e, &j);
		say(e, "%s: %s%s", calls[i].name, j.done ? "done" : "cancelled", cleaned ? ", cleaned" : "");
	}
	show(e, e->fd, 10, 0);
	put(e, e->fd, "still");
	close_both(made);
}

static void cancel_pending_peer(struct end *e)
{
	put(e, e->fd, "0123456789");
	meet(e);
	show(e, e->fd, 5, MSG_WAITALL);
}

/* --- threads that never wait --- */

static volatile unsigned long turns;

static void peeks_on(struct job *j)
{
	while (recv(j->fd, j->buf, 1, MSG_PEEK) == 1)
		turns++;
}

static void polls_on(struct job *j)
{
	while (poll(POLLFD, 1, -1) == 1)
		turns++;
}

static void selects_on(struct job *j)
{
	while (select(j->fd + 1, only(j->fd), NULL, NULL, NULL) == 1)
		turns++;
}

static void epolls_on(struct job *j)
{
	while (epoll_wait(j->fd, EVENT, 1, -1) == 1)
		turns++;
}

static void never_waits(struct end *e)
{
	void (*const works[])(struct job *j) = {peeks_on, polls_on, selects_on, epolls_on};
	struct job j;

	have(e, 10);
	made[0] = set_of(e, e->fd, EPOLLIN);
	for (int i = 0; i < 4; i++) {
		turns = 0;
		job_start(e, &j, works[i], works[i] == epolls_on ? made[0] : e->fd);
		while (turns < 1000)
			sched_yield();
		TRY(e, pthread_cancel(j.thread));
		job_join(e, &j);
	}
	show(e, e->fd, 10, 0);
	close(made[0]);
}

static void never_waits_peer(struct end *e)
{
	put(e, e->fd, "0123456789");
	meet(e);
}

/* --- wherever they are --- */

static void often(struct end *e, void (*work)(struct job *j), int fd)
{
	struct job j;

	for (int i = 0; i < OFTEN; i++) {
		job_start(e, &j, work, fd);
		for (int spin = i * 50; spin; spin--)
			__asm__ volatile("");
		MUST(e, pthread_cancel(j.thread));
		job_join(e, &j);
	}
}

static void reads_on(struct job *j)
{
	while (recv(j->fd, j->buf, 1, 0) > 0)
		;
}

static void reads_all(struct job *j)
{
	while (recv(j->fd, j->buf, sizeof(j->buf), MSG_WAITALL) > 0)
		;
}

/* Reads the rest of pattern_peer's bytes. */
static void drain_all(struct end *e)
{
	static char buf[1 << 16];

	while (recv(e->fd, buf, sizeof(buf), 0) > 0)
		;
	put(e, e->fd, "still");
}

static void often_reads(struct end *e)
{
	often(e, reads_on, e->fd);
	often(e, reads_all, e->fd);
	tell(e);
	drain_all(e);
}

static uint64_t taken;	/* bytes of the pattern, by whichever thread */
static int wrong;

/* Not cancelled while it reads: every byte is found once. */
static void take_some(int fd)
{
	unsigned char buf[1000];
	ssize_t got;
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	got = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
	if (got > 0) {
		wrong |= mismatch(buf, got, taken) != (size_t)got;
		taken += got;
	}
	pthread_setcancelstate(state, NULL);
}

static void polls_and_reads(struct job *j)
{
	while (poll(POLLFD, 1, -1) == 1)
		take_some(j->fd);
}

static void ppolls_and_reads(struct job *j)
{
	sigset_t mask;

	sigemptyset(&mask);
	while (ppoll(POLLFD, 1, NULL, &mask) == 1)
		take_some(j->fd);
}

static void selects_and_reads(struct job *j)
{
	while (select(j->fd + 1, only(j->fd), NULL, NULL, NULL) == 1)
		take_some(j->fd);
}

static void epolls_and_reads(struct job *j)
{
	while (epoll_wait(made[0], EVENT, 1, -1) == 1)
		take_some(j->fd);
}

static void often_and_reads(struct end *e, void (*work)(struct job *j))
{
	unsigned char buf[4096];
	ssize_t got;

	taken = wrong = 0;
	often(e, work, e->fd);
	tell(e);
	while ((got = recv(e->fd, buf, sizeof(buf), 0)) > 0) {
		wrong |= mismatch(buf, got, taken) != (size_t)got;
		taken += got;
	}
	say(e, "the bytes are %s", wrong ? "wrong" : "right");
	put(e, e->fd, "still");
}

static void often_polls(struct end *e)
{
	often_and_reads(e, polls_and_reads);
}

static void often_ppolls(struct end *e)
{
	often_and_reads(e, ppolls_and_reads);
}

static void often_selects(struct end *e)
{
	often_and_reads(e, selects_and_reads);
}

static void often_epolls(struct end *e)
{
	made[0] = set_of(e, e->fd, EPOLLIN);
	often_and_reads(e, epolls_and_reads);
	close(made[0]);
}

/* Sends until told, in pieces that are sometimes waited for. */
static void pattern_peer(struct end *e)
{
	struct pollfd told = {.fd = e->ctl, .events = POLLIN};
	uint64_t at = 0;

	for (int i = 0; !poll(&told, 1, 0); i++) {
		size_t bytes = i % 37 * i % 41 + 1;

		send_pattern(e, e->fd, at, bytes, bytes);
		at += bytes;
		if (i % 8 == 0)
			usleep(20);
	}
	await(e);
	TRY(e, shutdown(e->fd, SHUT_WR));
	show(e, e->fd, 5, MSG_WAITALL);
}

static void writes_on(struct job *j)
{
	char buf[300];

	memset(buf, 'x', sizeof(buf));
	while (send(j->fd, buf, 1 + ++turns % sizeof(buf), MSG_NOSIGNAL) > 0)
		;
}

static void writes_much(struct job *j)
{
	static char buf[1 << 20];

	memset(buf, 'x', sizeof(buf));
	while (write(j->fd, buf, sizeof(buf)) > 0)
		;
}

static void often_writes(struct end *e)
{
	often(e, writes_on, e->fd);
	often(e, writes_much, e->fd);
	put(e, e->fd, "still");
	TRY(e, shutdown(e->fd, SHUT_WR));
	meet(e);
}

static void often_writes_peer(struct end *e)
{
	char buf[5000], last[6] = "";
	int bad = 0;
	ssize_t got;

	while ((got = recv(e->fd, buf, sizeof(buf), 0)) > 0) {
		for (ssize_t i = 0; i < got; i++) {
			bad += buf[i] != 'x';
			memmove(last, last + 1, 4);
			last[4] = buf[i];
		}
	}
	say(e, "%d others than x, the last are %s", bad, last);
	meet(e);
}

static void accepts_on(struct job *j)
{
	int state, fd;

	while ((fd = accept(j->fd, NULL, NULL)) >= 0) {
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
		close(fd);
		pthread_setcancelstate(state, NULL);
	}
}

/* The peer: it has the listener. */
static void often_accepts_peer(struct end *e)
{
	char buf[5] = "";
	int fd;

	often(e, accepts_on, e->lfd);
	tell(e);
	do {
		fd = MUST(e, accept(e->lfd, NULL, NULL));
		if (recv(fd, buf, 4, MSG_WAITALL) < 4)
			close(fd);
	} while (strcmp(buf, "last"));
	say(e, "the last is here");
	put(e, fd, "still");
	close(fd);
}

static void often_accepts(struct end *e)
{
	struct pollfd told = {.fd = e->ctl, .events = POLLIN};
	int fd;

	for (int i = 0; i < 400 && !poll(&told, 1, 0); i++)
		close(dial(e));
	await(e);
	fd = dial(e);
	put(e, fd, "last");
	show(e, fd, 5, MSG_WAITALL);
	close(fd);
}

/* --- in a signal handler --- */

static int pipe_fds[2];

static void writes(int sig)
{
	int saved = errno;

	(void)sig;
	if (write(pipe_fds[1], "x", 1) < 0)
		wrong = 1;
	errno = saved;
}

/* A handler has cancellation points, too, wherever it interrupts its thread. */
static void in_handler(struct end *e)
{
	struct sigaction action = {.sa_handler = writes, .sa_flags = SA_RESTART};
	struct job j;

	wrong = 0;
	MUST(e, pipe(pipe_fds));
	MUST(e, sigaction(SIGUSR1, &action, NULL));
	for (int i = 0; i < OFTEN; i++) {
		job_start(e, &j, reads_on, e->fd);
		for (int k = 0; k < 3; k++)
			pthread_kill(j.thread, SIGUSR1);
		MUST(e, pthread_cancel(j.thread));
		job_join(e, &j);
	}
	say(e, "handlers %s", wrong ? "failed" : "wrote");
	close_both(pipe_fds);
	tell(e);
	drain_all(e);
}

const struct test cases_cancel[] = {
	{"cancel_pending", 0, cancel_pending, cancel_pending_peer},
	{"cancel_never_waits", 0, never_waits, never_waits_peer},
	{"thread_cancelled_often_reads", 0, often_reads, pattern_peer},
	{"thread_cancelled_often_polls", 0, often_polls, pattern_peer},
	{"thread_cancelled_often_ppolls", 0, often_ppolls, pattern_peer},
	{"thread_cancelled_often_selects", 0, often_selects, pattern_peer},
	{"thread_cancelled_often_epolls", 0, often_epolls, pattern_peer},
	{"thread_cancelled_often_writes", 0, often_writes, often_writes_peer},
	{"thread_cancelled_often_accepts", RAW, often_accepts, often_accepts_peer},
	{"thread_cancelled_often_in_handler", 0, in_handler, pattern_peer},
	{NULL, 0, NULL, NULL},
};
