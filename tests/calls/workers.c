/* SPDX-License-Identifier: MIT */
/*
 * workers server MODE N	an echo server of several processes; prints "port P", ends with its standard input
 *	prefork			N children accept on one listener that they have inherited
 *	fork			the parent accepts, a child serves each connection (N is ignored)
 *	reuseport		N processes listen at one port each for itself
 *	orphans			as prefork, but the parent ends when its children are there
 *	passed			the listener is a program's that execs another one, which accepts
 * workers client PORT N BYTES	opens N connections, sends messages on them in turn and checks what comes back, until
 *				SIGTERM; prints "served COUNT"
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define CHILDREN 64
#define MOST 2
#define LIMIT 600	/* seconds: a client that hangs ends all the same */

static pid_t children[CHILDREN];
static int child_count;
static volatile sig_atomic_t ending;

static void on_term(int sig)
{
	(void)sig;
	ending = 1;
}

static _Noreturn void die(const char *what)
{
	perror(what);
	exit(1);
}

static int bound(int *port, int share)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				.sin_port = htons(*port)};
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &share, sizeof(share)) ||
	    bind(fd, (struct sockaddr *)&a, len) || getsockname(fd, (struct sockaddr *)&a, &len))
		die("bind");
	*port = ntohs(a.sin_port);
	return fd;
}

static int listener(int *port, int share)
{
	int fd = bound(port, share);

	if (listen(fd, 512))
		die("listen");
	return fd;
}

/* --- who serves --- */

static int echo(int fd)
{
	static char buf[65536];
	ssize_t r = recv(fd, buf, sizeof(buf), 0);

	for (ssize_t done = 0, sent; done < r; done += sent) {
		sent = send(fd, buf + done, r - done, MSG_NOSIGNAL);
		if (sent < 0)
			return 0;
	}
	return r > 0;
}

static void watch(int ep, int fd, unsigned int events)
{
	struct epoll_event ev = {.events = events, .data.fd = fd};

	if (epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev))
		die("epoll_ctl");
}

/* At most so many connections at once (0: any number), so that every worker has some. */
static void serve_many(int l, int most)
{
	int ep = epoll_create1(0), fd, open_now = 0;
	struct epoll_event ev[64];

	fcntl(l, F_SETFL, O_NONBLOCK);
	watch(ep, l, EPOLLIN | EPOLLEXCLUSIVE);
	while (!ending) {
		int n = epoll_wait(ep, ev, 64, -1);

		for (int i = 0; i < n; i++) {
			if (ev[i].data.fd != l && !echo(ev[i].data.fd)) {
				close(ev[i].data.fd);
				if (open_now-- == most)
					watch(ep, l, EPOLLIN | EPOLLEXCLUSIVE);
			}
			if (ev[i].data.fd != l || (fd = accept(l, NULL, NULL)) < 0)
				continue;
			watch(ep, fd, EPOLLIN);
			if (++open_now == most)
				epoll_ctl(ep, EPOLL_CTL_DEL, l, NULL);
		}
	}
	exit(0);
}

static pid_t new_child(void)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid && child_count < CHILDREN)
		children[child_count++] = pid;
	return pid;
}

static void fork_for_each(int l)
{
	while (!ending) {
		int fd = accept(l, NULL, NULL);

		if (fd < 0)
			continue;
		if (!fork()) {
			close(l);
			while (echo(fd))
				;
			close(fd);
			exit(0);
		}
		close(fd);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
	exit(0);
}

/* --- who starts them --- */

static void exec_self(int l)
{
	char number[20];

	snprintf(number, sizeof(number), "%d", l);
	execl("/proc/self/exe", "workers", "inherited", number, (char *)NULL);
	die("exec");
}

/* The port. */
static int start(const char *mode, int n)
{
	int port = 0, reuse = !strcmp(mode, "reuseport");
	int l = reuse ? bound(&port, 1) : listener(&port, 0), ready[2];
	char c;

	if (pipe(ready))
		die("pipe");
	for (int i = 0; i < n; i++) {
		if (new_child())
			continue;
		if (reuse)
			l = listener(&port, 1);
		if (write(ready[1], "", 1) != 1)
			die("write");
		if (!strcmp(mode, "passed"))
			exec_self(l);
		if (!strcmp(mode, "fork"))
			fork_for_each(l);
		serve_many(l, reuse ? 0 : MOST);
	}
	for (int i = 0; i < n; i++)
		if (read(ready[0], &c, 1) != 1)
			die("read");
	return port;
}

/* Another process starts them, and ends. */
static int start_orphans(int n)
{
	int over[2], port;

	if (pipe(over))
		die("pipe");
	if (!fork()) {
		port = start("orphans", n);
		if (write(over[1], &port, sizeof(port)) < 0 || write(over[1], children, sizeof(children)) < 0)
			die("write");
		exit(0);
	}
	child_count = n;
	if (wait(NULL) < 0 || read(over[0], &port, sizeof(port)) < 0 || read(over[0], children, sizeof(children)) < 0)
		die("read");
	return port;
}

static int server(const char *mode, int n)
{
	char c;

	printf("port %d\n", strcmp(mode, "orphans") ? start(mode, strcmp(mode, "fork") ? n : 1) : start_orphans(n));
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	for (int i = 0; i < child_count; i++)
		kill(children[i], SIGTERM);
	while (wait(NULL) > 0)
		;
	return 0;
}

/* --- the other end --- */

static int dial(int port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				.sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)))
		die("connect");
	return fd;
}

/* Blocked, so that it interrupts no call. */
static int asked_to_end(void)
{
	sigset_t pending;

	return !sigpending(&pending) && sigismember(&pending, SIGTERM);
}

static int client(int port, int n, int bytes)
{
	char *out = malloc(bytes), *in = malloc(bytes);
	int *fd = calloc(n, sizeof(*fd));
	sigset_t term;
	long served = 0;

	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, NULL);
	alarm(LIMIT);
	for (int i = 0; i < n; i++)
		fd[i] = dial(port);
	for (int round = 0; !asked_to_end(); round++) {
		for (int i = 0; i < n; i++) {
			memset(out, round + 7 * i, bytes);
			if (send(fd[i], out, bytes, MSG_NOSIGNAL) != bytes ||
			    recv(fd[i], in, bytes, MSG_WAITALL) != bytes || memcmp(in, out, bytes))
				die("exchange");
			served++;
		}
	}
	for (int i = 0; i < n; i++)
		close(fd[i]);
	printf("served %ld\n", served);
	return 0;
}

int main(int argc, char **argv)
{
	sigaction(SIGTERM, &(struct sigaction){.sa_handler = on_term}, NULL);
	if (argc == 4 && !strcmp(argv[1], "server"))
		return server(argv[2], atoi(argv[3]));
	if (argc == 5 && !strcmp(argv[1], "client"))
		return client(atoi(argv[2]), atoi(argv[3]), atoi(argv[4]));
	if (argc == 3 && !strcmp(argv[1], "inherited"))
		serve_many(atoi(argv[2]), MOST);
	fprintf(stderr, "usage: workers server MODE N | client PORT N BYTES\n");
	return 2;
}
