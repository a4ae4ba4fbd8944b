/* SPDX-License-Identifier: MIT */
/*
 * Two threads talk over a connection; with an argument, a byte is written where memory has been freed (AddressSanitizer); with
 * two, the threads write to the same word, unordered (ThreadSanitizer).
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int races, word;

static void write_word(void)
{
	if (races)
		word++;
}

static void *echo(void *listener)
{
	int fd = accept(*(int *)listener, NULL, NULL);
	char *buf = malloc(4096);
	ssize_t n;

	while ((n = read(fd, buf, 4096)) > 0 && write(fd, buf, n) == n)
		;
	write_word();
	free(buf);
	close(fd);
	return NULL;
}

int main(int argc, char **argv)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(to);
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
	char *sent = malloc(1000), *got = malloc(1000);
	long right = 0;
	pthread_t thread;

	races = argc > 2;
	bind(listener, (struct sockaddr *)&to, len);
	listen(listener, 1);
	getsockname(listener, (struct sockaddr *)&to, &len);
	pthread_create(&thread, NULL, echo, &listener);
	connect(fd, (struct sockaddr *)&to, len);
	for (int i = 0; i < 2000; i++) {
		memset(sent, i, 1000);
		right += write(fd, sent, 1000) == 1000 && recv(fd, got, 1000, MSG_WAITALL) == 1000 && !memcmp(sent, got, 1000);
	}
	close(fd);
	write_word();
	pthread_join(thread, NULL);
	close(listener);
	printf("%ld of 2000 came back\n", right);
	free(got);
	free(sent);
	if (argc == 2)
		sent[atoi(argv[1])] = 1;
	return 0;
}
