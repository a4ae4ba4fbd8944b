/* SPDX-License-Identifier: MIT */
/* Connections that several processes hold: fork, exec, passing. */
#include "cases.h"

#include <dirent.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* The child writes, the parent reads. */
static void child_writes(struct end *e)
{
	pid_t pid;

	ask(e, e->fd);
	pid = MUST(e, fork());
	if (!pid) {
		become(e, "child");
		TRY(e, send(e->fd, "from the child", 14, 0));
		_exit(7);
	}
	reap(e, pid);
	show(e, e->fd, 14, MSG_WAITALL);
	ask(e, e->fd);
	TRY(e, close(e->fd));
}

/* The child goes on with the connection, the parent closes it: nobody notices. The child speaks of it after that. */
static void child_takes_over(struct end *e)
{
	int closed[2];
	pid_t pid;
	char c;

	ask(e, e->fd);
	MUST(e, pipe(closed));
	pid = MUST(e, fork());
	if (!pid) {
		become(e, "child");
		ask_often(e, e->fd, 500);
		MUST(e, read(closed[0], &c, 1));
		ask(e, e->fd);
		_exit(0);
	}
	TRY(e, close(e->fd));
	MUST(e, write(closed[1], "c", 1));
	close_both(closed);
	reap(e, pid);
}

/* Parent and child take turns. */
static void turns(struct end *e)
{
	int p[2], q[2];
	pid_t pid;
	char c;

	MUST(e, pipe(p));
	MUST(e, pipe(q));
	pid = MUST(e, fork());
	if (!pid)
		become(e, "child");
	for (int i = 0; i < 5; i++) {
		if (!pid)
			MUST(e, read(p[0], &c, 1));
		ask(e, e->fd);
		MUST(e, write(pid ? p[1] : q[1], "t", 1));
		if (pid)
			MUST(e, read(q[0], &c, 1));
	}
	if (!pid)
		_exit(0);
	reap(e, pid);
	TRY(e, close(e->fd));
}

/* accept, fork, the child serves: twice. The tested end is the client. */
static void served(struct end *e)
{
	for (int i = 0; i < 2; i++) {
		int fd = dial_warm(e);

		ask_often(e, fd, 200);
		ask(e, fd);
		close(fd);
		await(e);
	}
}

static void served_peer(struct end *e)
{
	for (int i = 0; i < 2; i++) {
		pid_t pid;

		e->fd = pick_up(e);
		pid = MUST(e, fork());
		if (!pid) {
			become(e, "child");
			close(e->lfd);
			warm(e, e->fd);
			echo_peer(e);
			_exit(0);
		}
		close(e->fd);
		reap(e, pid);
		tell(e);
	}
}

static void echo_silently(struct end *e)
{
	char buf[100];
	ssize_t r;

	while ((r = recv(e->fd, buf, sizeof(buf), 0)) > 0)
		MUST(e, send(e->fd, buf, r, MSG_NOSIGNAL));
	_exit(r ? 6 : 5);
}

/* Children made before anything is accepted, each accepting for itself. */
static void prefork_peer(struct end *e)
{
	pid_t pid[2];

	for (int i = 0; i < 2; i++) {
		pid[i] = MUST(e, fork());
		if (!pid[i]) {
			e->fd = pick_up(e);
			close(e->lfd);
			warm(e, e->fd);
			echo_silently(e);
		}
	}
	close(e->lfd);
	for (int i = 0; i < 2; i++)
		reap(e, pid[i]);
	tell(e);
}

static void prefork(struct end *e)
{
	int fd[2];

	for (int i = 0; i < 2; i++)
		fd[i] = dial_warm(e);
	for (int i = 0; i < 200; i++)
		ask_often(e, fd[i & 1], 1);
	ask(e, fd[0]);
	ask(e, fd[1]);
	close(fd[0]);
	close(fd[1]);
	await(e);
}

int cases_exec(int fd)
{
	struct end e = {.name = "new program", .fd = fd, .out = 1};

	alarm(200);
	ask(&e, fd);
	show(&e, fd, 1, MSG_DONTWAIT);
	return 0;
}

