/* SPDX-License-Identifier: MIT */
/*
 * A connection that a fork has given two owners, and one of them is stopped: by a signal, a debugger, a freezer. The other
 * goes on at once, and so does the first when it is continued.
 */
#include "cases.h"

#include <dirent.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#define MUCH (1 << 20)
#define READ_BEFORE 1000

static int is_thread_stopped(pid_t pid, const char *task)
{
	char path[300], line[512];
	FILE *file;
	char *state = NULL;

	snprintf(path, sizeof(path), "/proc/%d/task/%s/stat", (int)pid, task);
	file = fopen(path, "re");
	if (file && fgets(line, sizeof(line), file))
		state = strrchr(line, ')');
	if (file)
		fclose(file);
	return state && state[2] == 'T';
}

/* Its threads are stopped one by one, and one that is not yet takes bytes. */
static int is_stopped(pid_t pid)
{
	char path[64];
	struct dirent *task;
	int awake_ones = 0;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	while (tasks && (task = readdir(tasks)))
		awake_ones += task->d_name[0] != '.' && !is_thread_stopped(pid, task->d_name);
	if (tasks)
		closedir(tasks);
	return tasks && !awake_ones;
}

static int awake[2];	/* the parent calls nothing before it has been stopped and woken */

/* 0 in the child, whose parent is stopped from here on until the child wakes it. */
static pid_t fork_and_stop(struct end *e)
{
	pid_t pid;
	char c;

	MUST(e, pipe2(awake, O_CLOEXEC));
	pid = MUST(e, fork());
	if (pid) {
		MUST(e, read(awake[0], &c, 1));
		close_both(awake);
		return pid;
	}
	become(e, "child");
	MUST(e, kill(getppid(), SIGSTOP));
	while (!is_stopped(getppid()))
		usleep(200);
	return 0;
}

static void wake(struct end *e)
{
	MUST(e, write(awake[1], "w", 1));
	MUST(e, kill(getppid(), SIGCONT));
}

/* The child serves the connection, as in a server that forks for each. */
static void serves(struct end *e)
{
	pid_t pid;

	ask(e, e->fd);
	pid = fork_and_stop(e);
	if (!pid) {
		for (int i = 0; i < 3; i++)
			ask(e, e->fd);
		wake(e);
		_exit(0);
	}
	reap(e, pid);
	ask(e, e->fd);
	finish(e, e->fd);
}

/* Bytes have come that nobody has read yet. */
static void unread(struct end *e)
{
	pid_t pid;

	have(e, 10);
	show(e, e->fd, 3, 0);
	pid = fork_and_stop(e);
	if (!pid) {
		show(e, e->fd, 2, MSG_DONTWAIT);
		show(e, e->fd, 3, MSG_PEEK | MSG_WAITALL);
		wake(e);
		_exit(0);
	}
	reap(e, pid);
	show(e, e->fd, 5, MSG_WAITALL);
	ask(e, e->fd);
	finish(e, e->fd);
}

static void unread_peer(struct end *e)
{
	put(e, e->fd, "0123456789");
	meet(e);
	echo_peer(e);
}

/* More than a ring holds is on its way, both ways. */
static void much(struct end *e)
{
	pid_t pid;

	recv_pattern(e, e->fd, 0, READ_BEFORE, READ_BEFORE);
	pid = fork_and_stop(e);
	if (!pid) {
		recv_pattern(e, e->fd, READ_BEFORE, MUCH - READ_BEFORE, 30000);
		send_pattern(e, e->fd, 0, MUCH, 30000);
		wake(e);
		_exit(0);
	}
	reap(e, pid);
	send_pattern(e, e->fd, MUCH, MUCH, 30000);
	finish(e, e->fd);
}

static void much_peer(struct end *e)
{
	send_pattern(e, e->fd, 0, MUCH, 30000);
	recv_pattern(e, e->fd, 0, 2 * MUCH, 30000);
	drain(e, e->fd);
}

/* The child is killed behind its last byte, and the parent says more. */
static void killed(struct end *e)
{
	pid_t pid;

	ask(e, e->fd);
	pid = fork_and_stop(e);
	if (!pid) {
		put(e, e->fd, "chil");
		wake(e);
		raise(SIGKILL);
	}
	reap(e, pid);
	put(e, e->fd, "pare");
	show(e, e->fd, 8, MSG_WAITALL);
	finish(e, e->fd);
}

