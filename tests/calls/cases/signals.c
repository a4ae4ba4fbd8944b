/* SPDX-License-Identifier: MIT */
/* Signals that land in calls that wait. */
#include "cases.h"

#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/time.h>

static JOB(recv_job, recv(j->fd, j->buf, 4, 0))
static JOB(read_job, read(j->fd, j->buf, 4))
static JOB(waitall_job, recv(j->fd, j->buf, 8, MSG_WAITALL))

static void eintr(struct end *e)
{
	struct job j;

	catch_signal(e, 0);
	job_hit(e, &j, recv_job, e->fd);
	report_caught(e, "recv", &j);
	job_hit(e, &j, read_job, e->fd);
	report_caught(e, "read", &j);
	more(e, 4);
	job_hit(e, &j, waitall_job, e->fd);
	report_caught(e, "recv 8 WAITALL with 4 there", &j);
	if (e->lfd >= 0) {
		job_hit(e, &j, job_accept, e->fd);
		report_caught(e, "accept", &j);
	}
	tell(e);
}

/* With SA_RESTART the call goes on; it ends when the data come. */
static void restart(struct end *e)
{
	struct job j;

	catch_signal(e, SA_RESTART);
	for (int i = 0; i < 2; i++) {
		job_hit(e, &j, i ? waitall_job : recv_job, e->fd);
		while (caught <= i)
			usleep(200);
		asleep(e, j.tid);
		say(e, "done: %d", j.done);
		tell(e);
		report_caught(e, i ? "recv 8 WAITALL" : "recv", &j);
		await(e);
	}
}

static void four_peer(struct end *e)
{
	supply(e, "abcd");
}

static void eintr_peer(struct end *e)
{
	four_peer(e);
	await(e);
}

static void restart_peer(struct end *e)
{
	four_peer(e);
	supply(e, "abcdefgh");
}

/* The calls that wait for readiness are never restarted. */
static void ready_calls(struct end *e)
{
	struct job j;

	for (int i = 0; i < 2; i++) {
		catch_signal(e, i ? SA_RESTART : 0);
		job_hit(e, &j, job_poll, e->fd);
		report_caught(e, "poll", &j);
		job_hit(e, &j, job_select, e->fd);
		report_caught(e, "select", &j);
		job_hit(e, &j, job_epoll, e->fd);
		report_caught(e, "epoll_wait", &j);
	}
	meet(e);
}

