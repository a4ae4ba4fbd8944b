/* SPDX-License-Identifier: MIT */
/* One connection in several hands: other processes, other programs, messages that carry it. */
#include "cases.h"

#include <sys/epoll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern char **environ;

/* Through a socketpair to the same process: another number for the same. */
static void to_itself(struct end *e)
{
	int sv[2], fd;

	MUST(e, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv));
	ask(e, e->fd);
	send_fd(e, sv[0], e->fd);
	fd = recv_fd(e, sv[1]);
	ask(e, fd);
	ask(e, e->fd);
	close(e->fd);
	ask(e, fd);
	finish(e, fd);
	close(fd);
	close_both(sv);
}

/* Sent away and closed before anybody took it: it lives in the message. */
static void on_its_way(struct end *e)
{
	int sv[2], fd;

	MUST(e, socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, sv));
	ask(e, e->fd);
	send_fd(e, sv[0], e->fd);
	close(e->fd);
	meet(e);
	fd = recv_fd(e, sv[1]);
	ask(e, fd);
	close(fd);
	close_both(sv);
}

static void met_echo_peer(struct end *e)
{
	char buf[4];

	get(e, e->fd, buf, 4);
	put(e, e->fd, "echo");
	bits(e, "after", polled(e->fd, POLLRDHUP, 0));
	meet(e);
	echo_peer(e);
}

/* Thrown away with its message: that is a close. */
static void thrown_away(struct end *e)
{
	int sv[2];

	MUST(e, socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, sv));
	ask(e, e->fd);
	send_fd(e, sv[0], e->fd);
	close(e->fd);
	meet(e);
	close_both(sv);
}

/* Taken by another process, which asked for it by number. */
static void taken(struct end *e)
{
	int p[2];
	pid_t parent = getpid(), pid;
	char c = 0;

	MUST(e, pipe2(p, O_CLOEXEC));
	ask(e, e->fd);
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	pid = MUST(e, fork());
	if (!pid) {
		int number = e->fd, pidfd, fd;

		become(e, "child");
		close(number);
		pidfd = syscall(SYS_pidfd_open, parent, 0);
		fd = syscall(SYS_pidfd_getfd, pidfd, number, 0);
		if (fd < 0) {
			result(e, "pidfd_getfd", fd);
			_exit(0);
		}
		TRY(e, send(fd, "echo", 4, 0));
		if (polled(fd, POLLIN, 1000))
			show(e, fd, 4, MSG_WAITALL);
		close(fd);
		_exit(0);
	}
	close(p[1]);
	(void)!read(p[0], &c, 1);
	reap(e, pid);
	finish(e, e->fd);
}

static int run(struct end *e, const char *command, int fd)
{
	posix_spawn_file_actions_t a;
	char *argv[] = {"sh", "-c", (char *)command, NULL};
	pid_t pid;

	posix_spawn_file_actions_init(&a);
	posix_spawn_file_actions_adddup2(&a, fd, 0);
	posix_spawn_file_actions_adddup2(&a, fd, 1);
	errno = posix_spawn(&pid, "/bin/sh", &a, NULL, argv, environ);
	MUST(e, errno ? -1 : 0);
	posix_spawn_file_actions_destroy(&a);
	return pid;
}

/* As inetd: the connection is the program's standard input and output. */
static void inetd(struct end *e)
{
	char buf[20];

	get(e, e->fd, buf, 6);
	reap(e, run(e, "read line; echo \"got $line\"; cat", e->fd));
	close(e->fd);
}

static void inetd_peer(struct end *e)
{
	put(e, e->fd, "hello\nand a line\nand more\n");
	shutdown(e->fd, SHUT_WR);
	show(e, e->fd, 24, MSG_WAITALL);
	show(e, e->fd, 24, 0);
}

/* Programs one after the other, the connection goes on behind them. */
static void by_turns(struct end *e)
{
	for (int i = 0; i < 3; i++) {
		ask(e, e->fd);
		reap(e, run(e, "echo from a shell; read line", e->fd));
	}
	finish(e, e->fd);
}

/* Through system(), which forks behind our back; number and all. */
static void shell(struct end *e)
{
	char line[60];

	ask(e, e->fd);
	MUST(e, fcntl(e->fd, F_SETFD, 0));
	snprintf(line, sizeof(line), "echo a line >&%d", e->fd);
	TRY(e, system(line));
	MUST(e, fcntl(e->fd, F_SETFD, FD_CLOEXEC));
	show(e, e->fd, 7, MSG_WAITALL);
	ask(e, e->fd);
	finish(e, e->fd);
}

