/* Connections that several processes hold: fork, exec, passing. */
#include "cases.h"

#include <signal.h>
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

/* The child goes on with the connection, the parent closes it: nobody notices. */
static void child_takes_over(struct end *e)
{
	pid_t pid;

	ask(e, e->fd);
	pid = MUST(e, fork());
	if (!pid) {
		become(e, "child");
		for (int i = 0; i < 500; i++) {
			MUST(e, send(e->fd, "echo", 4, 0));
			get(e, e->fd, &(char[4]){0}, 4);
		}
		ask(e, e->fd);
		_exit(0);
	}
	TRY(e, close(e->fd));
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
		int fd = dial(e);

		warm(e, fd);
		for (int k = 0; k < 200; k++) {
			MUST(e, send(fd, "echo", 4, 0));
			get(e, fd, &(char[4]){0}, 4);
		}
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

	for (int i = 0; i < 2; i++) {
		fd[i] = dial(e);
		warm(e, fd[i]);
	}
	for (int i = 0; i < 200; i++) {
		MUST(e, send(fd[i & 1], "echo", 4, 0));
		get(e, fd[i & 1], &(char[4]){0}, 4);
	}
	ask(e, fd[0]);
	ask(e, fd[1]);
	close(fd[0]);
	close(fd[1]);
	await(e);
}

int cases_exec(int fd)
{
	struct end e = {.name = "new program", .fd = fd, .out = 1};

	alarm(20);
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
	fd = dial(e);
	warm(e, fd);
	ask(e, fd);
	send_fd(e, sv[0], fd);
	TRY(e, close(fd));
	MUST(e, write(sv[0], "g", 1));
	reap(e, pid);
}

static void passed_peer(struct end *e)
{
	e->fd = pick_up(e);
	warm(e, e->fd);
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
	{NULL, 0, NULL, NULL},
};