/* The parent's first call ends its direction; its second closes the connection. */
static void shuts(struct end *e)
{
	pid_t pid;

	ask(e, e->fd);
	pid = fork_and_stop(e);
	if (!pid) {
		put(e, e->fd, "chil");
		wake(e);
		_exit(0);
	}
	TRY(e, shutdown(e->fd, SHUT_WR));
	show(e, e->fd, 4, MSG_WAITALL);
	show(e, e->fd, 4, 0);
	close(e->fd);
	reap(e, pid);
}

/* The parent closes it, and the child is the last. */
static void closes(struct end *e)
{
	int go[2];
	pid_t pid;
	char c = 0;

	MUST(e, pipe2(go, O_CLOEXEC));
	ask(e, e->fd);
	pid = fork_and_stop(e);
	if (!pid) {
		close(go[1]);
		ask(e, e->fd);
		wake(e);
		(void)!read(go[0], &c, 1);
		ask(e, e->fd);
		finish(e, e->fd);
		_exit(0);
	}
	close(e->fd);
	close_both(go);
	reap(e, pid);
}

/* A thread of the parent waits for bytes, and has those that come when it is awake again. */
static void waits(struct end *e)
{
	struct job j;
	pid_t pid;

	ask(e, e->fd);
	job_sleeps(e, &j, job_recv, e->fd);
	pid = fork_and_stop(e);
	if (!pid) {
		ask(e, e->fd);
		wake(e);
		_exit(0);
	}
	reap(e, pid);
	put(e, e->fd, "echo");
	job_report(e, "recv", &j);
	finish(e, e->fd);
}

/* So does a set of the parent. */
static void watches(struct end *e)
{
	int ep = set_of(e, e->fd, EPOLLIN);
	pid_t pid;

	ask(e, e->fd);
	wait_on(e, ep, 0);
	pid = fork_and_stop(e);
	if (!pid) {
		ask(e, e->fd);
		wake(e);
		_exit(0);
	}
	reap(e, pid);
	put(e, e->fd, "echo");
	wait_on(e, ep, 5000);
	show(e, e->fd, 4, 0);
	wait_on(e, ep, 0);
	shutdown(e->fd, SHUT_WR);
	wait_on(e, ep, 5000);
	show(e, e->fd, 4, 0);
	close(ep);
}

/* Two children, one after the other, have it from a parent that never used it in between. */
static void twice(struct end *e)
{
	pid_t pid;

	ask(e, e->fd);
	for (int i = 0; i < 2; i++) {
		pid = fork_and_stop(e);
		if (!pid) {
			ask(e, e->fd);
			wake(e);
			_exit(0);
		}
		reap(e, pid);
	}
	ask(e, e->fd);
	finish(e, e->fd);
}

/* The child is the parent's, and the parent its child's child's: a daemon's second fork. */
static void grandchild(struct end *e)
{
	pid_t pid, parent = getpid();

	ask(e, e->fd);
	pid = MUST(e, fork());
	if (!pid) {
		pid = MUST(e, fork());
		if (pid) {
			MUST(e, waitpid(pid, NULL, 0));
			_exit(0);
		}
		become(e, "grandchild");
		MUST(e, kill(parent, SIGSTOP));
		while (!is_stopped(parent))
			usleep(200);
		ask(e, e->fd);
		MUST(e, kill(parent, SIGCONT));
		_exit(0);
	}
	reap(e, pid);
	ask(e, e->fd);
	finish(e, e->fd);
}

const struct test cases_stopped[] = {
	{"stopped_serves", PROCS, serves, echo_peer},
	/* With flips TCP goes on behind unread bytes of the link, which the owner alone can read: the child waits for it. */
	{"stopped_unread", PROCS | NOFLIP, unread, unread_peer},
	{"stopped_much", PROCS | NOFLIP, much, much_peer},
	{"stopped_killed", PROCS, killed, echo_peer},
	{"stopped_shuts", PROCS, shuts, echo_peer},
	{"stopped_closes", PROCS, closes, echo_peer},
	{"stopped_waits", PROCS, waits, echo_peer},
	{"stopped_watches", PROCS, watches, echo_peer},
	{"stopped_twice", PROCS, twice, echo_peer},
	{"stopped_grandchild", PROCS, grandchild, echo_peer},
	{NULL, 0, NULL, NULL},
};