static void exec_self(struct end *e)
{
	char number[20];

	snprintf(number, sizeof(number), "%d", e->fd);
	MUST(e, fcntl(e->fd, F_SETFD, 0));
	execl("/proc/self/exe", "cases", "exec", number, (char *)NULL);
}

/* The program is replaced and the new one goes on with the connection. */
static void exec_goes_on(struct end *e)
{
	ask(e, e->fd);
	exec_self(e);
}

/* The child becomes another program, then the parent goes on. */
static void spawned(struct end *e)
{
	pid_t pid;

	ask(e, e->fd);
	pid = MUST(e, fork());
	if (!pid) {
		exec_self(e);
		_exit(1);
	}
	reap(e, pid);
	ask(e, e->fd);
	TRY(e, close(e->fd));
}

/* exec closes what is FD_CLOEXEC: the peer sees the end. */
static void exec_closes(struct end *e)
{
	ask(e, e->fd);
	MUST(e, fcntl(e->fd, F_SETFD, FD_CLOEXEC));
	execl("/bin/true", "true", (char *)NULL);
}

/* A child without a part in the connection that outlives its parent keeps it open. */
static void held_by_child(struct end *e)
{
	int p[2];
	pid_t pid;
	char c;

	MUST(e, pipe(p));
	ask(e, e->fd);
	pid = MUST(e, fork());
	if (!pid) {
		close(p[1]);
		if (read(p[0], &c, 1) < 0)
			_exit(1);
		_exit(0);
	}
	TRY(e, close(e->fd));
	tell(e);
	await(e);
	close(p[1]);
	reap(e, pid);
}

static void held_by_child_peer(struct end *e)
{
	show(e, e->fd, 4, 0);
	put(e, e->fd, "echo");
	await(e);
	bits(e, "poll", polled(e->fd, POLLIN | POLLRDHUP, settle()));
	tell(e);
	show(e, e->fd, 1, 0);
}

/* The connection is passed to a process that was made before it. */
static void passed(struct end *e)
{
	int sv[2], fd;
	pid_t pid;
	char c;

	MUST(e, socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	pid = MUST(e, fork());
	if (!pid) {
		become(e, "child");
		close(sv[0]);
		fd = recv_fd(e, sv[1]);
		MUST(e, read(sv[1], &c, 1));
		ask(e, fd);
		_exit(0);
	}
	close(sv[1]);
	fd = dial_warm(e);
	ask(e, fd);
	send_fd(e, sv[0], fd);
	TRY(e, close(fd));
	MUST(e, write(sv[0], "g", 1));
	reap(e, pid);
}

static void passed_peer(struct end *e)
{
	e->fd = pick_up_warm(e);
	echo_peer(e);
}

/* Open descriptors beyond those of a program that has few. No malloc: after _Fork() its lock may be another thread's. */
static int high_numbers(void)
{
	_Alignas(struct dirent64) char buf[4096];
	int dir = open("/proc/self/fd", O_RDONLY | O_DIRECTORY), high = 0;
	long got;

	while ((got = syscall(SYS_getdents64, dir, buf, sizeof(buf))) > 0)
		for (char *p = buf; p < buf + got; p += ((struct dirent64 *)p)->d_reclen)
			high += atoi(((struct dirent64 *)p)->d_name) >= 500;
	close(dir);
	return high;
}

/* A child has what its program opened, and nothing else that would outlive its parent. */
static void inherited(struct end *e)
{
	for (int i = 0; i < 2; i++) {
		pid_t pid;

		ask(e, e->fd);
		pid = MUST(e, i ? _Fork() : fork());
		if (!pid)
			_exit(high_numbers());
		reap(e, pid);
	}
	finish(e, e->fd);
}

static pid_t forked;

static void fork_in_handler(int sig)
{
	(void)sig;
	forked = fork();
}

/* The child comes back from the handler into the call as its parent does, and that is the end of it. */
static void in_handler(struct end *e, void (*work)(struct job *j), const char *what)
{
	struct sigaction action = {.sa_handler = fork_in_handler};
	struct job j;

	MUST(e, sigaction(SIGUSR1, &action, NULL));
	job_hit(e, &j, work, e->fd);
	job_report(e, what, &j);
	reap(e, forked);
}

static void end_of_child(struct job *j)
{
	if (!forked)
		_exit(j->result < 0 && j->err == EINTR ? 0 : 1);
}

static void recv_forked(struct job *j)
{
	job_recv(j);
	end_of_child(j);
}

static void poll_forked(struct job *j)
{
	job_poll(j);
	end_of_child(j);
}

static void epoll_forked(struct job *j)
{
	job_epoll(j);
	end_of_child(j);
}

static void forked_in_handler(struct end *e)
{
	in_handler(e, recv_forked, "recv");
	in_handler(e, poll_forked, "poll");
	in_handler(e, epoll_forked, "epoll_wait");
	finish(e, e->fd);
}

#define OWN (150 << 20)	/* bytes that a program with limited memory needs */
#define OTHERS (100 << 20)	/* that libraries may have beside it */

static size_t mapped(struct end *e)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	MUST(e, f && fscanf(f, "%lu", &pages) == 1 ? 0 : -1);
	fclose(f);
	return pages * sysconf(_SC_PAGESIZE);
}

