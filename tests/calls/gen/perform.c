/* SPDX-License-Identifier: MIT */
/* Making a call: here or in a second thread, for ourselves or for the other process. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "gen.h"

int fds[CONNS][2], listener = -1, sets[SETS];

static void perform(const struct cmd *c, struct reply *r)
{
	int fd = fds[c->conn][c->dup];

	memset(r, 0, sizeof(*r));
	errno = 0;
	if (c->kind <= RECV_NOTHING || c->kind == WAIT_RECV)
		move(c, r, fd);
	else if (c->kind < KINDS)
		ask(c, r, fd);
	else
		arrange(c, r);
	r->err = r->r < 0 ? errno : 0;
}

/* The second thread of each process. */
static struct cmd job;
static struct reply job_reply;
static int job_state;	/* 1 to do, 2 done */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void state(int from, int to)
{
	pthread_mutex_lock(&lock);
	while (job_state != from)
		pthread_cond_wait(&changed, &lock);
	job_state = to;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static void *second(void *arg)
{
	for (;;) {
		pthread_mutex_lock(&lock);
		while (job_state != 1)
			pthread_cond_wait(&changed, &lock);
		pthread_mutex_unlock(&lock);
		perform(&job, &job_reply);
		state(1, 2);
	}
	return arg;
}

void start_second(void)
{
	pthread_t t;

	pthread_create(&t, NULL, second, NULL);
}

void here(const struct cmd *c, struct reply *r)
{
	if (!c->thread && c->kind != JOIN) {
		perform(c, r);
		return;
	}
	if (c->kind != JOIN) {
		job = *c;
		state(0, 1);
	}
	memset(r, 0, sizeof(*r));
	if (c->start)
		return;
	state(2, 0);
	*r = job_reply;
}

void all(int fd, void *what, size_t len, int out)
{
	if ((out ? send(fd, what, len, MSG_NOSIGNAL) : recv(fd, what, len, MSG_WAITALL)) != (ssize_t)len)
		_exit(3);
}

static int keep(int fd)
{
	if (fd > 0)
		fcntl(fd, F_SETFD, 0);
	return fd;
}

static void execute(void)
{
	char numbers[2 * CONNS + 1][12], *argv[2 * CONNS + 4] = {"gen", "other"};

	for (int i = 0; i < 2 * CONNS; i++)
		sprintf(numbers[i], "%d", keep(fds[i / 2][i % 2]));
	sprintf(numbers[2 * CONNS], "%d", keep(listener));
	for (int i = 0; i <= 2 * CONNS; i++)
		argv[2 + i] = numbers[i];
	execv("/proc/self/exe", argv);
	_exit(3);
}

/* Behind an exec. */
static void resume(char **kept)
{
	struct reply r = {0};

	for (int i = 0; i < 2 * CONNS; i++)
		fds[i / 2][i % 2] = atoi(kept[i]);
	listener = atoi(kept[2 * CONNS]);
	for (int i = 0; i <= 2 * CONNS; i++)
		if (atoi(kept[i]) > 0)
			fcntl(atoi(kept[i]), F_SETFD, FD_CLOEXEC);
	for (int i = 0; i < SETS; i++)
		sets[i] = epoll_create1(EPOLL_CLOEXEC);
	all(0, &r, sizeof(r), 1);
}

int other(char **kept)
{
	struct cmd c;
	struct reply r;

	if (*kept)
		resume(kept);
	start_second();
	for (;;) {
		all(0, &c, sizeof(c), 0);
		if (c.kind == QUIT)
			return 0;
		if (c.kind == EXEC)
			execute();
		here(&c, &r);
		all(0, &r, sizeof(r), 1);
	}
}