static void timeout_job(struct job *j)
{
	struct timeval t = {.tv_sec = 20};

	setsockopt(j->fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
	recv_job(j);
}

/* A receive timeout turns restarting off. */
static void with_timeout(struct end *e)
{
	struct job j;

	catch_signal(e, SA_RESTART);
	job_hit(e, &j, timeout_job, e->fd);
	report_caught(e, "recv", &j);
	meet(e);
}

/* Until a send says EINTR: before that the kernel may find room for a part now and then. */
static void send_job(struct job *j)
{
	size_t len = 32 << 20;
	char *buf = calloc(1, len);
	ssize_t sent;

	j->result = 0;
	while ((sent = send(j->fd, buf, len, MSG_NOSIGNAL)) > 0 && sent < (ssize_t)len)
		j->result = 1;
	j->err = errno;
	j->result += 2 * (sent < 0 && errno == EINTR);
	free(buf);
}

/* A send that was cut short says how far it came; the next one, which sent nothing, EINTR. */
static void sending(struct end *e)
{
	struct job j;

	catch_signal(e, 0);
	job_hit(e, &j, send_job, e->fd);
	while (!j.done) {
		usleep(1000);
		pthread_kill(j.thread, SIGUSR1);
	}
	job_join(e, &j);
	say(e, "a part (1), then EINTR (2) = %ld", j.result);
	meet(e);
}

/* The mask given to the call lets the pending signal in, at once and atomically. */
static void masks(struct end *e)
{
	struct pollfd p = {.fd = e->fd, .events = POLLIN};
	struct epoll_event ev = {.events = EPOLLIN};
	int ep = MUST(e, epoll_create1(0));
	sigset_t none;
	fd_set r;

	sigemptyset(&none);
	catch_signal(e, SA_RESTART);
	MUST(e, epoll_ctl(ep, EPOLL_CTL_ADD, e->fd, &ev));
	mask_signal(SIG_BLOCK);
	pthread_kill(pthread_self(), SIGUSR1);
	TRY(e, poll(&p, 1, 10));
	say(e, "%d caught", (int)caught);
	TRY(e, ppoll(&p, 1, NULL, &none));
	say(e, "%d caught", (int)caught);
	pthread_kill(pthread_self(), SIGUSR1);
	FD_ZERO(&r);
	FD_SET(e->fd, &r);
	TRY(e, pselect(e->fd + 1, &r, NULL, NULL, NULL, &none));
	say(e, "%d caught, set %d", (int)caught, !!FD_ISSET(e->fd, &r));
	pthread_kill(pthread_self(), SIGUSR1);
	TRY(e, epoll_pwait(ep, &ev, 1, -1, &none));
	say(e, "%d caught", (int)caught);
	pthread_kill(pthread_self(), SIGUSR1);
	TRY(e, epoll_pwait2(ep, &ev, 1, NULL, &none));
	say(e, "%d caught", (int)caught);
	mask_signal(SIG_UNBLOCK);
	close(ep);
	meet(e);
}

/* Both a signal and data are there: the kernel prefers the data. */
static void data_first(struct end *e)
{
	struct pollfd p = {.fd = e->fd, .events = POLLIN};
	struct epoll_event ev = {.events = EPOLLIN};
	int ep = MUST(e, epoll_create1(0));
	sigset_t none;

	sigemptyset(&none);
	catch_signal(e, 0);
	MUST(e, epoll_ctl(ep, EPOLL_CTL_ADD, e->fd, &ev));
	more(e, 4);
	mask_signal(SIG_BLOCK);
	pthread_kill(pthread_self(), SIGUSR1);
	TRY(e, ppoll(&p, 1, NULL, &none));
	say(e, "%d caught", (int)caught);
	TRY(e, epoll_pwait(ep, &ev, 1, -1, &none));
	mask_signal(SIG_UNBLOCK);
	say(e, "%d caught", (int)caught);
	close(ep);
}

static void storm_job(struct job *j)
{
	for (int n = 0; n < 100000;) {
		ssize_t r = recv(j->fd, j->buf, sizeof(j->buf), 0);

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			break;
		n += r;
		j->result = n;
	}
}

/* A busy receiver under many signals loses nothing. */
static void storm(struct end *e)
{
	struct job j;

	catch_signal(e, 0);
	job_start(e, &j, storm_job, e->fd);
	tell(e);
	while (!j.done) {
		pthread_kill(j.thread, SIGUSR1);
		usleep(50);
	}
	job_join(e, &j);
	say(e, "received %ld", j.result);
}

static void storm_peer(struct end *e)
{
	await(e);
	for (int i = 0; i < 1000; i++) {
		send_pattern(e, e->fd, 0, 100, 100);
		if (i % 50 == 0)
			usleep(100);
	}
}

/* A handler that uses the very socket that it interrupts. */
static int handler_fd;
static long handled;	/* with SA_NODEFER a handler may interrupt itself */

static void sending_handler(int number)
{
	int saved = errno;

	(void)number;
	__atomic_fetch_add(&handled, send(handler_fd, "h", 1, MSG_DONTWAIT) == 1, __ATOMIC_RELAXED);
	errno = saved;
}

static void ping_under_signals(struct end *e, int flags)
{
	struct sigaction sa = {.sa_handler = sending_handler, .sa_flags = flags};
	struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
	long sent = 0, got = 0;
	char buf[100];
	ssize_t r;

	handler_fd = e->fd;
	MUST(e, sigaction(SIGALRM, &sa, NULL));
	MUST(e, setitimer(ITIMER_REAL, &often, NULL));
	while (sent < 3000 || !__atomic_load_n(&handled, __ATOMIC_RELAXED)) {
		if (send(e->fd, "m", 1, 0) == 1)
			sent++;
		r = recv(e->fd, buf, sizeof(buf), 0);
		got += r > 0 ? r : 0;
	}
	MUST(e, setitimer(ITIMER_REAL, &never, NULL));
	shutdown(e->fd, SHUT_WR);
	while ((r = recv(e->fd, buf, sizeof(buf), 0)) > 0)
		got += r;
	say(e, "%s came back, then %zd", got == sent + handled ? "all" : "not all", r);
}

static void handler_sends(struct end *e)
{
	ping_under_signals(e, SA_RESTART);
}

static void handler_interrupts(struct end *e)
{
	ping_under_signals(e, SA_NODEFER);
}


const struct test cases_signals[] = {
	{"signal_eintr", PROCS, eintr, eintr_peer},
	{"signal_restart", PROCS, restart, restart_peer},
	{"signal_ready_calls", PROCS, ready_calls, meet_only},
	{"signal_with_timeout", PROCS, with_timeout, meet_only},
	{"signal_sending", PROCS, sending, meet_only},
	{"signal_masks", PROCS, masks, meet_only},
	{"signal_data_first", PROCS, data_first, four_peer},
	{"signal_storm", PROCS, storm, storm_peer},
	{"signal_handler_sends", PROCS, handler_sends, echo_peer},
	{"signal_handler_interrupts", PROCS, handler_interrupts, echo_peer},
	{NULL, 0, NULL, NULL},
};
