/* SPDX-License-Identifier: MIT */
/* Several threads on one connection, and many connections in threads. */
#include "cases.h"

#include <sys/epoll.h>
#include <sys/stat.h>

#define FRAMES 1000
#define FRAME 64

static void writer(struct job *j)
{
	char frame[FRAME];

	for (int i = 0; i < FRAMES; i++) {
		memset(frame, j->buf[0], sizeof(frame));
		memcpy(frame, &i, sizeof(i));
		MUST(j->e, send(j->fd, frame, FRAME, MSG_NOSIGNAL) == FRAME ? 0 : -1);
	}
}

static void writer_a(struct job *j)
{
	j->buf[0] = 'a';
	writer(j);
}

static void writer_b(struct job *j)
{
	j->buf[0] = 'b';
	writer(j);
}

/* Small sends of two threads do not tear each other. */
static void two_writers(struct end *e)
{
	struct job a, b;

	job_start(e, &a, writer_a, e->fd);
	job_start(e, &b, writer_b, e->fd);
	job_join(e, &a);
	job_join(e, &b);
	meet(e);
}

static void two_writers_peer(struct end *e)
{
	int next[2] = {0, 0}, bad = 0;

	for (int i = 0; i < 2 * FRAMES; i++) {
		char frame[FRAME];
		int n, who;

		get(e, e->fd, frame, FRAME);
		memcpy(&n, frame, sizeof(n));
		who = frame[FRAME - 1] == 'b';
		bad += n != next[who]++;
		for (int k = sizeof(n); k < FRAME; k++)
			bad += frame[k] != (who ? 'b' : 'a');
	}
	say(e, "%d and %d frames, %d bad", next[0], next[1], bad);
	meet(e);
}

static void reader(struct job *j)
{
	unsigned char c;

	j->result = 0;
	while (recv(j->fd, &c, 1, 0) == 1)
		j->result += c + 256;
}

/* Two readers share the bytes; each byte has one reader. */
static void two_readers(struct end *e)
{
	struct job a, b;
	unsigned char buf[5000];
	long sum = 0;

	job_start(e, &a, reader, e->fd);
	job_start(e, &b, reader, e->fd);
	asleep(e, a.tid);
	asleep(e, b.tid);
	tell(e);
	job_join(e, &a);
	job_join(e, &b);
	pattern(buf, sizeof(buf), 0);
	for (size_t i = 0; i < sizeof(buf); i++)
		sum += buf[i] + 256;
	say(e, "the sum is %s", a.result + b.result == sum ? "right" : "wrong");
}

static void two_readers_peer(struct end *e)
{
	await(e);
	send_pattern(e, e->fd, 0, 5000, 333);
	shutdown(e->fd, SHUT_WR);
}

static void client_job(struct job *j)
{
	int fd = dial(j->e);
	char c;

	for (int i = 0; i < 200; i++) {
		MUST(j->e, send(fd, &(char){'a' + i % 26}, 1, 0));
		get(j->e, fd, &c, 1);
		j->result += c == 'a' + i % 26;
	}
	close(fd);
}

static void server_job(struct job *j)
{
	char buf[64];
	ssize_t r;

	while ((r = recv(j->fd, buf, sizeof(buf), 0)) > 0)
		j->result += MUST(j->e, send(j->fd, buf, r, MSG_NOSIGNAL));
	j->err = r < 0 ? errno : 0;
	close(j->fd);
}

static void per_connection(struct end *e)
{
	struct job j[20];
	long sum = 0;

	for (int i = 0; i < 20; i++)
		job_start(e, &j[i], client_job, -1);
	for (int i = 0; i < 20; i++) {
		job_join(e, &j[i]);
		sum += j[i].result;
	}
	say(e, "%ld right answers", sum);
}

