/* SPDX-License-Identifier: MIT */
/*
 * anew accept|poll|select|epoll user|borrowed|narrowed|rights|filter|threads|threads-number [FD]:
 * listens, and confines itself as the second word says. Then it says "port N", waits for a
 * connection in the call of the first word, and echoes until it ends.
 * - user, rights: changes its user (to itself), or its rights.
 * - borrowed: acts as another user and comes back, then and for each request from the 10,001st on.
 * - narrowed: sets no_new_privs, at the same times.
 * - filter: sets a filter that allows everything.
 * - threads, threads-number: gives root up, and in each of several threads, at once, forbids itself
 *   new threads, as haproxy does.
 * With FD, by "passed", the listener is another program's, which execs this one.
 */
#define _GNU_SOURCE
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "tests/plain.h"

#define BEFORE 10000	/* requests: meanwhile the connection comes to the link */
#define TOGETHER 8	/* threads */

static void must(const char *what, int failed)
{
	if (failed)
		die(what);
}

/* As a file server does for each request: another user's ids, and its own again. */
static void borrow(void)
{
	int other = getuid() ? -1 : 65534;

	must("setgroups", getuid() ? 0 : setgroups(0, NULL));
	must("setresgid", (int)syscall(SYS_setresgid, -1, other, -1));
	must("setresuid", (int)syscall(SYS_setresuid, -1, other, -1));
	must("seteuid", seteuid(getuid()));
	must("setegid", setegid(getgid()));
	must("dumpable", prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));	/* the kernel has taken that away */
}

static void narrow(void)
{
	must("no_new_privs", prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
}

static pthread_barrier_t together;

static void *forbid_threads(void *by_number)
{
	struct rlimit none = {0, 0};

	narrow();
	pthread_barrier_wait(&together);
	must("RLIMIT_NPROC", by_number ? (int)syscall(SYS_prlimit64, 0, RLIMIT_NPROC, &none, NULL)
				       : setrlimit(RLIMIT_NPROC, &none));
	return NULL;
}

static void *nothing(void *unused)
{
	return unused;
}

static void be_haproxy(int by_number)
{
	pthread_t others[TOGETHER], other;

	must("pthread_barrier_init", pthread_barrier_init(&together, NULL, TOGETHER));
	if (!getuid()) {
		must("setgid", setgid(65534));
		must("setuid", setuid(65534));
	}
	for (int i = 0; i < TOGETHER; i++)
		must("pthread_create", pthread_create(&others[i], NULL, forbid_threads,
						      by_number ? others : NULL));
	for (int i = 0; i < TOGETHER; i++)
		must("pthread_join", pthread_join(others[i], NULL));
	must("pthread_barrier_init", pthread_barrier_init(&together, NULL, 1));
	forbid_threads(by_number ? others : NULL);
	must("a thread can be made", !pthread_create(&other, NULL, nothing, NULL));
}

static void change(const char *what)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2];
	struct sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog program = {1, allow};

	if (!strcmp(what, "user")) {
		must("setgroups", getuid() ? 0 : setgroups(0, NULL));
		must("setgid", setgid(getgid()));
		must("setuid", setuid(getuid()));
		return;
	}
	if (!strcmp(what, "borrowed")) {
		borrow();
		return;
	}
	if (!strncmp(what, "threads", 7)) {
		be_haproxy(what[7] != 0);
		return;
	}
	if (!strcmp(what, "narrowed"))
		return;
	for (int cap = 0; cap <= CAP_SETPCAP; cap++)	/* many calls are one change */
		if (prctl(PR_CAPBSET_READ, cap) == 1)
			(void)prctl(PR_CAPBSET_DROP, cap);
	must("capget", (int)syscall(SYS_capget, &head, data));
	must("capset", (int)syscall(SYS_capset, &head, data));
	narrow();
	if (!strcmp(what, "filter"))
		must("seccomp", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

static void await(const char *call, int ep, int listening)
{
	struct pollfd p = {.fd = listening, .events = POLLIN};
	struct epoll_event event;
	fd_set readable;

	FD_ZERO(&readable);
	FD_SET(listening, &readable);
	if (!strcmp(call, "poll"))
		must("poll", poll(&p, 1, -1) != 1);
	if (!strcmp(call, "select"))
		must("select", select(listening + 1, &readable, NULL, NULL, NULL) != 1);
	if (!strcmp(call, "epoll"))
		must("epoll_wait", epoll_wait(ep, &event, 1, -1) != 1);
}

static int make_listener(void)
{
	struct sockaddr_in at = loopback(0);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	must("bind", bind(fd, (struct sockaddr *)&at, sizeof(at)));
	must("listen", listen(fd, 8));
	return fd;
}

/* The new program has the listener, and has not made it. */
static int pass_on(char **argv)
{
	char number[20];
	int listener = make_listener();

	snprintf(number, sizeof(number), "%d", listener);
	execl("/proc/self/exe", argv[0], argv[1], argv[2], number, (char *)NULL);
	die("exec");
}

int main(int argc, char **argv)
{
	bool epolls = argc > 1 && !strcmp(argv[1], "epoll");
	struct epoll_event event = {.events = EPOLLIN};
	struct sockaddr_in at = { 0 };
	socklen_t length = sizeof(at);
	int ep = -1, listening, fd;
	char buf[4096];
	int requests = 0;
	ssize_t r;

	if (argc != 3 && argc != 4)
		return 2;
	if (argc == 4 && !strcmp(argv[3], "passed"))
		return pass_on(argv);
	listening = argc == 4 ? atoi(argv[3]) : make_listener();
	must("getsockname", getsockname(listening, (struct sockaddr *)&at, &length));
	must("epoll_ctl", epolls && ((ep = epoll_create1(0)) < 0 ||
				     epoll_ctl(ep, EPOLL_CTL_ADD, listening, &event)));
	change(argv[2]);
	printf("port %d\n", ntohs(at.sin_port));
	fflush(stdout);
	await(argv[1], ep, listening);
	fd = accept(listening, NULL, NULL);
	must("accept", fd < 0);
	while ((r = recv(fd, buf, sizeof(buf), 0)) > 0) {
		requests++;
		if (!strcmp(argv[2], "borrowed") && requests > BEFORE)
			borrow();
		if (!strcmp(argv[2], "narrowed") && requests > BEFORE)
			narrow();
		must("send", send(fd, buf, (size_t)r, MSG_NOSIGNAL) != r);
	}
	return r < 0;
}