static void pipe_to(struct end *e)
{
	char line[60];
	FILE *f;

	ask(e, e->fd);
	MUST(e, fcntl(e->fd, F_SETFD, 0));
	snprintf(line, sizeof(line), "cat >&%d", e->fd);
	f = popen(line, "we");
	fputs("by a pipe", f);
	TRY(e, pclose(f));
	show(e, e->fd, 9, MSG_WAITALL);
	finish(e, e->fd);
}

/* vfork and exec; the parent goes on afterwards. */
static void vforked(struct end *e)
{
	int fd = e->fd, status;
	pid_t pid;

	ask(e, fd);
	pid = vfork();
	if (!pid) {
		dup2(fd, 1);
		execl("/bin/echo", "echo", "a line", (char *)NULL);
		_exit(1);
	}
	MUST(e, waitpid(pid, &status, 0));
	say(e, "status %d", status);
	show(e, fd, 7, MSG_WAITALL);
	ask(e, fd);
	finish(e, fd);
}

/* A child of vfork that does nothing but end. */
static void vforked_exit(struct end *e)
{
	pid_t pid;
	int status;

	ask(e, e->fd);
	pid = vfork();
	if (!pid)
		_exit(7);
	MUST(e, waitpid(pid, &status, 0));
	say(e, "status %d", WEXITSTATUS(status));
	ask(e, e->fd);
	finish(e, e->fd);
}

static int close_it(void *fd)
{
	_exit(close(*(int *)fd) ? 1 : 8);
}

/* Descriptors of its own, in our memory, or in a copy of which no handler of fork() knows: the parent goes on. */
static void closed_by(struct end *e, pid_t child)
{
	int status;

	MUST(e, waitpid(child, &status, 0));
	say(e, "status %d", WEXITSTATUS(status));
	ask(e, e->fd);
}

static void closed_by_vforked(struct end *e)
{
	pid_t pid;

	ask(e, e->fd);
	pid = vfork();
	if (!pid)
		close_it(&e->fd);
	closed_by(e, pid);
	finish(e, e->fd);
}

static void closed_by_cloned(struct end *e)
{
	_Alignas(16) char stack[65536];

	ask(e, e->fd);
	closed_by(e, MUST(e, clone(close_it, stack + sizeof(stack), SIGCHLD, &e->fd)));
	closed_by(e, MUST(e, clone(close_it, stack + sizeof(stack), CLONE_VM | SIGCHLD, &e->fd)));
	finish(e, e->fd);
}

static void closed_by_raw_fork(struct end *e)
{
	pid_t pid;

	ask(e, e->fd);
	pid = MUST(e, (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
	if (!pid)
		close_it(&e->fd);
	closed_by(e, pid);
	finish(e, e->fd);
}

/* A daemon: two forks, a session of its own, standard descriptors on /dev/null. */
static void daemonized(struct end *e)
{
	int p[2];
	pid_t pid;
	char c;

	ask(e, e->fd);
	MUST(e, pipe2(p, O_CLOEXEC));
	pid = MUST(e, fork());
	if (!pid) {
		setsid();
		if (fork())
			_exit(0);
		become(e, "daemon");
		ask(e, e->fd);
		finish(e, e->fd);
		say(e, "end");
		(void)!write(p[1], "x", 1);
		_exit(0);
	}
	close(e->fd);
	close(p[1]);
	MUST(e, waitpid(pid, NULL, 0));
	TRY(e, read(p[0], &c, 1));
}

/* Parent and child write in turns, the child ends first. */
static void turns(struct end *e)
{
	int sv[2];
	pid_t pid;
	char c;

	MUST(e, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv));
	pid = MUST(e, fork());
	if (!pid) {
		for (int i = 0; i < 5; i++) {
			MUST(e, read(sv[1], &c, 1));
			put(e, e->fd, "chil");
			MUST(e, write(sv[1], "x", 1));
		}
		_exit(0);
	}
	for (int i = 0; i < 5; i++) {
		put(e, e->fd, "pare");
		MUST(e, write(sv[0], "x", 1));
		MUST(e, read(sv[0], &c, 1));
	}
	reap(e, pid);
	show(e, e->fd, 40, MSG_WAITALL);
	finish(e, e->fd);
}

/* The child is killed while it waits for bytes; they are the parent's then. */
static void killed_reader(struct end *e)
{
	pid_t pid = MUST(e, fork());
	char c;

	if (!pid) {
		(void)!recv(e->fd, &c, 1, 0);
		_exit(1);
	}
	usleep(20000);
	kill(pid, SIGKILL);
	reap(e, pid);
	ask(e, e->fd);
	finish(e, e->fd);
}

/* Two listeners on one port, in one process: each connection is accepted by one of them. */
static void reuseport(struct end *e)
{
	int l[2], one = 1, n = 0, fd[8], got;
	socklen_t len = sizeof(e->addr);
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	for (int i = 0; i < 2; i++) {
		l[i] = MUST(e, socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
		TRY(e, setsockopt(l[i], SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)));
		TRY(e, bind(l[i], (struct sockaddr *)&at, sizeof(at)));
		TRY(e, listen(l[i], 20));
		MUST(e, getsockname(l[i], (struct sockaddr *)&at, &len));
	}
	memcpy(&e->addr, &at, sizeof(at));
	e->addrlen = sizeof(at);
	for (int i = 0; i < 8; i++) {
		struct pollfd p[2] = {{.fd = l[0], .events = POLLIN}, {.fd = l[1], .events = POLLIN}};

		fd[i] = dial(e);
		MUST(e, poll(p, 2, -1));
		got = MUST(e, accept(p[0].revents ? l[0] : l[1], NULL, NULL));
		put(e, fd[i], "echo");
		show(e, got, 4, MSG_WAITALL);
		put(e, got, "back");
		show(e, fd[i], 4, MSG_WAITALL);
		close(got);
		show(e, fd[i], 4, 0);
		close(fd[i]);
		n++;
	}
	say(e, "%d served", n);
	close(l[0]);
	close(l[1]);
}

/* The listener is handed over, and the new owner accepts. */
static void listener_passed(struct end *e)
{
	int sv[2], l = make_listener(e, 0), fd, got;

	MUST(e, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv));
	send_fd(e, sv[0], l);
	close(l);
	l = recv_fd(e, sv[1]);
	GET(l, SOL_SOCKET, SO_ACCEPTCONN);
	fd = dial(e);
	got = accept(l, NULL, NULL) >= 0 ? 0 : -1;
	say(e, "accepted %d", got == 0);
	close(fd);
	close(l);
	close_both(sv);
}