static void per_connection_peer(struct end *e)
{
	struct job j[20];
	long sum = 0;

	for (int i = 0; i < 20; i++)
		job_start(e, &j[i], server_job, pick_up(e));
	for (int i = 0; i < 20; i++) {
		job_join(e, &j[i]);
		sum += j[i].result;
		if (j[i].err)
			say(e, "FAILED: %s", strerrorname_np(j[i].err));
	}
	say(e, "%ld bytes", sum);
}

static volatile int cleaned;

static void clean(void *arg)
{
	(void)arg;
	cleaned++;
}

static void cancelled_job(struct job *j)
{
	pthread_cleanup_push(clean, NULL);
	j->result = recv(j->fd, j->buf, sizeof(j->buf), 0);
	pthread_cleanup_pop(0);
}

/* recv is a cancellation point; the connection survives. */
static void cancelled(struct end *e)
{
	struct job j;

	cleaned = 0;
	job_sleeps(e, &j, cancelled_job, e->fd);
	TRY(e, pthread_cancel(j.thread));
	job_join(e, &j);
	say(e, "done %d, cleaned %d", j.done, cleaned);
	meet(e);
	show(e, e->fd, 5, MSG_WAITALL);
	put(e, e->fd, "still");
}

static void cancelled_peer(struct end *e)
{
	meet(e);
	put(e, e->fd, "after");
	show(e, e->fd, 5, MSG_WAITALL);
}

/* Nothing is left of a cancelled call: the connection ends with the descriptor. */
static void cancelled_closes(struct end *e)
{
	struct job j;

	job_sleeps(e, &j, cancelled_job, e->fd);
	TRY(e, pthread_cancel(j.thread));
	job_join(e, &j);
	TRY(e, close(e->fd));
	meet(e);
}

/* Closed in the call: it ends when the call does, however that is. */
static void closed_cancels(struct end *e)
{
	struct job j;

	job_sleeps(e, &j, cancelled_job, e->fd);
	TRY(e, close(e->fd));
	meet(e);
	TRY(e, pthread_cancel(j.thread));
	job_join(e, &j);
	meet(e);
}

static void cancelled_closes_peer(struct end *e)
{
	show(e, e->fd, 5, 0);
	meet(e);
}

static void closed_cancels_peer(struct end *e)
{
	meet(e);
	show(e, e->fd, 5, 0);
	meet(e);
}

/* Of this process, as a fork that warns of others counts them. */
static void count_threads(struct end *e, const char *when)
{
	struct stat tasks;

	MUST(e, stat("/proc/self/task", &tasks));
	say(e, "%s: %ld threads", when, (long)tasks.st_nlink - 2);
}

/* Nothing listens here, and nothing has been used that could be claimed. */
static void before_use(struct end *e)
{
	int ep, fd;

	count_threads(e, "at first");
	ep = MUST(e, epoll_create1(0));
	fd = MUST(e, socket(AF_INET, SOCK_STREAM, 0));
	count_threads(e, "socket");
	MUST(e, bind(fd, (struct sockaddr *)&(struct sockaddr_in){ .sin_family = AF_INET }, sizeof(struct sockaddr_in)));
	nonblock(e, fd, 1);
	nonblock(e, fd, 0);
	TRY(e, connect(fd, (struct sockaddr *)&e->addr, e->addrlen));
	SET(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	count_threads(e, "connected");
	meet(e);
	close(fd);
	close(ep);
	count_threads(e, "closed");
}

static void before_use_peer(struct end *e)
{
	int fd = pick_up(e);

	meet(e);
	close(fd);
}

const struct test cases_threads[] = {
	{"thread_two_writers", 0, two_writers, two_writers_peer},
	{"thread_two_readers", 0, two_readers, two_readers_peer},
	{"thread_per_connection", RAW, per_connection, per_connection_peer},
	{"thread_cancelled", 0, cancelled, cancelled_peer},
	{"thread_cancelled_closes", 0, cancelled_closes, cancelled_closes_peer},
	{"thread_closed_cancels", 0, closed_cancels, closed_cancels_peer},
	{"thread_before_use", RAW | PROCS, before_use, before_use_peer},
	{NULL, 0, NULL, NULL},
};
