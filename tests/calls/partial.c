/* SPDX-License-Identifier: MIT */
/*
 * A thread is cancelled while it waits in a call that has moved bytes. The call returns their number, and the next
 * call ends the thread. Not a case of cases/: up to glibc 2.40 such bytes of a kernel socket are lost.
 *
 *	partial recv|recvmmsg|disabled|send	prints what the call returned; exit status 0: as it should be
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MUCH (64 << 20)
#define WARM 200000000	/* ns of traffic, in which connections move to the link */

static int near_fd, far_fd;
static volatile pid_t tid;
static volatile ssize_t result;
static char much[MUCH];

static void die(const char *what)
{
	perror(what);
	exit(99);
}

static long ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000 + t.tv_nsec;
}

static void connect_both(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	char byte = 0;

	near_fd = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&address, &length) ||
	    connect(near_fd, (struct sockaddr *)&address, length))
		die("connect");
	far_fd = accept(listener, NULL, NULL);
	for (long until = ns() + WARM; ns() < until;)
		if (send(near_fd, &byte, 1, 0) != 1 || recv(far_fd, &byte, 1, 0) != 1 ||
		    send(far_fd, &byte, 1, 0) != 1 || recv(near_fd, &byte, 1, 0) != 1)
			die("warm");
	close(listener);
}

static ssize_t receives(void)
{
	char buffer[10];

	return recv(near_fd, buffer, sizeof(buffer), MSG_WAITALL);
}

static ssize_t receives_messages(void)
{
	char buffer[5];
	struct iovec piece = { buffer, sizeof(buffer) };
	struct mmsghdr messages[2] = { { .msg_hdr = { .msg_iov = &piece, .msg_iovlen = 1 } },
				       { .msg_hdr = { .msg_iov = &piece, .msg_iovlen = 1 } } };

	return recvmmsg(near_fd, messages, 2, 0, NULL);
}

static ssize_t sends(void)
{
	return send(near_fd, much, sizeof(much), MSG_NOSIGNAL);
}

/* Uncancelled, as the program wants it. */
static ssize_t receives_all(void)
{
	ssize_t got;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	got = receives();
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	return got;
}

static void *calls(void *call)
{
	tid = (pid_t)syscall(SYS_gettid);
	result = ((ssize_t (*)(void))call)();
	return recv(near_fd, much, 1, 0) < 0 ? call : NULL;
}

static int is_asleep(void)
{
	char path[64], line[256] = "", *state;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	file = fopen(path, "r");
	if (file && !fgets(line, sizeof(line), file))
		line[0] = '\0';
	if (file)
		fclose(file);
	state = strrchr(line, ')');
	return state && state[2] == 'S';
}

static pthread_t begin(ssize_t (*call)(void))
{
	pthread_t thread;

	tid = 0;
	result = -1;
	if (pthread_create(&thread, NULL, calls, (void *)call))
		die("pthread_create");
	while (!tid)
		sched_yield();
	for (int seen = 0; seen < 20; seen = is_asleep() ? seen + 1 : 0)
		usleep(1000);
	return thread;
}

/* True: the thread has ended in the call after this one. */
static int cancelled(ssize_t (*call)(void), const char *later)
{
	pthread_t thread = begin(call);
	void *how;

	if (pthread_cancel(thread))
		die("pthread_cancel");
	if (later) {
		while (!is_asleep())
			sched_yield();
		send(far_fd, later, strlen(later), 0);
	}
	pthread_join(thread, &how);
	printf("%zd\n", result);
	return how == PTHREAD_CANCELED;
}

/* Neither less nor more than the call has said has arrived. */
static int all_sent(void)
{
	ssize_t got, sum = 0;

	if (!cancelled(sends, NULL) || result <= 0 || result >= MUCH)
		return 0;
	shutdown(near_fd, SHUT_WR);
	while ((got = recv(far_fd, much, sizeof(much), 0)) > 0)
		sum += got;
	return sum == result;
}

int main(int argc, char **argv)
{
	const char *call = argc == 2 ? argv[1] : "";

	connect_both();
	if (!strcmp(call, "send"))
		return !all_sent();
	if (send(far_fd, "01234", 5, 0) != 5)
		die("send");
	if (!strcmp(call, "recv"))
		return !(cancelled(receives, NULL) && result == 5);
	if (!strcmp(call, "recvmmsg"))
		return !(cancelled(receives_messages, NULL) && result == 1);
	return !(cancelled(receives_all, "56789") && result == 10);
}
