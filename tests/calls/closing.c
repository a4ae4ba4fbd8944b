/* SPDX-License-Identifier: MIT */
/*
 * One end closes connections just after both ends have used them for the first time. When close()
 * has returned, the other end's socket knows it, as with the kernel alone. Not a case of cases/: it
 * takes many, of several threads at once.
 *
 *	closing THREADS ROUNDS		prints how many connections were closed, and how many of them late
 */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static int rounds;
static atomic_int closed, late;

static void die(const char *what)
{
	perror(what);
	exit(99);
}

static void use(int fd)
{
	struct pollfd look = { .fd = fd };

	if (poll(&look, 1, 0) < 0)
		die("poll");
}

/*
 * The kernel reads the state before it takes the socket's lock. An end that arrives while another call has the lock,
 * as a getsockname() of the service thread, counts when that call lets go. So the second answer has it.
 */
static int state_of(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t length = sizeof(info);

	for (int i = 0; i < 2; i++)
		if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length))
			die("TCP_INFO");
	return info.tcpi_state;
}

static void play(int listener, const struct sockaddr_in *address)
{
	int near = socket(AF_INET, SOCK_STREAM, 0), far;

	if (connect(near, (const struct sockaddr *)address, sizeof(*address)))
		die("connect");
	use(near);
	far = accept(listener, NULL, NULL);
	if (far < 0)
		die("accept");
	use(far);
	close(near);
	atomic_fetch_add(&late, state_of(far) == TCP_ESTABLISHED);
	atomic_fetch_add(&closed, 1);
	close(far);
}

static void *run(void *arg)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&address, &length))
		die("listen");
	for (int i = 0; i < rounds; i++)
		play(listener, &address);
	close(listener);
	return arg;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 8;
	pthread_t thread[64];

	rounds = argc > 2 ? atoi(argv[2]) : 200;
	for (int i = 0; i < threads && i < 64; i++)
		if (pthread_create(&thread[i], NULL, run, NULL))
			die("thread");
	for (int i = 0; i < threads && i < 64; i++)
		pthread_join(thread[i], NULL);
	printf("%d closed, %d late\n", closed, late);
	return 0;
}
