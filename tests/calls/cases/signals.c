/* Signals that land in calls that wait. */
#include "cases.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>

static volatile sig_atomic_t caught;

static void on_signal(int sig)
{
	(void)sig;
	caught++;
}

static void handle(struct end *e, int flags)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = flags};

	caught = 0;
	MUST(e, sigaction(SIGUSR1, &sa, NULL));
}

static void report(struct end *e, const char *what, struct job *j)
{
	job_join(e, j);
	errno = j->err;
	result(e, what, j->result);
	say(e, "%d caught", (int)caught);
}

static void start_and_hit(struct end *e, struct job *j, void (*work)(struct job *))
{
	job_start(e, j, work, e->fd);
	asleep(e, j->tid);
	pthread_kill(j->thread, SIGUSR1);
}

static void recv_job(struct job *j)
{
	j->result = recv(j->fd, j->buf, 4, 0);
	j->err = errno;
}

static void read_job(struct job *j)
{
	j->result = read(j->fd, j->buf, 4);
	j->err = errno;
}

static void waitall_job(struct job *j)
{
	j->result = recv(j->fd, j->buf, 8, MSG_WAITALL);
	j->err = errno;
}

static void accept_job(struct job *j)
{
	j->result = accept(j->e->lfd, NULL, NULL);
	j->err = errno;
}

static void eintr(struct end *e)
{
	struct job j;

	handle(e, 0);
	start_and_hit(e, &j, recv_job);
	report(e, "recv", &j);
	start_and_hit(e, &j, read_job);
	report(e, "read", &j);
	tell(e);
	await(e);
	arrived(e, e->fd, 4);
	start_and_hit(e, &j, waitall_job);
	report(e, "recv 8 WAITALL with 4 there", &j);
	if (e->lfd >= 0) {
		start_and_hit(e, &j, accept_job);
		report(e, "accept", &j);
	}
	tell(e);
}

/* With SA_RESTART the call goes on; it ends when the data come. */
static void restart(struct end *e)
{
	struct job j;

	handle(e, SA_RESTART);
	for (int i = 0; i < 2; i++) {
		start_and_hit(e, &j, i ? waitall_job : recv_job);
		while (caught <= i)
			usleep(200);
		asleep(e, j.tid);
		say(e, "done: %d", j.done);
		tell(e);
		report(e, i ? "recv 8 WAITALL" : "recv", &j);
		await(e);
	}
}

static void four_peer(struct end *e)
{
	await(e);
	put(e, e->fd, "abcd");
	tell(e);
}

static void eintr_peer(struct end *e)
{
	four_peer(e);
	await(e);
}

static void restart_peer(struct end *e)
{
	four_peer(e);
	await(e);
	put(e, e->fd, "abcdefgh");
	tell(e);
}

static void poll_job(struct job *j)
{
	struct pollfd p = {.fd = j->fd, .events = POLLIN};

	j->result = poll(&p, 1, -1);
	j->err = errno;
}

static void select_job(struct job *j)
{
	fd_set r;

	FD_ZERO(&r);
	FD_SET(j->fd, &r);
	j->result = select(j->fd + 1, &r, NULL, NULL, NULL);
	j->err = errno;
}

static void epoll_job(struct job *j)
{
	struct epoll_event ev = {.events = EPOLLIN};
	int ep = epoll_create1(0);

	epoll_ctl(ep, EPOLL_CTL_ADD, j->fd, &ev);
	j->result = epoll_wait(ep, &ev, 1, -1);
	j->err = errno;
	close(ep);
}

/* The calls that wait for readiness are never restarted. */
static void ready_calls(struct end *e)
{
	struct job j;

	for (int i = 0; i < 2; i++) {
		handle(e, i ? SA_RESTART : 0);
		start_and_hit(e, &j, poll_job);
		report(e, "poll", &j);
		start_and_hit(e, &j, select_job);
		report(e, "select", &j);
		start_and_hit(e, &j, epoll_job);
		report(e, "epoll_wait", &j);
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

	handle(e, SA_RESTART);
	start_and_hit(e, &j, timeout_job);
	report(e, "recv", &j);
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

	handle(e, 0);
	start_and_hit(e, &j, send_job);
	while (!j.done) {
		usleep(1000);
		pthread_kill(j.thread, SIGUSR1);
	}
	job_join(e, &j);
	say(e, "a part (1), then EINTR (2) = %ld", j.result);
	meet(e);
}

static void blocked(sigset_t *none, int how)
{
	sigset_t s;

	sigemptyset(&s);
	sigaddset(&s, SIGUSR1);
	pthread_sigmask(how, &s, NULL);
	sigemptyset(none);
}

/* The mask given to the call lets the pending signal in, at once and atomically. */
static void masks(struct end *e)
{
	struct pollfd p = {.fd = e->fd, .events = POLLIN};
	struct epoll_event ev = {.events = EPOLLIN};
	int ep = MUST(e, epoll_create1(0));
	sigset_t none;
	fd_set r;

	handle(e, SA_RESTART);
	MUST(e, epoll_ctl(ep, EPOLL_CTL_ADD, e->fd, &ev));
	blocked(&none, SIG_BLOCK);
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
	blocked(&none, SIG_UNBLOCK);
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

	handle(e, 0);
	MUST(e, epoll_ctl(ep, EPOLL_CTL_ADD, e->fd, &ev));
	tell(e);
	await(e);
	arrived(e, e->fd, 4);
	blocked(&none, SIG_BLOCK);
	pthread_kill(pthread_self(), SIGUSR1);
	TRY(e, ppoll(&p, 1, NULL, &none));
	say(e, "%d caught", (int)caught);
	TRY(e, epoll_pwait(ep, &ev, 1, -1, &none));
	blocked(&none, SIG_UNBLOCK);
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

	handle(e, 0);
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

const struct test cases_signals[] = {
	{"signal_eintr", PROCS, eintr, eintr_peer},
	{"signal_restart", PROCS, restart, restart_peer},
	{"signal_ready_calls", PROCS, ready_calls, meet_only},
	{"signal_with_timeout", PROCS, with_timeout, meet_only},
	{"signal_sending", PROCS, sending, meet_only},
	{"signal_masks", PROCS, masks, meet_only},
	{"signal_data_first", PROCS, data_first, four_peer},
	{"signal_storm", PROCS, storm, storm_peer},
	{NULL, 0, NULL, NULL},
};
