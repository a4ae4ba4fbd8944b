/* SPDX-License-Identifier: MIT */
/* Ends with everything open: a listener, two ends of a connection with bytes that nobody has read, an epoll set. */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static void *server(void *listener)
{
	struct epoll_event event = { .events = EPOLLIN };
	int fd = accept(*(int *)listener, NULL, NULL), set = epoll_create1(0);
	char byte;

	epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
	return epoll_wait(set, &event, 1, -1) == 1 && read(fd, &byte, 1) == 1 && write(fd, &byte, 1) == 1 ? listener : NULL;
}

int main(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(to);
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
	static char many[1 << 20];
	pthread_t thread;
	void *served;

	bind(listener, (struct sockaddr *)&to, len);
	listen(listener, 1);
	getsockname(listener, (struct sockaddr *)&to, &len);
	pthread_create(&thread, NULL, server, &listener);
	connect(fd, (struct sockaddr *)&to, len);
	if (write(fd, "x", 1) == 1 && read(fd, many, 1) == 1 && !pthread_join(thread, &served) && served)
		puts("both had their byte");
	while (send(fd, many, sizeof(many), MSG_DONTWAIT) > 0)
		;
	return 0;
}
