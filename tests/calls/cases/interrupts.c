/* SPDX-License-Identifier: MIT */
/* Signals in the middle of transfers: what was moved before is reported, and nothing is lost. */
#include "cases.h"

#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/time.h>

static void report(struct end *e, const char *what, struct job *j)
{
	report_caught(e, what, j);
	caught = 0;
}

static struct iovec one(struct job *j)
{
	return (struct iovec){.iov_base = j->buf, .iov_len = 4};
}

static struct timespec long_time = {.tv_sec = 100};

static JOB(readv_job, readv(j->fd, (struct iovec[]){one(j)}, 1))
static JOB(recvmsg_job, recvmsg(j->fd, &(struct msghdr){.msg_iov = (struct iovec[]){one(j)}, .msg_iovlen = 1}, 0))
static JOB(recvfrom_job, recvfrom(j->fd, j->buf, 4, 0, NULL, NULL))
static JOB(peek_job, recv(j->fd, j->buf, 4, MSG_PEEK))
static JOB(recvmmsg_job, recvmmsg(j->fd, (struct mmsghdr[]){{.msg_hdr = {.msg_iov = (struct iovec[]){one(j)},
			   .msg_iovlen = 1}}}, 1, 0, NULL))
static JOB(ppoll_job, ppoll(&(struct pollfd){.fd = j->fd, .events = POLLIN}, 1, &long_time, NULL))
static JOB(waitall_job, recv(j->fd, j->buf, 40, MSG_WAITALL))

static const struct call {
	const char *name;
	void (*work)(struct job *j);
} receives[] = {
	{"readv", readv_job}, {"recvmsg", recvmsg_job}, {"recvfrom", recvfrom_job}, {"peek", peek_job},
	{"recvmmsg", recvmmsg_job},
}, waits[] = {
	{"poll", job_poll}, {"ppoll", ppoll_job}, {"select", job_select}, {"epoll_wait", job_epoll},
};

static void hit_each(struct end *e, int flags, const struct call *calls, size_t n)
{
	struct job j;

	catch_signal(e, flags);
	for (size_t i = 0; i < n; i++) {
		job_hit(e, &j, calls[i].work, e->fd);
		report(e, calls[i].name, &j);
	}
}

static void each_receive(struct end *e)
{
	hit_each(e, 0, receives, sizeof(receives) / sizeof(receives[0]));
	ask(e, e->fd);
	shutdown(e->fd, SHUT_WR);
}

/* Begun again by themselves: the bytes end them. */
static void each_restarts(struct end *e)
{
	struct job j;

	catch_signal(e, SA_RESTART);
	for (size_t i = 0; i < sizeof(receives) / sizeof(receives[0]); i++) {
		job_hit(e, &j, receives[i].work, e->fd);
		asleep(e, j.tid);
		say(e, "done %d", j.done);
		put(e, e->fd, "ping");
		report(e, receives[i].name, &j);
		if (receives[i].work == peek_job)
			show(e, e->fd, 4, MSG_WAITALL);
	}
	shutdown(e->fd, SHUT_WR);
}

/* These are never begun again. */
static void each_wait(struct end *e)
{
	for (int flags = 0; flags <= SA_RESTART; flags += SA_RESTART)
		hit_each(e, flags, waits, sizeof(waits) / sizeof(waits[0]));
	ask(e, e->fd);
	shutdown(e->fd, SHUT_WR);
}

/* With a timeout of its own a receive is not begun again either. */
static void with_timeout(struct end *e)
{
	struct timeval t = {.tv_sec = 100};

	TRY(e, setsockopt(e->fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)));
	for (int flags = 0; flags <= SA_RESTART; flags += SA_RESTART)
		hit_each(e, flags, receives, 3);
	ask(e, e->fd);
	shutdown(e->fd, SHUT_WR);
}

/* Part of what was to be waited for is there: that is the result, restart or not. */
static void part_received(struct end *e)
{
	struct job j;

	for (int flags = 0; flags <= SA_RESTART; flags += SA_RESTART) {
		catch_signal(e, flags);
		job_start(e, &j, waitall_job, e->fd);
		put(e, e->fd, "ping");
		arrived(e, e->fd, 0);
		asleep(e, j.tid);
		tell(e);
		await(e);
		hit(e, &j);
		report(e, "WAITALL", &j);
	}
	shutdown(e->fd, SHUT_WR);
	tell(e);
}

static void part_received_peer(struct end *e)
{
	char buf[4];

	for (int i = 0; i < 2; i++) {
		get(e, e->fd, buf, 4);
		put(e, e->fd, "pong");
		await(e);
		tell(e);
	}
	await(e);
	show(e, e->fd, 1, 0);
}

static char some[100000];
static const char *much;	/* more than a connection takes that nobody reads */
static size_t much_bytes;

/* The third word of a file in /proc: bytes that the kernel lets a socket's buffer grow to. */
static size_t largest(struct end *e, const char *path)
{
	size_t bytes = 0;
	FILE *file = fopen(path, "r");

	MUST(e, file ? 0 : -1);
	MUST(e, fscanf(file, "%*u %*u %zu", &bytes) == 1 ? 0 : -1);
	fclose(file);
	return bytes;
}