/* A child closes what it does not need: what the parent waits for is not touched by that. */
static void child_closes(struct end *e)
{
	int l, ep, fd, got;
	pid_t pid;

	l = make_listener(e, SOCK_NONBLOCK | SOCK_CLOEXEC);
	fd = dial(e);
	MUST(e, polled(l, POLLIN, -1));
	got = MUST(e, accept(l, NULL, NULL));
	ep = set_of(e, l, EPOLLIN);
	add(e, ep, got, EPOLLIN, 2);
	wait_on(e, ep, 0);
	pid = MUST(e, fork());
	if (!pid) {
		close(l);
		close(got);
		close(ep);
		_exit(3);
	}
	reap(e, pid);
	put(e, fd, "echo");
	wait_on(e, ep, 5000);
	show(e, got, 4, MSG_WAITALL);
	close(dial(e));
	wait_on(e, ep, 5000);
	close(fd);
	close(got);
	close(l);
	close(ep);
}

/* --- flags and options: they belong to what the processes share --- */

/* A child makes a call on the connection, and ends. */
#define IN_CHILD(call)				\
	do {					\
		pid_t pid = MUST(e, fork());	\
						\
		if (!pid)			\
			_exit((call) == -1 ? 1 : 0);	\
		reap(e, pid);			\
	} while (0)

/* Until the peer sends four bytes. */
static void waits_for_four(struct end *e)
{
	struct job j;

	job_sleeps(e, &j, job_recv, e->fd);
	tell(e);
	job_report(e, "recv", &j);
}

static void nonblocking_by_child(struct end *e)
{
	int on = 1, off = 0;

	ask(e, e->fd);
	IN_CHILD(fcntl(e->fd, F_SETFL, O_RDWR | O_NONBLOCK));
	show(e, e->fd, 4, 0);
	IN_CHILD(fcntl(e->fd, F_SETFL, O_RDWR));
	waits_for_four(e);
	IN_CHILD(ioctl(e->fd, FIONBIO, &on));
	show(e, e->fd, 4, 0);
	IN_CHILD(syscall(SYS_ioctl, e->fd, FIONBIO, &off));
	waits_for_four(e);
	IN_CHILD(syscall(SYS_fcntl, e->fd, F_SETFL, O_RDWR | O_NONBLOCK));
	show(e, e->fd, 4, 0);
	nonblock(e, e->fd, 0);	/* by this process itself */
	waits_for_four(e);
	nonblock(e, e->fd, 1);
	show(e, e->fd, 4, 0);
	meet(e);
}

static void told_fours_peer(struct end *e)
{
	char buf[4];

	get(e, e->fd, buf, 4);
	put(e, e->fd, "echo");
	for (int i = 0; i < 3; i++) {
		await(e);
		put(e, e->fd, "four");
	}
	meet(e);
}