/* No more address space than what there was, and what is needed. */
static void confine(struct end *e, size_t before)
{
	struct rlimit limit;

	MUST(e, getrlimit(RLIMIT_AS, &limit));
	limit.rlim_cur = before + OWN + OTHERS;
	MUST(e, setrlimit(RLIMIT_AS, &limit));
}

static bool has_room(void)
{
	void *p = mmap(NULL, OWN, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p != MAP_FAILED && !munmap(p, OWN);
}

/* Each connection is asked so often that it could have gone anywhere meanwhile. */
static void confined(struct end *e)
{
	int rooms = 0, fd;

	confine(e, mapped(e));
	fd = dial(e);
	for (int i = 0; i < 2000; i++) {
		ask_often(e, fd, 1);
		rooms += has_room();
	}
	say(e, "room %d times", rooms);
	finish(e, fd);
}

static void confined_peer(struct end *e)
{
	e->fd = pick_up(e);
	echo_peer(e);
}

/* As vsftpd: a process for each connection, with no more memory than it should need; its parent has one, too. */
static void confined_child(struct end *e)
{
	size_t before = mapped(e);
	int rooms = 0, n = 0, own = dial(e), fd;
	pid_t pid;

	ask_often(e, own, 2000);
	fd = dial(e);
	pid = MUST(e, fork());
	if (pid) {
		close(fd);
		reap(e, pid);
		finish(e, own);
		return;
	}
	become(e, "child");
	close(own);
	confine(e, before);
	for (; n < 2000; n++) {
		ask_often(e, fd, 1);
		rooms += has_room();
	}
	say(e, "room %d times", rooms);
	_exit(0);
}

static void confined_child_peer(struct end *e)
{
	int own = pick_up(e);
	char buf[4];

	for (int n = 0; n < 2000; n++) {
		get(e, own, buf, 4);
		MUST(e, send(own, buf, 4, 0));
	}
	e->fd = pick_up(e);
	echo_peer(e);
	e->fd = own;
	echo_peer(e);
}

const struct test cases_processes[] = {
	{"process_child_writes", PROCS, child_writes, echo_peer},
	{"process_child_takes_over", PROCS, child_takes_over, echo_peer},
	{"process_turns", PROCS, turns, echo_peer},
	{"process_served", PROCS | RAW, served, served_peer},
	{"process_prefork", PROCS | RAW, prefork, prefork_peer},
	{"process_exec", PROCS, exec_goes_on, echo_peer},
	{"process_spawned", PROCS, spawned, echo_peer},
	{"process_exec_closes", PROCS, exec_closes, echo_peer},
	{"process_held_by_child", PROCS, held_by_child, held_by_child_peer},
	{"process_passed", PROCS | RAW, passed, passed_peer},
	{"process_inherited", PROCS, inherited, echo_peer},
	{"process_confined", PROCS | RAW, confined, confined_peer},
	{"process_confined_child", PROCS | RAW, confined_child, confined_child_peer},
	{"process_forked_in_handler", PROCS, forked_in_handler, echo_peer},
	{NULL, 0, NULL, NULL},
};