/* Both buffers, twice: memory that is never written to, so it takes up none. */
static void make_much(struct end *e)
{
	void *memory;

	much_bytes = 2 * (largest(e, "/proc/sys/net/ipv4/tcp_wmem") +
			  largest(e, "/proc/sys/net/ipv4/tcp_rmem"));
	memory = mmap(NULL, much_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		      -1, 0);
	MUST(e, memory == MAP_FAILED ? -1 : 0);
	much = memory;
}

static JOB(send_job, send(j->fd, much, much_bytes, 0))

/* A send that has taken something reports that, and the other end gets just as much. */
static void part_sent(struct end *e)
{
	struct job j;
	long sent;

	make_much(e);
	catch_signal(e, 0);
	job_hit(e, &j, send_job, e->fd);
	job_join(e, &j);
	sent = j.result;
	say(e, "part %d, %d caught", sent > 0 && sent < (long)much_bytes, (int)caught);
	pass(e, &sent, sizeof(sent));
	shutdown(e->fd, SHUT_WR);
	await(e);
}

static void part_sent_peer(struct end *e)
{
	long sent, sum = 0, r;

	take(e, &sent, sizeof(sent));
	while ((r = MUST(e, recv(e->fd, some, sizeof(some), 0))) > 0)
		sum += r;
	say(e, "as many: %d", sum == sent);
	tell(e);
}

/* Nothing could be taken: EINTR, or on with it. */
static void none_sent(struct end *e)
{
	struct job j;
	long sum = 0, r;

	make_much(e);
	nonblock(e, e->fd, 1);
	do {
		while ((r = send(e->fd, some, 50000, 0)) > 0)
			sum += r;
	} while (polled(e->fd, POLLOUT, 50));
	nonblock(e, e->fd, 0);
	catch_signal(e, 0);
	job_hit(e, &j, send_job, e->fd);
	job_join(e, &j);	/* room may have come after all */
	say(e, "none or some: %d", j.result > 0 || j.err == EINTR);
	if (j.result > 0)
		sum += j.result;
	pass(e, &sum, sizeof(sum));
	shutdown(e->fd, SHUT_WR);
	await(e);
}

/* Blocked signals do not interrupt, ignored ones neither, whatever else the thread does. */
static void not_for_us(struct end *e)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct job j;

	catch_signal(e, 0);
	mask_signal(SIG_BLOCK);
	job_start(e, &j, receives[0].work, e->fd);
	mask_signal(SIG_UNBLOCK);
	hit(e, &j);
	asleep(e, j.tid);
	say(e, "done %d", j.done);
	put(e, e->fd, "ping");
	report(e, "blocked", &j);
	MUST(e, sigaction(SIGUSR1, &ignore, NULL));
	job_hit(e, &j, receives[0].work, e->fd);
	asleep(e, j.tid);
	say(e, "done %d", j.done);
	put(e, e->fd, "ping");
	report(e, "ignored", &j);
	shutdown(e->fd, SHUT_WR);
}

static void accept_hit(struct end *e)
{
	struct job j;
	int fd;

	e->lfd = make_listener(e, 0);
	catch_signal(e, 0);
	job_hit(e, &j, job_accept, e->lfd);
	report(e, "accept", &j);
	catch_signal(e, SA_RESTART);
	job_hit(e, &j, job_accept, e->lfd);
	asleep(e, j.tid);
	say(e, "done %d", j.done);
	fd = dial(e);
	job_join(e, &j);
	say(e, "accepted %d", j.result >= 0);
	put(e, fd, "hi");
	show(e, j.result, 2, MSG_WAITALL);
	close(j.result);
	close(fd);
	close(e->lfd);
}

/* A timer that never stops, and a transfer that does not care. */
static void under_timer(struct end *e)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	struct itimerval t = {.it_interval = {.tv_usec = 500}, .it_value = {.tv_usec = 500}};

	MUST(e, sigaction(SIGALRM, &sa, NULL));
	MUST(e, setitimer(ITIMER_REAL, &t, NULL));
	for (int i = 0; i < 20; i++) {
		send_pattern(e, e->fd, 100000 * i, 100000, 7777);
		recv_pattern(e, e->fd, 100000 * i, 100000, 9999);
	}
	t.it_value.tv_usec = 0;
	MUST(e, setitimer(ITIMER_REAL, &t, NULL));
	say(e, "caught %d", caught > 0);
}

static void under_timer_peer(struct end *e)
{
	for (int i = 0; i < 20; i++) {
		recv_pattern(e, e->fd, 100000 * i, 100000, 12345);
		send_pattern(e, e->fd, 100000 * i, 100000, 54321);
	}
}

const struct test cases_interrupts[] = {
	{"interrupt_each_receive", 0, each_receive, echo_peer},
	{"interrupt_each_restarts", 0, each_restarts, echo_peer},
	{"interrupt_each_wait", 0, each_wait, echo_peer},
	{"interrupt_with_timeout", 0, with_timeout, echo_peer},
	{"interrupt_part_received", 0, part_received, part_received_peer},
	{"interrupt_part_sent", 0, part_sent, part_sent_peer},
	{"interrupt_none_sent", 0, none_sent, part_sent_peer},
	{"interrupt_not_for_us", 0, not_for_us, echo_peer},
	{"interrupt_accept", ALONE, accept_hit, NULL},
	{"interrupt_under_timer", PROCS, under_timer, under_timer_peer},
	{NULL, 0, NULL, NULL},
};