static void timeouts_by_child(struct end *e)
{
	struct timeval brief = { 0, 60000 }, never = { 0, 0 };
	struct job j;

	ask(e, e->fd);
	IN_CHILD(setsockopt(e->fd, SOL_SOCKET, SO_RCVTIMEO, &brief, sizeof(brief)));
	show(e, e->fd, 4, 0);
	IN_CHILD(setsockopt(e->fd, SOL_SOCKET, SO_RCVTIMEO, &never, sizeof(never)));
	IN_CHILD(setsockopt(e->fd, SOL_SOCKET, SO_SNDTIMEO, &brief, sizeof(brief)));
	waits_for_four(e);
	job_start(e, &j, job_send, e->fd);	/* the peer does not read */
	job_report(e, "send in the end", &j);
	meet(e);
}

static void told_four_peer(struct end *e)
{
	char buf[4];

	get(e, e->fd, buf, 4);
	put(e, e->fd, "echo");
	await(e);
	put(e, e->fd, "four");
	meet(e);
}

static void low_water_by_child(struct end *e)
{
	int three = 3;
	struct job j;

	ask(e, e->fd);
	IN_CHILD(setsockopt(e->fd, SOL_SOCKET, SO_RCVLOWAT, &three, sizeof(three)));
	have(e, 1);
	job_sleeps(e, &j, job_recv, e->fd);
	say(e, "done: %d", j.done);
	tell(e);
	job_report(e, "recv", &j);
}

/* The set has not been told, and no receive looks. */
static void low_water_by_child_epoll(struct end *e)
{
	int three = 3, ep = set_of(e, e->fd, EPOLLIN);

	ask(e, e->fd);
	IN_CHILD(setsockopt(e->fd, SOL_SOCKET, SO_RCVLOWAT, &three, sizeof(three)));
	have(e, 1);
	wait_on(e, ep, 0);
	tell(e);
	wait_on(e, ep, -1);
	show(e, e->fd, 4, 0);
	close(ep);
}

static void one_and_two_peer(struct end *e)
{
	char buf[4];

	get(e, e->fd, buf, 4);
	put(e, e->fd, "echo");
	put(e, e->fd, "1");
	meet(e);
	await(e);
	put(e, e->fd, "23");
}

/* The parent changes what the child uses. */
static void nonblocking_by_parent(struct end *e)
{
	int over[2], back[2];
	pid_t pid;
	char c;

	MUST(e, pipe(over));
	MUST(e, pipe(back));
	ask(e, e->fd);
	pid = MUST(e, fork());
	if (!pid) {
		become(e, "child");
		ask(e, e->fd);
		MUST(e, write(back[1], "x", 1));
		MUST(e, read(over[0], &c, 1));
		show(e, e->fd, 4, 0);
		_exit(0);
	}
	MUST(e, read(back[0], &c, 1));
	nonblock(e, e->fd, 1);
	MUST(e, write(over[1], "x", 1));
	reap(e, pid);
}

const struct test cases_share[] = {
	{"share_to_itself", 0, to_itself, echo_peer},
	{"share_on_its_way", PROCS, on_its_way, met_echo_peer},
	{"share_thrown_away", PROCS, thrown_away, met_echo_peer},
	{"share_taken", PROCS, taken, echo_peer},
	{"share_inetd", PROCS, inetd, inetd_peer},
	{"share_by_turns", PROCS, by_turns, echo_peer},
	{"share_shell", PROCS, shell, echo_peer},
	{"share_pipe_to", PROCS, pipe_to, echo_peer},
	{"share_vforked", PROCS, vforked, echo_peer},
	{"share_vforked_exit", 0, vforked_exit, echo_peer},
	{"share_closed_by_vforked", 0, closed_by_vforked, echo_peer},
	{"share_closed_by_cloned", 0, closed_by_cloned, echo_peer},
	{"share_closed_by_raw_fork", 0, closed_by_raw_fork, echo_peer},
	{"share_daemon", PROCS, daemonized, echo_peer},
	{"share_turns", PROCS, turns, echo_peer},
	{"share_killed_reader", PROCS, killed_reader, echo_peer},
	{"share_nonblocking_by_child", PROCS, nonblocking_by_child, told_fours_peer},
	{"share_timeouts_by_child", PROCS, timeouts_by_child, told_four_peer},
	{"share_low_water_by_child", PROCS, low_water_by_child, one_and_two_peer},
	{"share_low_water_by_child_epoll", PROCS, low_water_by_child_epoll, one_and_two_peer},
	{"share_nonblocking_by_parent", PROCS, nonblocking_by_parent, echo_peer},
	{"share_reuseport", ALONE, reuseport, NULL},
	{"share_listener_passed", ALONE, listener_passed, NULL},
	{"share_child_closes", ALONE, child_closes, NULL},
	{NULL, 0, NULL, NULL},
};
